"""Agnostic: ops that do as well on a transposed input, and what becomes of their attributes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from opdock import shapes
from opdock.compiler.ir.block import Node, Value
from opdock.compiler.place.formats import Perm, inverse, reordered
from opdock.compiler.rules.rewrite import constant
from opdock.dtypes import as_dtype
from opdock.graph.nodes.traits import AlongAxis, DropsAxes, Elementwise, Layout, PerAxis, Reduction
from opdock.shapes import Shape

if TYPE_CHECKING:
    from opdock.compiler.place.layout import _Walk


def turn(node: Node, perm: Perm, walk: _Walk) -> Node | None:
    """The node on the turned inputs, put in its place; None when it has to see them as they were.

    Args:
        node: one of its inputs at least is the transpose of another value by `perm`.
        perm: the permutation.
        walk: knows what is turned, and makes nodes.
    """
    if len(perm) != 4 or not _pays(node, walk):
        return None
    match _layout(node):
        case Elementwise() as layout:
            return _elementwise(node, perm, walk, layout)
        case Reduction() as layout:
            return _reduction(node, perm, walk, layout)
        case DropsAxes() as layout:
            return _drop(node, perm, walk, layout)
        case PerAxis() as layout:
            return _per_axis(node, perm, walk, layout)
        case AlongAxis() as layout:
            return _along(node, perm, walk, layout)
    return None


def _layout(node: Node) -> Layout | None:
    """What the op declares, or what follows from other traits."""
    declared = node.traits.layout
    if declared is None and node.spec is not None:
        if node.spec.expr is not None or node.traits.forwards:
            return Elementwise()
    return declared


def _pays(node: Node, walk: _Walk) -> bool:
    """Whether no more transposes are needed before the node than would be after."""
    full = [v for v in node.inputs if len(v.shape or ()) == 4 and constant(v) is None]
    turned = [v for v in full if walk.is_turned(v, node.target)]
    return len(turned) * 2 >= len(full)


def _shape(shape: Shape, perm: Perm) -> Shape:
    """The shape of a value's turned form."""
    return None if shape is None else tuple(reordered(shape, inverse(perm)))


def _finish(
    node: Node, inputs: list[Value | None], walk: _Walk, outs: list[Shape],
    perms: dict[int, Perm], attrs: dict[str, Any] | None = None,
) -> Node | None:  # fmt: skip
    ready = [v for v in inputs if v is not None]
    if len(ready) < len(inputs):
        return None
    made = walk.node(node, ready, node.attrs if attrs is None else attrs, outs)
    if made is not None:
        walk.replace(node, made, perms)
    return made


def _all_turned(node: Node, perm: Perm) -> dict[int, Perm]:
    return dict.fromkeys(range(len(node.out_dtypes)), perm)


# ---------------------------------------------------------------- elementwise
def _elementwise(node: Node, perm: Perm, walk: _Walk, layout: Elementwise) -> Node | None:
    if len(node.out_shapes[0] or ()) != 4:
        return None
    for i in layout.scalar_or_full:
        shape = node.inputs[i].shape
        if shape is None or len(shape) not in (0, 4):
            return None
    inputs = [_broadcast(v, perm, node, walk) for v in node.inputs]
    outs = [_shape(s, perm) for s in node.out_shapes]
    return _finish(node, inputs, walk, outs, _all_turned(node, perm))


def _broadcast(value: Value, perm: Perm, node: Node, walk: _Walk) -> Value | None:
    """An input that may have fewer dimensions, so that it meets the turned ones as before."""
    shape = value.shape
    if shape is None:
        return None
    if len(shape) == 4:
        return walk.sidewise(value, perm, node)
    if shapes.num_elements(shape) == 1:
        return walk.as_it_was(value)
    array = constant(value)
    wide = (1,) * (4 - len(shape)) + shape
    turned = _shape(wide, perm)
    if array is not None:
        full = array.reshape((1,) * (4 - array.ndim) + array.shape)
        return walk.const(full.transpose(inverse(perm)), value.dtype, node)
    if turned is None or [d for d in wide if d != 1] != [d for d in turned if d != 1]:
        return None
    return _reshaped(walk.as_it_was(value), turned, node, walk) if None not in turned else None


