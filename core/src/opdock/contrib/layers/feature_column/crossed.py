"""Columns of combinations of other columns' values."""

from __future__ import annotations

from typing import Any, NamedTuple

from opdock.contrib.layers.feature_column.base import (
    FeatureColumn,
    Get,
    IdColumn,
    SavedColumn,
    check_saved,
)
from opdock.contrib.layers.feature_column.numeric import BucketizedColumn
from opdock.contrib.layers.feature_column.sparse import SparseColumn
from opdock.graph.nodes.composite import SparseTensor
from opdock.ops.sparse_cross import sparse_feature_cross


class _CrossedFields(NamedTuple):
    columns: tuple[Any, ...]
    hash_bucket_size: int
    hash_key: int | None
    combiner: str
    ckpt_to_load_from: str | None
    tensor_name_in_ckpt: str | None


class CrossedColumn(SavedColumn, IdColumn, _CrossedFields):
    """Hashes of combinations of values; see `crossed_column`."""

    kind = "CrossedColumn"
    in_networks = "embedding_column"

    @property
    def name(self) -> str:
        return "_X_".join(sorted(column.name for column in self.columns))

    @property
    def config(self) -> dict[str, Any]:
        return {key: value for column in self.columns for key, value in column.config.items()}

    @property
    def length(self) -> int:
        return self.hash_bucket_size

    def joined_by(self) -> str:
        return self.combiner

    def _leaves(self) -> list[FeatureColumn]:
        """The columns, with those of a crossed one in its place."""
        leaves: list[FeatureColumn] = []
        for column in self.columns:
            leaves.extend(column._leaves() if isinstance(column, CrossedColumn) else [column])
        return leaves

    def transformed(self, get: Get) -> SparseTensor:
        features = []
        for column in self._leaves():
            if isinstance(column, SparseColumn):
                features.append(get(column.name))  # its values, not its ids
            elif isinstance(column, BucketizedColumn):
                features.append(column.to_sparse_tensor(get(column)))
            else:
                features.append(get(column))
        return sparse_feature_cross(
            features,
            hashed_output=True,
            num_buckets=self.hash_bucket_size,
            hash_key=self.hash_key,
            name="cross",
        )


def crossed_column(
    columns: Any,
    hash_bucket_size: int,
    combiner: str = "sum",
    ckpt_to_load_from: str | None = None,
    tensor_name_in_ckpt: str | None = None,
    hash_key: int | None = None,
) -> CrossedColumn:
    """A column of the combinations of the values of others, as hashes.

    Args:
        columns: two or more sparse, bucketized or crossed columns.
        hash_bucket_size: the number of ids.
        combiner: how a linear model joins the weights of one example: "sum", "mean" or "sqrtn".
        ckpt_to_load_from: a checkpoint from which a linear model takes its weights.
        tensor_name_in_ckpt: their name there.
        hash_key: what hashes start from; None is TF's older way to combine them.

    Raises:
        TypeError: a column of another kind.
        ValueError: fewer than two columns or ids, or half of what a checkpoint needs.
    """
    for column in columns:
        if not isinstance(column, (SparseColumn, CrossedColumn, BucketizedColumn)):
            raise TypeError(
                "columns must be a set of _SparseColumn, _CrossedColumn, or _BucketizedColumn "
                f"instances. (column {column} is a {type(column).__name__})"
            )
    if len(columns) < 2:
        raise ValueError(f"columns must contain at least 2 elements. columns: {columns}")
    if hash_bucket_size < 2:
        raise ValueError(
            f"hash_bucket_size must be at least 2. hash_bucket_size: {hash_bucket_size}"
        )
    check_saved(ckpt_to_load_from, tensor_name_in_ckpt)
    return CrossedColumn(
        tuple(sorted(columns, key=lambda column: column.name)), hash_bucket_size, hash_key,
        combiner, ckpt_to_load_from, tensor_name_in_ckpt,
    )  # fmt: skip
