"""Labels as rows of class indices, dense or sparse, brought into the shape of the predictions."""

from __future__ import annotations

from typing import Any

from opdock import dtypes
from opdock.graph.nodes.composite import (
    SparseTensor,
    SparseTensorValue,
    internal_convert_to_tensor_or_indexed_slices,
)
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.array import expand_dims, rank, reshape, shape, size
from opdock.ops.cast import cast
from opdock.ops.composed.masks import boolean_mask
from opdock.ops.control import cond
from opdock.ops.fill import fill, ones_like, range, zeros_like
from opdock.ops.gather import gather
from opdock.ops.joining import concat
from opdock.ops.reduce import reduce_max
from opdock.ops.select import where_v2
from opdock.ops.set_operations import set_intersection
from opdock.ops.sorting import argsort
from opdock.ops.support.nn_util import emit
from opdock.ops.tiling import tile


def sparse_or_dense(labels: Any) -> Any:
    """`labels` as a SparseTensor if they are one, else as a tensor."""
    if isinstance(labels, SparseTensorValue):
        return SparseTensor.from_value(labels)
    return internal_convert_to_tensor_or_indexed_slices(labels)


def expand_labels(labels: Any, predictions: Any) -> Any:
    """Labels with a last dimension of 1 if they have one dimension less than the predictions.

    Raises:
        ValueError: the ranks do not fit.
    """
    with name_scope(None, "expand_labels", [labels, predictions]) as scope:
        labels, predictions = sparse_or_dense(labels), convert_to_tensor(predictions)
        if isinstance(labels, SparseTensor):
            return _expand_sparse(labels, predictions)
        have, wanted = labels.shape.ndims, predictions.shape.ndims
        if have is not None and wanted is not None:
            if have == wanted:
                return labels
            if wanted == have + 1:
                return expand_dims(labels, -1, name=scope)
            raise ValueError(
                f"Unexpected labels shape {labels.shape} for predictions shape {predictions.shape}."
            )
        return cond(
            emit("Equal", rank(predictions), rank(labels) + 1),
            lambda: expand_dims(labels, -1, name=scope),
            lambda: labels,
        )


def _expand_sparse(labels: SparseTensor, predictions: Any) -> SparseTensor:
    known, wanted = labels.shape.ndims, predictions.shape.ndims
    if known is not None and wanted is not None:
        return _with_unit(labels) if wanted == known + 1 else labels
    parts = cond(
        emit("Equal", rank(predictions), size(labels.dense_shape) + 1),
        lambda: _parts(_with_unit(labels)),
        lambda: _parts(labels),
    )
    return SparseTensor(*parts)


def _parts(labels: SparseTensor) -> list[Any]:
    return [labels.indices, labels.values, labels.dense_shape]


def _with_unit(labels: SparseTensor) -> SparseTensor:
    """The same labels, with a last dimension of 1."""
    column = zeros_like(labels.indices[:, :1])
    return SparseTensor(
        concat([labels.indices, column], 1), labels.values, concat([labels.dense_shape, [1]], 0)
    )


def select_class(ids: Any, class_id: int) -> SparseTensor:
    """Those of the class indices that are `class_id`, as a sparse tensor of the same shape."""
    ids = sparse_or_dense(ids)
    if isinstance(ids, SparseTensor):
        kept = emit("Equal", ids.values, cast(class_id, ids.dtype))
        return SparseTensor(
            boolean_mask(ids.indices, kept), boolean_mask(ids.values, kept), ids.dense_shape
        )
    whole: Any = shape(ids, out_type=dtypes.int64)
    wanted = fill(concat([whole[:-1], [1]], 0), cast(class_id, dtypes.int64))
    found = set_intersection(wanted, ids)
    return SparseTensor(found.indices, found.values, whole)


def clean_out_of_range(labels: Any, classes: Any) -> Any:
    """Labels with -1 for each that is no index of a class."""

    def clean(values: Any) -> Any:
        outside = emit("GreaterEqual", values, classes)
        return where_v2(outside, emit("Neg", ones_like(values)), values)

    labels = sparse_or_dense(labels)
    sparse = isinstance(labels, SparseTensor)
    given = labels.values if sparse else labels
    cleaned = cond(
        emit("GreaterEqual", reduce_max(given), classes), lambda: clean(given), lambda: given
    )
    return SparseTensor(labels.indices, cleaned, labels.dense_shape) if sparse else cleaned


def tile_per_k(labels: Any, k: int, name: str) -> Any:
    """Labels of shape [D1, ... DN, labels] repeated to [D1, ... DN, k, labels]."""
    with name_scope(name, "expand_and_tile", [labels]) as scope:
        labels = sparse_or_dense(labels)
        if isinstance(labels, SparseTensor):
            return _tile_sparse(labels, k)
        wide = expand_dims(labels, -2, name="expand")
        if k == 1:
            return wide
        ones = ones_like(shape(labels))
        return tile(wide, concat([ones[:-1], [k], ones[-1:]], 0, name="multiples"), name=scope)


def _tile_sparse(labels: SparseTensor, k: int) -> SparseTensor:
    """Each row `k` times; what was in order is so again."""
    outer, column = labels.indices[:, :-1], labels.indices[:, -1:]
    count = shape(labels.indices, out_type=dtypes.int64)[0]
    copy = reshape(range(cast(k, dtypes.int64)), [-1, 1])
    repeated = reshape(tile(copy, emit("Pack", [1, count], axis=0)), [-1, 1])
    indices = concat([tile(outer, [k, 1]), repeated, tile(column, [k, 1])], 1)
    whole = concat([labels.dense_shape[:-1], [k], labels.dense_shape[-1:]], 0)
    strides = emit("Cumprod", concat([whole[1:], [1]], 0), 0, reverse=True)
    order = argsort(emit("Sum", indices * strides, [1]), stable=True)
    return SparseTensor(gather(indices, order), gather(tile(labels.values, [k]), order), whole)
