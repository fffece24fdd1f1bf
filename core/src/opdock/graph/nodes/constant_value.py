"""Values of tensors that are known while the graph is built.

`constant_value` knows what TensorFlow's function of that name knows, no more: whether a static
assertion fires depends on it. Shape functions ask `constant_for_shapes`, which computes any small
stateless expression over constants.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from opdock import dtypes, shapes
from opdock.graph.nodes import shape_arithmetic
from opdock.graph.nodes.operation import Operation, Tensor, is_tensor
from opdock.graph.nodes.registry import MOST_RANK, Handle, PartialShape, ShapeSig
from opdock.shapes import Shape

Array = np.ndarray[Any, Any]
_MAX_DEPTH: Final = 100
_MAX_ELEMENTS: Final = 4096
_MOST: Final = 1 << 24


# ---------------------------------------------------------------- what programs may ask
def constant_value(tensor: Any, partial: bool = False) -> Any:
    """The value of `tensor` as an array if it is known without running the graph, else None.

    A tensor whose value was asked for and known cannot be fed any more: the graph may have been
    built on it.

    Args:
        tensor: a Tensor of any graph; anything that is no tensor is returned as it is.
        partial: whether a stack may be known in part, with None for what is not.
    """
    if not is_tensor(tensor):
        return tensor
    if not isinstance(tensor, Tensor):
        return None
    if tensor._known is not None:
        return np.array(tensor._known)
    value = _static(tensor._op, tensor, partial)
    if value is not None:
        tensor._op.graph.prevent_feeding(tensor)
    return value


get_static_value = constant_value


def _static(op: Operation, tensor: Tensor, partial: bool) -> Array | None:
    if op.type == "Const":
        return np.array(op.attrs["value"])
    if op.type in ("Shape", "Size", "Rank", "VariableShape"):
        return _ABOUT_SHAPES[op.type](op, tensor)
    if op.type == "Pack":
        if op.attrs["axis"] != 0:
            return None
        parts = [constant_value(t, partial) for t in op._inputs]
        unknown = any(p is None for p in parts)
        return None if unknown and not partial else _stacked(parts)
    if op.type == "Fill":
        known, value = tensor._shape, constant_value(op._inputs[1])
        if known is None or None in known or value is None:
            return None
        dims = [d for d in known if d is not None]
        return np.broadcast_to(value, dims)  # whatever its size, one element
    if op.type not in ("Range", "Cast", "Concat", "ConcatV2", "Equal", "NotEqual"):
        return None
    if tensor._shape is None or math.prod(d or 0 for d in tensor._shape) > _MOST:
        return None
    inputs = [constant_value(t) for t in op._inputs]
    if any(v is None for v in inputs):
        return None
    found = _computed(op, inputs)
    return None if found is None else found[tensor._value_index]


def constant_value_as_shape(tensor: Tensor) -> shapes.TensorShape:
    """The shape that a tensor of sizes stands for, as far as it is known; -1 is unknown.

    Raises:
        ValueError: a scalar that is not known to be -1, or a tensor of more than one dimension.
    """
    if tensor._shape == ():
        value = constant_value(tensor)
        if value is None or value != -1:
            raise ValueError(
                f"Received a scalar {'with unknown value' if value is None else value} as shape; "
                "require a statically known scalar with value '-1' to describe an unknown shape."
            )
        return shapes.TensorShape(None)
    shapes.with_rank(tensor._shape, 1)
    return shapes.TensorShape(known_shape(tensor))


def _stacked(parts: list[Any]) -> Array:
    if all(p is not None for p in parts):
        return np.stack(parts)
    out = np.empty(len(parts), object)
    out[:] = parts
    return out


# ---------------------------------------------------------------- what shape functions may ask
def constant_for_shapes(tensor: Tensor) -> Array | PartialShape | Handle | None:
    """The value of `tensor`, or what is known of it when it is a shape vector or a handle."""
    if tensor._dtype._is_handle:
        return handle_of(tensor)
    value = _value(tensor, 0)
    if value is not None:
        return value
    if tensor._shape is not None and len(tensor._shape) == 1:
        known = _shape_vector(tensor, 0)
        if known is not None:
            return PartialShape(known)
    return None


def handle_of(tensor: Tensor) -> Handle | None:
    """What is known of the variable or the list of which a tensor is the handle.

    It may be made in this graph or in one around it.
    """
    passed: list[Tensor] = []  # lists with the elements of another
    found: Handle | None = None
    for _ in range(_MAX_DEPTH):
        if tensor._known_handle is not None:
            found = tensor._known_handle
            break
        op = tensor._op
        if op.type == "VarHandleOp":
            return Handle(op.attrs["dtype"], op.attrs["shape"])
        if op._spec.elements_fn is not None and tensor._value_index == 0:
            passed.append(tensor)
            kept = op.graph._known_values.get(tensor)
            known = _elements(op) if kept is None else kept
            if not isinstance(known, int):
                found = known
                break
            if not op._inputs:
                break
            tensor = op._inputs[known]
            continue
        if op.type in _SAME and op._inputs:
            tensor = op._inputs[tensor._value_index]
            continue
        outer = _outside(tensor)
        if outer is None:
            return None
        tensor = outer
    if found is not None:
        for tensor in passed:
            tensor._op.graph._known_values[tensor] = found
    return found


def _outside(tensor: Tensor) -> Tensor | None:
    """What a parameter of a branch or of a body stands for in the graph around it, if captured."""
    found: Tensor | None = getattr(tensor._op.graph, "outside", {}).get(tensor)
    return found


def _elements(op: Operation) -> Handle | int | None:
    inputs, fn = op._inputs, op._spec.elements_fn
    assert fn is not None
    sig = ShapeSig(
        op._spec, op.name, [t._shape for t in inputs], [t._dtype for t in inputs], op.attrs,
        len(op.outputs), lambda i: constant_for_shapes(inputs[i]),
    )  # fmt: skip
    return fn(sig)


def known_shape(tensor: Tensor) -> Shape:
    """A 1-D integer tensor read as a shape: known entries, None for -1 and the unknown."""
    value = constant_for_shapes(tensor)
    if isinstance(value, PartialShape):
        return value.shape
    if value is not None and not isinstance(value, Handle):
        return tuple(None if d < 0 else int(d) for d in value.reshape(-1))
    length = tensor._shape
    if length is not None and len(length) == 1 and length[0] is not None:
        return (None,) * length[0] if length[0] <= MOST_RANK else None
    return None


def _value(tensor: Tensor, depth: int) -> Array | None:
    if tensor._known is not None:
        held: Array = tensor._known
        return held
    op = tensor._op
    if op.type == "Const":
        value: Array = op.attrs["value"]
        return value
    about = _ABOUT_SHAPES.get(op.type)
    if about is not None:
        return about(op, tensor)
    if depth > _MAX_DEPTH:
        return None
    if op.type in _SAME:
        return _value(op._inputs[tensor._value_index], depth + 1)
    if not op._inputs:
        outer = _outside(tensor)
        return None if outer is None else _value(outer, depth + 1)
    if op.type == "StridedSlice":
        entry = _entry_of_shape(op, tensor, depth + 1)
        if entry is not None:
            return entry
    known = op.graph._known_values
    results: list[Array] | None = known.get(op)
    if results is None:
        if not _computable(op):
            return None
        inputs = []
        for source in op._inputs:
            value_of_input = _value(source, depth + 1)
            if value_of_input is None:
                return None
            inputs.append(value_of_input)
        results = _computed(op, inputs)
        if results is None:
            return None
        known[op] = results
    return results[tensor._value_index]


def _computable(op: Operation) -> bool:
    """Whether the op is a small pure function of its inputs."""
    if not op._inputs or op._spec.stateful or op.type == "PlaceholderWithDefault":
        return False
    for result in op.outputs:
        size = shapes.num_elements(result._shape)
        if size is not None and size > _MAX_ELEMENTS:
            return False
        base = result._dtype.base_dtype
        if result._dtype._is_ref_dtype or base not in dtypes.NUMBERS | {dtypes.bool}:
            return False
    return all(_small(source._shape) for source in op._inputs)


def _small(shape: Shape) -> bool:
    size = shapes.num_elements(shape)
    return size is None or size <= _MAX_ELEMENTS


def _computed(op: Operation, inputs: list[Array]) -> list[Array] | None:
    found = shape_arithmetic.compute(op, inputs)
    if found is not None:
        return found
    # By name: kernels stand above this layer, and most programs never need them here.
    results: list[Array] | None
    results = importlib.import_module("opdock.kernels.select.constants").compute(op, inputs)
    return results


def _shape(op: Operation, tensor: Tensor) -> Array | None:
    known = op._inputs[tensor._value_index]._shape
    if known is None or None in known:
        return None
    return np.array(known, tensor._dtype.np)


def _size(op: Operation, tensor: Tensor) -> Array | None:
    size = shapes.num_elements(op._inputs[0]._shape)
    return None if size is None else np.array(size, tensor._dtype.np)


def _rank(op: Operation, tensor: Tensor) -> Array | None:
    known = op._inputs[0]._shape
    return None if known is None else np.array(len(known), tensor._dtype.np)


def _variable_shape(op: Operation, tensor: Tensor) -> Array | None:
    handle = handle_of(op._inputs[0])
    if handle is None or handle.shape is None or None in handle.shape:
        return None
    return np.array(handle.shape, tensor._dtype.np)


_ABOUT_SHAPES: Final[dict[str, Callable[[Operation, Tensor], Array | None]]] = {
    "Shape": _shape, "ShapeN": _shape, "Size": _size, "Rank": _rank,
    "VariableShape": _variable_shape,
}  # fmt: skip
# They pass values on; no kernel does that.
_SAME: Final = frozenset({"Identity", "IdentityN", "StopGradient", "PreventGradient", "Snapshot"})


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
    if op.type == "Cast" or op.type in _SAME:
        return _shape_vector(op._inputs[tensor._value_index], depth + 1)
    if not op._inputs and (outer := _outside(tensor)) is not None:
        return _shape_vector(outer, depth + 1)
    # Of tensors of unknown rank too: they are numbers, or what they make would be no shape.
    if op.type == "Pack" and (tensor._shape is None or len(tensor._shape) == 1):
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
        return (None,) * length[0] if length[0] <= MOST_RANK else None
    return None


def _entry_of_shape(op: Operation, tensor: Tensor, depth: int) -> Array | None:
    """One entry of a shape vector of which others may be unknown."""
    if tensor._shape != () or not tensor._dtype.is_integer:
        return None
    index = _simple_index(op, depth)
    known = _shape_vector(op._inputs[0], depth) if isinstance(index, int) else None
    if known is None or not -len(known) <= index < len(known):  # type: ignore[operator]
        return None
    entry = known[index]  # type: ignore[index]
    return None if entry is None else np.array(entry, tensor._dtype.np)


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
