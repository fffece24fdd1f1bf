"""Initializers that take biases and slots of a checkpoint, in the order of new vocabularies."""

from __future__ import annotations

from typing import Any

from opdock import dtypes
from opdock.dtypes import DType
from opdock.graph.variables.partitioned import PartitionInfo
from opdock.train.remapped_matrices import Initializer, load_and_remap_matrix_initializer

__all__ = ["load_linear_multiclass_bias_initializer", "load_variable_slot_initializer"]


def load_linear_multiclass_bias_initializer(
    ckpt_path: Any, bias_tensor_name: str, new_class_vocab_size: int, old_class_vocab_file: Any,
    new_class_vocab_file: Any, num_class_oov_buckets: int = 0,
    initializer: Initializer | None = None, max_rows_in_memory: int = -1,
) -> Initializer:  # fmt: skip
    """An initializer that takes the biases of classes, a column, from a checkpoint.

    Args:
        ckpt_path, bias_tensor_name: the checkpoint, and the name of the biases there.
        new_class_vocab_size: the lines of the new vocabulary of classes.
        old_class_vocab_file, new_class_vocab_file: the vocabularies.
        num_class_oov_buckets: how many new classes follow.
        initializer: for new classes; zeros by default.
        max_rows_in_memory: how many rows are read at once; 0 and less for all.
    """
    return load_and_remap_matrix_initializer(
        ckpt_path, bias_tensor_name, new_class_vocab_size, 1,
        old_row_vocab_file=old_class_vocab_file, new_row_vocab_file=new_class_vocab_file,
        num_row_oov_buckets=num_class_oov_buckets, initializer=initializer,
        max_rows_in_memory=max_rows_in_memory,
    )  # fmt: skip


def load_variable_slot_initializer(
    ckpt_path: Any, old_tensor_name: str, primary_partition_info: PartitionInfo | None,
    new_row_vocab_size: int, new_col_vocab_size: int, old_row_vocab_file: Any = None,
    new_row_vocab_file: Any = None, old_col_vocab_file: Any = None, new_col_vocab_file: Any = None,
    num_row_oov_buckets: int = 0, num_col_oov_buckets: int = 0,
    initializer: Initializer | None = None, max_rows_in_memory: int = -1,
) -> Initializer:  # fmt: skip
    """An initializer that takes an optimizer's slot of a variable from a checkpoint.

    Args:
        primary_partition_info: where the part of the variable lies, which slots are not told.
        ckpt_path, old_tensor_name, new_row_vocab_size, new_col_vocab_size, old_row_vocab_file,
            new_row_vocab_file, old_col_vocab_file, new_col_vocab_file, num_row_oov_buckets,
            num_col_oov_buckets, initializer, max_rows_in_memory: as of
            `load_and_remap_matrix_initializer`.

    Raises:
        TypeError: the initializer is no function.
    """
    whole = load_and_remap_matrix_initializer(
        ckpt_path, old_tensor_name, new_row_vocab_size, new_col_vocab_size, -1,
        old_row_vocab_file, new_row_vocab_file, old_col_vocab_file, new_col_vocab_file,
        num_row_oov_buckets, num_col_oov_buckets, initializer, max_rows_in_memory,
    )  # fmt: skip

    def initialize(
        shape: Any, dtype: DType = dtypes.float32, partition_info: PartitionInfo | None = None
    ) -> Any:
        return whole(shape, dtype, partition_info=primary_partition_info)

    return initialize
