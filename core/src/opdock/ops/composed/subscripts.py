"""`tensor[...]`: Python's subscripts as StridedSlice."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from opdock import dtypes
from opdock.graph.nodes.constant import constant
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.cast import cast
from opdock.ops.joining import stack
from opdock.ops.slicing import newaxis, strided_slice
from opdock.shapes import Dimension

SLICE_TYPE_ERROR = (
    "Only integers, slices (`:`), ellipsis (`...`), tf.newaxis (`None`) and scalar "
    "tf.int32/tf.int64 tensors are valid indices"
)


def slice_helper(tensor: Any, slice_spec: Any, var: Any = None) -> Tensor:
    """`tensor[slice_spec]`: integers, slices, `...`, `tf.newaxis`, scalar tensors, boolean masks.

    Raises:
        TypeError: a subscript is of another type.
        ValueError: an index is out of bounds, or there are too many.
    """
    if _is_mask(slice_spec):
        # Masks need most families; few programs subscript with one.
        from opdock.ops.composed.masks import boolean_mask

        return boolean_mask(tensor, slice_spec)
    spec = slice_spec if isinstance(slice_spec, (list, tuple)) else [slice_spec]
    begin: list[Any] = []
    end: list[Any] = []
    strides: list[Any] = []
    masks: dict[str, Any] = dict.fromkeys(
        ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"), 0
    )
    for i, item in enumerate(spec):
        start, stop, step = 0, 0, 1
        if isinstance(item, slice):
            start = _bound(item.start, masks, "begin_mask", i)
            stop = _bound(item.stop, masks, "end_mask", i)
            step = _step(item.step)
        elif item is Ellipsis:
            masks["ellipsis_mask"] |= 1 << i
        elif item is newaxis:
            masks["new_axis_mask"] |= 1 << i
        else:
            _check_index(item)
            start, stop = item, item + 1
            masks["shrink_axis_mask"] |= 1 << i
        begin.append(start)
        end.append(stop)
        strides.append(step)
    with name_scope(None, "strided_slice", [tensor, *begin, *end, *strides]) as scope:
        packed = [_pack_bounds(b) for b in (begin, end, strides)]
        if any(p.dtype is dtypes.int64 for p in packed):
            packed = [cast(p, dtypes.int64) for p in packed]
        begins, ends, steps = packed
        return strided_slice(tensor, begins, ends, steps, var=var, name=scope, **masks)


def slice_helper_var(var: Any, slice_spec: Any) -> Tensor:
    """`variable[slice_spec]`: like a tensor's, and the result can be assigned to."""
    return slice_helper(var.value(), slice_spec, var)


def _is_mask(spec: Any) -> bool:
    if isinstance(spec, (bool, np.bool_)):
        return True
    if isinstance(spec, Tensor):
        return spec.dtype.base_dtype is dtypes.bool
    return isinstance(spec, np.ndarray) and spec.dtype == np.bool_


def _bound(value: Any, masks: dict[str, int], mask: str, i: int) -> Any:
    # Python 2 spelled a missing bound as sys.maxsize, and programs still write it.
    if value is None or (isinstance(value, int) and value == sys.maxsize):
        masks[mask] |= 1 << i
        return 0
    _check_index(value)
    return value


def _step(value: Any) -> Any:
    if value is None or (isinstance(value, int) and value == sys.maxsize):
        return 1
    _check_index(value)
    return value


def _check_index(index: Any) -> None:
    if isinstance(index, (int, np.integer, Dimension)):
        return
    dtype = getattr(index, "dtype", None)
    if dtype is None or not _is_index_type(dtype) or len(getattr(index, "shape", ()) or ()) == 1:
        raise TypeError(f"{SLICE_TYPE_ERROR}, got {index!r}")


def _is_index_type(dtype: Any) -> bool:
    try:
        return dtypes.as_dtype(dtype).base_dtype.is_integer
    except TypeError:
        return False


def _pack_bounds(values: list[Any]) -> Tensor:
    if all(type(v) is int for v in values):
        return constant(values, None if values else dtypes.int32, name="stack")
    return stack(values)
