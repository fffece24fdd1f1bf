"""Values of tensors that are known while the graph is built.

Shape functions ask for them ("reshape to this constant"), so the evaluator covers the ops from
which programs compute shapes. It never runs a kernel; what it does not know is simply unknown.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from opdock import shapes
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.registry import PartialShape
from opdock.shapes import Shape

Array = np.ndarray[Any, Any]
_MAX_DEPTH: Final = 32
_MAX_ELEMENTS: Final = 4096


def constant_value(tensor: Any, partial: bool = False) -> Array | None:
    """The value of `tensor` as an array if it is known without running the graph, else None.

    Args:
        tensor: a Tensor of any graph.
        partial: accepted for TF's signature; partly known stacks count as unknown.
    """
    if not isinstance(tensor, Tensor):
        return np.asarray(tensor)
    return _value(tensor, 0)


def constant_for_shapes(tensor: Tensor) -> Array | PartialShape | None:
    """The value of `tensor`, or what is known of it when it is a shape vector."""
    value = _value(tensor, 0)
    if value is not None:
        return value
    if tensor._shape is not None and len(tensor._shape) == 1:
        known = _shape_vector(tensor, 0)
        if known is not None:
            return PartialShape(known)
    return None


def constant_value_as_shape(tensor: Tensor) -> Shape:
    """A 1-D integer tensor read as a shape: known entries, None for -1 and the unknown."""
    value = constant_for_shapes(tensor)
    if isinstance(value, PartialShape):
        return value.shape
    if value is not None:
        return tuple(None if d < 0 else int(d) for d in value.reshape(-1))
    length = tensor._shape
    if length is not None and len(length) == 1 and length[0] is not None:
        return (None,) * length[0]
    return None


# ---------------------------------------------------------------- full values
def _value(tensor: Tensor, depth: int) -> Array | None:
    op = tensor._op
    if op.type == "Const":
        value: Array = op.attrs["value"]
        return value
    rule = _RULES.get(op.type)
    if rule is None or depth > _MAX_DEPTH:
        return None
    size = shapes.num_elements(tensor._shape)
    if size is not None and size > _MAX_ELEMENTS:
        return None
    return rule(op, tensor, depth + 1)


def _inputs(op: Operation, depth: int, n: int | None = None) -> list[Array] | None:
    out = []
    for t in op._inputs[:n]:
        value = _value(t, depth)
        if value is None:
            return None
        out.append(value)
    return out


def _shape(op: Operation, tensor: Tensor, depth: int) -> Array | None:
    known = op._inputs[tensor._value_index]._shape
    if known is None or None in known:
        return None
    return np.array(known, tensor._dtype.np)


def _size(op: Operation, tensor: Tensor, depth: int) -> Array | None:
    size = shapes.num_elements(op._inputs[0]._shape)
    return None if size is None else np.array(size, tensor._dtype.np)


def _rank(op: Operation, tensor: Tensor, depth: int) -> Array | None:
    known = op._inputs[0]._shape
    return None if known is None else np.array(len(known), tensor._dtype.np)


def _cast(op: Operation, tensor: Tensor, depth: int) -> Array | None:
    values = _inputs(op, depth)
    if values is None or tensor._dtype.np.hasobject:
        return None
    return values[0].astype(tensor._dtype.np)


def _pass(op: Operation, tensor: Tensor, depth: int) -> Array | None:
    return _value(op._inputs[tensor._value_index], depth)


def _pack(op: Operation, tensor: Tensor, depth: int) -> Array | None:
    values = _inputs(op, depth)
    if values is None or len({v.shape for v in values}) > 1:
        return None
    return np.stack(values, op.attrs["axis"])


def _concat(op: Operation, tensor: Tensor, depth: int) -> Array | None:
    values = _inputs(op, depth)
    if values is None:
        return None
    try:
        return np.concatenate(values[:-1], int(values[-1]))
    except (ValueError, IndexError):
        return None


def _range(op: Operation, tensor: Tensor, depth: int) -> Array | None:
    values = _inputs(op, depth)
    if values is None or values[2] == 0:
        return None
    if abs((float(values[1]) - float(values[0])) / float(values[2])) > _MAX_ELEMENTS:
        return None
    start, stop, step = (v.item() for v in values)
    out: Array = np.arange(start, stop, step, dtype=tensor._dtype.np)
    return out


def _fill(op: Operation, tensor: Tensor, depth: int) -> Array | None:
    values = _inputs(op, depth)
    known = tensor._shape
    if values is None or known is None or None in known:
        return None
    return np.full(known, values[1], tensor._dtype.np)


def _reshape(op: Operation, tensor: Tensor, depth: int) -> Array | None:
    value, known = _value(op._inputs[0], depth), tensor._shape
    if value is None or known is None or None in known or value.size != shapes.num_elements(known):
        return None
    return value.reshape(known)


def _gather(op: Operation, tensor: Tensor, depth: int) -> Array | None:
    values = _inputs(op, depth)
    if values is None or op.attrs.get("batch_dims", 0):
        return None
    axis = int(values[2]) if len(values) > 2 else 0
    try:
        return np.asarray(np.take(values[0], values[1], axis))
    except (IndexError, ValueError):
        return None


def _strided_slice(op: Operation, tensor: Tensor, depth: int) -> Array | None:
    index = _simple_index(op, depth)
    if index is None:
        return None
    source = op._inputs[0]
    value = _value(source, depth)
    if value is not None:
        return np.asarray(value[index]) if value.ndim == 1 else None
    known = _shape_vector(source, depth)
    if known is None or not isinstance(index, int) or not -len(known) <= index < len(known):
        return None
    return None if known[index] is None else np.array(known[index], tensor._dtype.np)


def _simple_index(op: Operation, depth: int) -> int | slice | None:
    """The index of a one-dimensional strided slice, or None when it is anything else."""
    attrs = op.attrs
    if attrs["ellipsis_mask"] or attrs["new_axis_mask"] or op._inputs[1]._shape != (1,):
        return None
    bounds = [_value(t, depth) for t in op._inputs[1:4]]
    if any(b is None for b in bounds):
        return None
    begin, end, step = (int(b[0]) for b in bounds)  # type: ignore[index]
    if attrs["shrink_axis_mask"]:
        return begin
    return slice(None if attrs["begin_mask"] else begin, None if attrs["end_mask"] else end, step)


def _binary(fn: Callable[[Any, Any], Any]) -> Callable[[Operation, Tensor, int], Array | None]:
    def rule(op: Operation, tensor: Tensor, depth: int) -> Array | None:
        if not tensor._dtype.is_integer:
            return None
        values = _inputs(op, depth)
        if values is None:
            return None
        with np.errstate(all="ignore"):
            try:
                return np.asarray(fn(values[0], values[1])).astype(tensor._dtype.np)
            except ValueError:
                return None

    return rule


def _floor_div(a: Any, b: Any) -> Any:
    if np.any(b == 0):
        raise ValueError("division by zero")
    return a // b


def _reduce(fn: Callable[..., Any]) -> Callable[[Operation, Tensor, int], Array | None]:
    def rule(op: Operation, tensor: Tensor, depth: int) -> Array | None:
        values = _inputs(op, depth)
        if values is None or not tensor._dtype.is_integer:
            return None
        axes = tuple(int(a) for a in values[1].reshape(-1))
        try:
            out = fn(values[0], axis=axes, keepdims=op.attrs["keep_dims"])
        except ValueError:
            return None
        return np.asarray(out).astype(tensor._dtype.np)

    return rule


_RULES: dict[str, Callable[[Operation, Tensor, int], Array | None]] = {
    "Shape": _shape,
    "ShapeN": _shape,
    "Size": _size,
    "Rank": _rank,
    "Cast": _cast,
    "Identity": _pass,
    "Pack": _pack,
    "ConcatV2": _concat,
    "Range": _range,
    "Fill": _fill,
    "Reshape": _reshape,
    "GatherV2": _gather,
    "Gather": _gather,
    "StridedSlice": _strided_slice,
    "ExpandDims": _reshape,
    "Squeeze": _reshape,
    "Add": _binary(lambda a, b: a + b),
    "AddV2": _binary(lambda a, b: a + b),
    "Sub": _binary(lambda a, b: a - b),
    "Mul": _binary(lambda a, b: a * b),
    "FloorDiv": _binary(_floor_div),
    "Maximum": _binary(np.maximum),
    "Minimum": _binary(np.minimum),
    "Prod": _reduce(np.prod),
    "Sum": _reduce(np.sum),
    "Max": _reduce(np.max),
}


# ---------------------------------------------------------------- partly known shape vectors
def _shape_vector(tensor: Tensor, depth: int) -> Shape:
    """The entries of a 1-D shape tensor, None where unknown; None when not even the length is."""
    if depth > _MAX_DEPTH or not tensor._dtype.is_integer:
        return None
    op = tensor._op
    value = _value(tensor, depth)
    if value is not None:
        return tuple(None if d < 0 else int(d) for d in value.reshape(-1))
    if op.type in ("Shape", "ShapeN"):
        return op._inputs[tensor._value_index]._shape
    if op.type in ("Cast", "Identity"):
        return _shape_vector(op._inputs[tensor._value_index], depth + 1)
    if op.type == "Pack" and tensor._shape is not None and len(tensor._shape) == 1:
        entries = [_value(t, depth + 1) for t in op._inputs]
        return tuple(None if v is None or v < 0 else int(v) for v in entries)
    if op.type == "ConcatV2":
        parts: list[int | None] = []
        for t in op._inputs[:-1]:
            part = _shape_vector(t, depth + 1)
            if part is None:
                return None
            parts.extend(part)
        return tuple(parts)
    if op.type == "StridedSlice":
        index = _simple_index(op, depth + 1)
        known = _shape_vector(op._inputs[0], depth + 1)
        if isinstance(index, slice) and known is not None:
            return known[index]
    length = tensor._shape
    if length is not None and len(length) == 1 and length[0] is not None:
        return (None,) * length[0]
    return None