def _reshaped(value: Value, shape: Shape, node: Node, walk: _Walk) -> Value | None:
    """A value of which at most one dimension is not one has the same elements in any order."""
    if sum(d != 1 for d in shape or ()) > 1:
        return None
    attrs = {"T": value.dtype.base_dtype, "Tshape": as_dtype("int32")}
    wanted = walk.const(list(shape or ()), as_dtype("int32"), node)
    made = walk.node(node, [value, wanted], attrs, [shape], "Reshape", f"{value.node.name}/layout")
    if made is None:
        return None
    walk.fresh.append(made)
    return Value(made, 0)


# ---------------------------------------------------------------- reductions
def _axes(node: Node, index: int) -> list[int] | None:
    """The constant axes in an input, none negative."""
    array = constant(node.inputs[index])
    return None if array is None else [int(a) % 4 for a in array.reshape(-1)]


def _reduction(node: Node, perm: Perm, walk: _Walk, layout: Reduction) -> Node | None:
    axes = _axes(node, layout.axes)
    if axes is None:
        return None
    inputs: list[Value | None] = list(node.inputs)
    inputs[0] = walk.sidewise(node.inputs[0], perm, node)
    dtype = node.inputs[layout.axes].dtype
    inputs[layout.axes] = walk.const(sorted(perm[a] for a in axes), dtype, node)
    if node.attrs["keep_dims"]:
        outs = [_shape(node.out_shapes[0], perm)]
        return _finish(node, inputs, walk, outs, {0: perm})
    return _fewer(node, inputs, perm, axes, node.attrs, walk)


def _fewer(
    node: Node, inputs: list[Value | None], perm: Perm, axes: Sequence[int],
    attrs: dict[str, Any], walk: _Walk,
) -> Node | None:  # fmt: skip
    """An op that leaves dimensions out; those that are left must come in the order they had."""
    left = [perm[a] for a in range(4) if a not in axes]
    if left != sorted(left):
        return None
    return _finish(node, inputs, walk, list(node.out_shapes), {}, attrs)


def _drop(node: Node, perm: Perm, walk: _Walk, layout: DropsAxes) -> Node | None:
    shape = node.inputs[0].shape or ()
    dims = [int(d) % 4 for d in node.attrs[layout.attr]]
    if not dims:
        if None in shape:
            return None
        dims = [i for i, d in enumerate(shape) if d == 1]
    attrs = {**node.attrs, layout.attr: sorted(perm[d] for d in dims)}
    return _fewer(node, [walk.sidewise(node.inputs[0], perm, node)], perm, dims, attrs, walk)


# ---------------------------------------------------------------- one entry a dimension
def _per_axis(node: Node, perm: Perm, walk: _Walk, layout: PerAxis) -> Node | None:
    inputs: list[Value | None] = list(node.inputs)
    inputs[0] = walk.sidewise(node.inputs[0], perm, node)
    for i in layout.vectors:
        rows = constant(node.inputs[i])
        if rows is None or len(rows) != 4:
            return None
        inputs[i] = walk.const(rows[list(inverse(perm))], node.inputs[i].dtype, node)
    return _finish(node, inputs, walk, [_shape(node.out_shapes[0], perm)], {0: perm})


# ---------------------------------------------------------------- an axis
def _along(node: Node, perm: Perm, walk: _Walk, layout: AlongAxis) -> Node | None:
    place = layout.axis % len(node.inputs)
    axes = _axes(node, place)
    if axes is None or len(axes) != 1:
        return None
    inputs: list[Value | None] = []
    for i, value in enumerate(node.inputs):
        if i == place:
            inputs.append(walk.const(_like(value, perm[axes[0]]), value.dtype, node))
        elif len(value.shape or ()) == 4:
            inputs.append(walk.sidewise(value, perm, node))
        else:
            inputs.append(walk.as_it_was(value))
    outs = [_shape(s, perm) for s in node.out_shapes]
    return _finish(node, inputs, walk, outs, _all_turned(node, perm))


def _like(value: Value, axis: int) -> Any:
    return axis if value.shape == () else [axis]
