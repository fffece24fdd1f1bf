"""Matrices of a checkpoint for other vocabularies: rows and columns by the words they are of."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from opdock import dtypes
from opdock.dtypes import DType
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.registry import get
from opdock.graph.variables.initializers import truncated_normal_initializer, zeros_initializer
from opdock.graph.variables.partitioned import PartitionInfo
from opdock.ops.fill import range as range_
from opdock.ops.joining import concat

__all__ = [
    "load_and_remap_matrix", "load_and_remap_matrix_initializer", "load_embedding_initializer",
]  # fmt: skip

Initializer = Callable[..., Any]


def load_and_remap_matrix(
    ckpt_path: Any, old_tensor_name: str, new_row_vocab_offset: int, num_rows_to_load: int,
    new_col_vocab_size: int, initializer: Initializer, old_row_vocab_size: int = -1,
    old_row_vocab_file: Any = None, new_row_vocab_file: Any = None, old_col_vocab_file: Any = None,
    new_col_vocab_file: Any = None, num_row_oov_buckets: int = 0, num_col_oov_buckets: int = 0,
    max_rows_in_memory: int = -1,
) -> Tensor:  # fmt: skip
    """Rows of a matrix of a checkpoint, put in the order of new vocabularies.

    Args:
        ckpt_path: the checkpoint.
        old_tensor_name: the matrix's name there.
        new_row_vocab_offset: the first line of the new rows' vocabulary.
        num_rows_to_load: how many lines of it.
        new_col_vocab_size: the number of columns.
        initializer: makes values of a shape for what the checkpoint has not.
        old_row_vocab_size: how many lines of the old rows' vocabulary count; -1 for all.
        old_row_vocab_file, new_row_vocab_file: the rows' vocabularies; None if they are the same.
        old_col_vocab_file, new_col_vocab_file: the columns'.
        num_row_oov_buckets, num_col_oov_buckets: how many new rows and columns follow.
        max_rows_in_memory: how many rows are read at once; 0 and less for all.

    Returns:
        [num_rows_to_load + num_row_oov_buckets, new_col_vocab_size + num_col_oov_buckets]

    Raises:
        ValueError: a number of buckets is negative, one of two vocabularies is missing, or all are.
    """
    for axis, count in (("row", num_row_oov_buckets), ("col", num_col_oov_buckets)):
        if count < 0:
            raise ValueError(f"num_{axis}_oov_buckets must be >= 0, but received {count}")
    rows_change = _both("row", old_row_vocab_file, new_row_vocab_file)
    columns_change = _both("col", old_col_vocab_file, new_col_vocab_file)
    if not (rows_change or columns_change):
        raise ValueError(
            "Must provide either row or column vocab files. If no remapping is necessary, consider "
            "using `tf.contrib.framework.init_from_checkpoint` instead."
        )
    remap = get("GenerateVocabRemapping")
    end = new_row_vocab_offset + num_rows_to_load
    rows: Any = range_(new_row_vocab_offset, end, dtype=dtypes.int64)
    columns: Any = convert_to_tensor([], dtypes.int64)
    rows_there: Any = num_rows_to_load
    columns_there: Any = new_col_vocab_size
    if rows_change:
        rows, rows_there = remap(
            new_row_vocab_file, old_row_vocab_file, new_vocab_offset=new_row_vocab_offset,
            num_new_vocab=num_rows_to_load, old_vocab_size=old_row_vocab_size,
        )  # fmt: skip
    if columns_change:
        columns, columns_there = remap(
            new_col_vocab_file, old_col_vocab_file, new_vocab_offset=0,
            num_new_vocab=new_col_vocab_size,
        )  # fmt: skip
    missing = num_rows_to_load * new_col_vocab_size - rows_there * columns_there
    matrix: Tensor = get("LoadAndRemapMatrix")(
        ckpt_path, old_tensor_name, rows, columns, initializer([missing, 1]),
        num_rows=num_rows_to_load, num_cols=new_col_vocab_size,
        max_rows_in_memory=max_rows_in_memory,
    )  # fmt: skip
    for along, buckets in enumerate((num_row_oov_buckets, num_col_oov_buckets)):
        if buckets:
            size = matrix.shape.as_list()
            size[along] = buckets
            matrix = concat([matrix, convert_to_tensor(initializer(size))], along)
    return matrix


def _both(axis: str, old: Any, new: Any) -> bool:
    """Whether both vocabularies are given."""
    if bool(old) != bool(new):
        raise ValueError(
            f"old_{axis}_vocab_file and new_{axis}_vocab_file must both be specified or left "
            f"unspecified. old_{axis}_vocab_file='{old}', new_{axis}_vocab_file='{new}'"
        )
    return bool(old)


@dataclass(frozen=True)
class _Matrix:
    """An initializer: parts of a matrix of a checkpoint, cut along the rows."""

    rows: int
    columns: int
    row_buckets: int
    column_buckets: int
    missing: Initializer
    source: dict[str, Any]

    def __call__(
        self, shape: Any, dtype: DType = dtypes.float32, partition_info: PartitionInfo | None = None
    ) -> Any:
        """The values of a variable, or of a part of one.

        Raises:
            TypeError: the type is not float32.
            ValueError: the shape is not that of the matrix.
        """
        if dtype != dtypes.float32:
            raise TypeError(f"Currently, only float32 is supported. Received dtype: {dtype}")
        size = [int(n) for n in shape]
        offset = 0 if partition_info is None else partition_info.single_offset(size)
        self._check(size, offset)
        buckets = min(size[0], max(0, offset + size[0] - self.rows))
        if offset > self.rows:
            return self.missing(size)
        return load_and_remap_matrix(
            new_row_vocab_offset=offset, num_rows_to_load=size[0] - buckets,
            new_col_vocab_size=self.columns, initializer=self.missing,
            num_row_oov_buckets=buckets, num_col_oov_buckets=self.column_buckets, **self.source,
        )  # fmt: skip

    def _check(self, size: list[int], offset: int) -> None:
        if len(size) != 2:
            raise ValueError(f"Expected 2-dim shape, but received: {size}")
        if size[0] <= 0:
            raise ValueError(f"Expected 1st dim of shape to be > 0, but received shape: {size}")
        width = self.columns + self.column_buckets
        if size[1] != width:
            raise ValueError(
                f"Expected 2nd dim of shape to be new_col_vocab_size ({self.columns}) + "
                f"num_col_oov_buckets ({self.column_buckets}) = {width}, but received shape: {size}"
            )
        height = self.rows + self.row_buckets
        if offset + size[0] > height:
            raise ValueError(
                f"Trying to initialize {size[0]} additional rows after {offset} rows have already "
                "been initialized, which would exceed expected total row count of "
                f"new_row_vocab_size ({self.rows}) + num_row_oov_buckets ({self.row_buckets}) = "
                f"{height}."
            )


def load_and_remap_matrix_initializer(
    ckpt_path: Any, old_tensor_name: str, new_row_vocab_size: int, new_col_vocab_size: int,
    old_row_vocab_size: int = -1, old_row_vocab_file: Any = None, new_row_vocab_file: Any = None,
    old_col_vocab_file: Any = None, new_col_vocab_file: Any = None, num_row_oov_buckets: int = 0,
    num_col_oov_buckets: int = 0, initializer: Initializer | None = None,
    max_rows_in_memory: int = -1,
) -> Initializer:  # fmt: skip
    """An initializer that takes a matrix of a checkpoint, put in the order of new vocabularies.

    The variable may be cut into parts along its rows.

    Args:
        ckpt_path, old_tensor_name: the checkpoint, and the matrix's name there.
        new_row_vocab_size, new_col_vocab_size: the lines of the new vocabularies.
        old_row_vocab_size, old_row_vocab_file, new_row_vocab_file, old_col_vocab_file,
            new_col_vocab_file, num_row_oov_buckets, num_col_oov_buckets, max_rows_in_memory: see
            `load_and_remap_matrix`.
        initializer: for what the checkpoint has not; zeros by default.

    Raises:
        TypeError: the initializer is no function.
    """
    initializer = zeros_initializer() if initializer is None else initializer
    if not callable(initializer):
        raise TypeError(
            f"initializer must be callable, instead of being {initializer} of type "
            f"{type(initializer)}."
        )
    source = {
        "ckpt_path": ckpt_path, "old_tensor_name": old_tensor_name,
        "old_row_vocab_size": old_row_vocab_size, "old_row_vocab_file": old_row_vocab_file,
        "new_row_vocab_file": new_row_vocab_file, "old_col_vocab_file": old_col_vocab_file,
        "new_col_vocab_file": new_col_vocab_file, "max_rows_in_memory": max_rows_in_memory,
    }  # fmt: skip
    return _Matrix(
        new_row_vocab_size, new_col_vocab_size, num_row_oov_buckets, num_col_oov_buckets,
        initializer, source,
    )  # fmt: skip


def load_embedding_initializer(
    ckpt_path: Any, embedding_tensor_name: str, new_vocab_size: int, embedding_dim: int,
    old_vocab_file: Any, new_vocab_file: Any, old_vocab_size: int = -1, num_oov_buckets: int = 0,
    initializer: Initializer | None = None, max_rows_in_memory: int = -1,
) -> Initializer:  # fmt: skip
    """An initializer that takes the embeddings of a checkpoint, in the order of a new vocabulary.

    Args:
        ckpt_path, embedding_tensor_name: the checkpoint, and the name of the embeddings there.
        new_vocab_size: the lines of the new vocabulary.
        embedding_dim: the length of an embedding.
        old_vocab_file, new_vocab_file: the vocabularies.
        old_vocab_size: how many lines of the old one count; -1 for all.
        num_oov_buckets: how many new embeddings follow.
        initializer: for new words; normal with a deviation of 1 / sqrt(`embedding_dim`) by default.
        max_rows_in_memory: how many rows are read at once; 0 and less for all.
    """
    if initializer is None:
        initializer = truncated_normal_initializer(stddev=1.0 / math.sqrt(embedding_dim))
    return load_and_remap_matrix_initializer(
        ckpt_path, embedding_tensor_name, new_vocab_size, embedding_dim, old_vocab_size,
        old_vocab_file, new_vocab_file, num_row_oov_buckets=num_oov_buckets,
        initializer=initializer, max_rows_in_memory=max_rows_in_memory,
    )  # fmt: skip
