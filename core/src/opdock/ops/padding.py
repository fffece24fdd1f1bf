"""Tensors with margins: constant and mirrored padding."""

from __future__ import annotations

from typing import Any

import numpy as np

from opdock import shapes
from opdock.graph.nodes.constant_value import constant_value
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Operation, Tensor, has_graph
from opdock.ops.array import rank, reshape, shape
from opdock.ops.joining import stack
from opdock.ops.registry import PerAxis, ShapeSig, Traits, define_op
from opdock.ops.slicing import slice
from opdock.ops.support import array_util
from opdock.shapes import Shape

__all__ = ["pad"]

_ATTRS = "T: type, Tpaddings: {int32, int64} = DT_INT32"
_MODE = ", mode: {'REFLECT', 'SYMMETRIC'}"

pad_op = define_op("Pad", "input: T, paddings: Tpaddings -> output: T", _ATTRS)
pad_v2_op = define_op(
    "PadV2", "input: T, paddings: Tpaddings, constant_values: T -> output: T", _ATTRS
)
mirror_pad_op = define_op("MirrorPad", "input: T, paddings: Tpaddings -> output: T", _ATTRS + _MODE)
mirror_pad_grad_op = define_op(
    "MirrorPadGrad", "input: T, paddings: Tpaddings -> output: T", _ATTRS + _MODE
)
for _op in (pad_op, pad_v2_op, mirror_pad_op, mirror_pad_grad_op):
    _op.declare(Traits(layout=PerAxis((1,))))


def _amounts(sig: ShapeSig) -> list[tuple[int, int]] | None:
    """The constant paddings, a pair per dimension; ValueError when one is negative."""
    values = sig.const(1)
    if values is None:
        return None
    if (np.asarray(values) < 0).any():
        raise ValueError("Paddings must be non-negative")
    return [(int(a), int(b)) for a, b in values]


@pad_op.shape
@pad_v2_op.shape
@mirror_pad_op.shape
def _pad_shape(sig: ShapeSig) -> Shape:
    paddings = shapes.with_rank(sig.shapes[1], 2)
    array_util.with_dim(paddings[1], 2)
    source = sig.shapes[0]
    if paddings[0] is not None:
        source = shapes.with_rank(source, paddings[0])
    amounts = _amounts(sig)
    if amounts is None:
        return None if source is None else (None,) * len(source)
    source = shapes.with_rank(source, len(amounts))
    return tuple(
        array_util.add(d, before + after)
        for d, (before, after) in zip(source, amounts, strict=True)
    )


@mirror_pad_grad_op.shape
def _mirror_pad_grad_shape(sig: ShapeSig) -> Shape:
    paddings = shapes.with_rank(sig.shapes[1], 2)
    if paddings[0] is None:
        return None
    source = shapes.with_rank(sig.shapes[0], paddings[0])
    shapes.merge(paddings, (paddings[0], 2))
    amounts = _amounts(sig)
    if amounts is None:
        return (None,) * len(source)
    return tuple(
        array_util.subtract(d, before + after)
        for d, (before, after) in zip(source, amounts, strict=True)
    )


@pad_op.gradient
@pad_v2_op.gradient
def _pad_grad(op: Operation, grad: Any) -> list[Any]:
    source, paddings = op.inputs[0], op.inputs[1]
    amounts = constant_value(paddings)
    begin: Any
    if amounts is not None:
        begin = amounts[:, 0]
    else:
        begin = reshape(slice(paddings, [0, 0], stack([rank(source), 1])), [-1])
    out = slice(grad, begin, shape(source, out_type=paddings.dtype))
    return [out, *[None] * (len(op.inputs) - 1)]


@mirror_pad_op.gradient
def _mirror_pad_gradient(op: Operation, grad: Any) -> list[Any]:
    return [mirror_pad_grad_op(grad, op.inputs[1], mode=op.attrs["mode"]), None]


@mirror_pad_grad_op.gradient
def _mirror_pad_grad_gradient(op: Operation, grad: Any) -> list[Any]:
    return [mirror_pad_op(grad, op.inputs[1], mode=op.attrs["mode"]), None]


@extensible
def pad(
    tensor: Any,
    paddings: Any,
    mode: str = "CONSTANT",
    name: str | None = None,
    constant_values: Any = 0,
) -> Tensor:
    """Adds margins to a tensor.

    Args:
        tensor: a tensor.
        paddings: an integer tensor of shape [rank, 2]: the margins before and after in each
            dimension.
        mode: "CONSTANT"; "REFLECT", which mirrors without repeating the border; or "SYMMETRIC",
            which repeats it.
        name: a name for the operation.
        constant_values: the value of a constant margin, of the type of `tensor`.

    Returns:
        A tensor of the type of `tensor`.

    Raises:
        ValueError: the mode is unknown, or the paddings do not fit the rank.
    """
    mode = mode.upper()
    if mode == "CONSTANT":
        if (
            not has_graph(constant_values)
            and np.ndim(constant_values) == 0
            and constant_values == 0
        ):
            out = pad_op(tensor, paddings, name=name)
        else:
            out = pad_v2_op(tensor, paddings, constant_values, name=name)
    elif mode in ("REFLECT", "SYMMETRIC"):
        out = mirror_pad_op(tensor, paddings, mode=mode, name=name)
    else:
        raise ValueError(f"Unknown padding mode: {mode}")
    _refine(out, paddings)
    return out  # type: ignore[no-any-return]


def _refine(out: Tensor, paddings: Any) -> None:
    """Uses the rows of `paddings` that are known where the whole is not."""
    if shapes.is_fully_defined(out.raw_shape):
        return
    source = out.op.inputs[0].raw_shape
    if source is None:
        return
    if not isinstance(paddings, (list, tuple)) or len(paddings) != len(source):
        return
    dims: list[int | None] = []
    for row, dim in zip(paddings, source, strict=True):
        amounts = [constant_value(v) if isinstance(v, Tensor) else v for v in _pair(row)]
        if dim is None or any(v is None for v in amounts):
            dims.append(None)
        else:
            dims.append(dim + sum(int(v) for v in amounts if v is not None))
    out.set_shape(dims)


def _pair(row: Any) -> list[Any]:
    if isinstance(row, Tensor):
        value = constant_value(row)
        return [None, None] if value is None else list(value)
    return list(row)
