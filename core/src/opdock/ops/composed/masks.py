"""Masks: what they select, and those of sequences by their lengths."""

from __future__ import annotations

from typing import Any

from opdock import dtypes, shapes
from opdock.graph.nodes.composite import IndexedSlices
from opdock.graph.nodes.constant_value import constant_value
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.array import expand_dims, reshape, shape, squeeze
from opdock.ops.cast import cast
from opdock.ops.fill import range
from opdock.ops.gather import gather
from opdock.ops.joining import concat
from opdock.ops.reduce import reduce_max, reduce_prod
from opdock.ops.registry import get
from opdock.ops.select import where_v2
from opdock.ops.support import array_util

__all__ = ["boolean_mask", "sequence_mask", "sparse_mask"]


@extensible
def boolean_mask(tensor: Any, mask: Any, name: str = "boolean_mask", axis: Any = None) -> Tensor:
    """The elements of a tensor where a mask is true.

    Args:
        tensor: a tensor.
        mask: a bool tensor whose shape is that of `tensor` from dimension `axis` on; its rank must
            be known.
        name: a name for the operation.
        axis: the first masked dimension, 0 by default.

    Returns:
        A tensor in which one dimension replaces the masked ones.

    Raises:
        ValueError: the shapes do not fit, or the rank of the mask is unknown or 0.
    """
    with name_scope(name, None, [tensor, mask]):
        tensor = convert_to_tensor(tensor, name="tensor")
        mask = convert_to_tensor(mask, name="mask")
        known, mask_shape = tensor.raw_shape, mask.raw_shape
        if mask_shape is None:
            raise ValueError(
                "Number of mask dimensions must be specified, even if some dimensions are None. "
                "E.g. shape=[None] is ok, but shape=None is not."
            )
        n = len(mask_shape)
        if n == 0:
            raise ValueError("mask cannot be scalar.")
        at: Any = 0 if axis is None else axis
        if isinstance(at, Tensor):
            value = constant_value(at)
            at = at if value is None else int(value)
        if isinstance(at, Tensor):
            full = shape(tensor)
            leading = reduce_prod(full[at : at + n], [0])
            flat = reshape(tensor, concat([full[:at], [leading], full[at + n :]], 0))
            return _masked(flat, reshape(mask, [-1]), at)
        if at < 0 and known is not None:
            at += len(known)
        covered = array_util.subshape(known, at, at + n)
        shapes.TensorShape(covered).assert_is_compatible_with(mask_shape)
        if n > 1:
            full = shape(tensor)
            leading = reduce_prod(full[at : at + n], [0])
            tensor = reshape(tensor, concat([full[:at], [leading], full[at + n :]], 0))
            if known is not None:
                tensor.set_shape((*known[:at], shapes.num_elements(covered), *known[at + n :]))
            mask = reshape(mask, [-1])
        return _masked(tensor, mask, at)


def _masked(tensor: Tensor, mask: Tensor, axis: Any) -> Tensor:
    return gather(tensor, squeeze(where_v2(mask), axis=[1]), axis=axis)


@extensible
def sequence_mask(
    lengths: Any, maxlen: Any = None, dtype: Any = dtypes.bool, name: str | None = None
) -> Tensor:
    """Masks of the first cells of sequences: `mask[..., j] = j < lengths[...]`.

    Args:
        lengths: an integer tensor.
        maxlen: the length of the masks, a scalar integer; the largest length by default.
        dtype: the type of the result.
        name: a name for the operation.

    Returns:
        A tensor of shape `lengths.shape + [maxlen]`.

    Raises:
        ValueError: `maxlen` is not a scalar.
    """
    with name_scope(name, "SequenceMask", [lengths, maxlen]):
        lengths = convert_to_tensor(lengths)
        if maxlen is None:
            maxlen = reduce_max(lengths)
            maxlen = get("Maximum")(convert_to_tensor(0, maxlen.dtype), maxlen)
        else:
            maxlen = convert_to_tensor(maxlen)
        if maxlen.raw_shape:
            raise ValueError("maxlen must be scalar for sequence_mask")
        row = range(convert_to_tensor(0, maxlen.dtype), maxlen, convert_to_tensor(1, maxlen.dtype))
        column = cast(expand_dims(lengths, -1), maxlen.dtype)
        mask = get("Less")(row, column)
        if dtype is None or dtypes.as_dtype(dtype).base_dtype is dtypes.bool:
            return mask  # type: ignore[no-any-return]
        return cast(mask, dtype)  # type: ignore[no-any-return]


def sparse_mask(a: IndexedSlices, mask_indices: Any, name: str | None = None) -> IndexedSlices:
    """The slices whose index is not among some.

    Args:
        a: IndexedSlices.
        mask_indices: the indices of the slices to leave out, a vector.
        name: a name for the operation.

    Returns:
        IndexedSlices.
    """
    with name_scope(name, "sparse_mask", [a.values, a.indices, mask_indices]) as scope:
        indices, kept = get("ListDiff")(a.indices, mask_indices)
        return IndexedSlices(gather(a.values, kept, name=scope), indices, a.dense_shape)
