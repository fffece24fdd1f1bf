"""Portable kernels of shape changes and broadcasting."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from opdock import shapes
from opdock.kernels.array_api import copy, device_ints, dims, fails, ints, invalid
from opdock.kernels.portable import portable
from opdock.kernels.select.signature import NodeSig


@portable("Reshape", host_inputs=("shape",), may_alias={0: 0})
def reshape(xp: Any, sig: NodeSig) -> Any:
    """The same elements under another shape."""
    source, wanted = sig.in_shapes[0], sig.const(1)
    if wanted is not None and shapes.is_fully_defined(source):
        known = wanted_shape(source, ints(wanted))
        return lambda tensor, shape: xp.reshape(tensor, known)

    def run(tensor: Any, shape: Any) -> Any:
        return xp.reshape(tensor, wanted_shape(tensor.shape, ints(shape)))

    return run


def wanted_shape(source: Any, wanted: list[int]) -> tuple[int, ...]:
    """The shape with its -1 resolved.

    Raises:
        InvalidArgumentError: it does not hold as many elements as `source`.
    """
    size = math.prod(source)
    if wanted.count(-1) > 1:
        first = wanted.index(-1)
        raise invalid(
            f"Only one input size may be -1, not both {first} and {wanted.index(-1, first + 1)}"
        )
    for i, d in enumerate(wanted):
        if d < -1:
            raise invalid(f"Size {i} must be non-negative, not {d}")
    if -1 in wanted:
        # Zeros on both sides cancel, so that the other lengths still say what is missing.
        both = 0 in wanted and 0 in source
        count = math.prod(d for d in source if d) if both else size
        rest = math.prod(d for d in wanted if d > 0)
        if count % rest and not both:
            raise invalid(
                f"Input to reshape is a tensor with {size} values, but the requested shape "
                f"requires a multiple of {rest}"
            )
        wanted = [count // rest if d == -1 else d for d in wanted]
    if math.prod(wanted) != size:
        raise invalid(
            f"Input to reshape is a tensor with {size} values, but the requested shape has "
            f"{math.prod(wanted)}"
        )
    return tuple(wanted)


@portable("ExpandDims", host_inputs=("dim",), may_alias={0: 0})
def expand_dims(xp: Any, sig: NodeSig) -> Any:
    """A dimension of size 1 inserted."""
    known = sig.out_shapes[0]
    if shapes.is_fully_defined(known):
        return lambda tensor, dim: xp.reshape(tensor, known)

    def run(tensor: Any, dim: Any) -> Any:
        axes, n = ints(dim), len(tensor.shape)
        if len(axes) != 1:
            raise invalid("'dim' must be a tensor with a single value")
        if not -n - 1 <= axes[0] <= n:
            raise invalid(f"Tried to expand dim index {axes[0]} for tensor with {n} dimensions.")
        at = axes[0] if axes[0] >= 0 else axes[0] + n + 1
        return xp.reshape(tensor, (*tensor.shape[:at], 1, *tensor.shape[at:]))

    return run


@portable("Squeeze", may_alias={0: 0})
def squeeze(xp: Any, sig: NodeSig) -> Any:
    """Dimensions of size 1 removed."""
    given, known = sig.attrs["squeeze_dims"], sig.out_shapes[0]
    if shapes.is_fully_defined(known) and shapes.is_fully_defined(sig.in_shapes[0]):
        return lambda tensor: xp.reshape(tensor, known)

    def run(tensor: Any) -> Any:
        shape = tensor.shape
        n = len(shape)
        if any(not -n <= a < n for a in given):
            raise invalid(f"Tried to squeeze dim index {given} for tensor with {n} dimensions.")
        axes = {a % n for a in given} if given else {i for i, d in enumerate(shape) if d == 1}
        for axis in sorted(axes):
            if shape[axis] != 1:
                raise invalid(
                    f"Can not squeeze dim[{axis}], expected a dimension of 1, got {shape[axis]}"
                )
        return xp.reshape(tensor, tuple(d for i, d in enumerate(shape) if i not in axes))

    return run


@portable("EnsureShape", may_alias={0: 0})
def ensure_shape(xp: Any, sig: NodeSig) -> Any:
    """The input, if its shape is as expected."""

    def run(tensor: Any) -> Any:
        check_shape(sig, tensor.shape)
        return tensor

    return run


def check_shape(sig: NodeSig, shape: Any) -> None:
    """Raises InvalidArgumentError unless `shape` is what the node's attribute says."""
    wanted = sig.attrs["shape"]
    if not shapes.is_compatible(tuple(shape), wanted):
        source = (*sig.in_names, sig.name)[0]
        raise invalid(
            f"Shape of tensor {source} {dims(shape)} is not compatible with expected "
            f"shape {shapes.text(wanted)}."
        )


@portable("BroadcastTo", host_inputs=("shape",))
def broadcast_to(xp: Any, sig: NodeSig) -> Any:
    """The input repeated along new and size-1 dimensions."""

    def run(tensor: Any, shape: Any) -> Any:
        return copy(xp, xp.broadcast_to(tensor, broadcast_shape(tensor.shape, shape)))

    return run


def broadcast_shape(source: Any, shape: Any) -> tuple[int, ...]:
    """The shape that is asked for; InvalidArgumentError where `source` cannot be repeated to it."""
    wanted = tuple(ints(shape))
    if len(source) > len(wanted):
        raise invalid(
            f"Rank of input ({len(source)}) must be no greater than rank of output shape "
            f"({len(wanted)})."
        )
    if broadcast_shapes(source, wanted) != wanted:
        raise invalid(
            f"Unable to broadcast tensor of shape {dims(source)} to tensor of shape {dims(wanted)}"
        )
    return wanted


def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """The broadcast of shapes; InvalidArgumentError where they do not fit."""
    try:
        return np.broadcast_shapes(*map(tuple, shapes))
    except ValueError:
        raise invalid(f"Incompatible shapes: {' vs. '.join(map(dims, shapes))}") from None


def check_vector_of(name: str, value: Any, size: int | None = None) -> None:
    """Raises InvalidArgumentError unless a vector is one, with `size` elements if that is given."""
    if np.ndim(value) != 1:
        raise invalid(f"{name} must be 1-dimensional{dims(np.shape(value))}")
    if size is not None and np.size(value) != size:
        count = "two" if size == 2 else str(size)
        raise invalid(f"{name} must have {count} elements{dims(np.shape(value))}")


@portable("BroadcastArgs", host_inputs=("s0", "s1"), host_outputs=("r0",))
def broadcast_args(xp: Any, sig: NodeSig) -> Any:
    """The shape of a broadcast."""

    def run(s0: Any, s1: Any) -> Any:
        return np.array(broadcast_shapes(ints(s0), ints(s1)), sig.out_dtypes[0].np)

    return run


@portable("UnravelIndex", host_inputs=("dims",))
def unravel_index(xp: Any, sig: NodeSig) -> Any:
    """Coordinates of flat indices."""

    def run(indices: Any, sizes: Any) -> Any:
        lengths = ints(sizes)
        total = math.prod(lengths)
        outside = math.prod(indices.shape) and (xp.min(indices) < 0) | (xp.max(indices) >= total)
        if fails(xp, outside):
            raise invalid("index is out of bound as with dims")
        flat, rows = xp.reshape(indices, (-1,)), []
        for length in reversed(lengths):
            rows.append(flat % length)
            flat = flat // length
        out = (
            xp.stack(rows[::-1])
            if rows
            else xp.reshape(device_ints(xp, [], indices), (0, len(flat)))
        )
        shape = (len(lengths),) if len(indices.shape) == 0 else (len(lengths), -1)
        return xp.astype(xp.reshape(out, shape), indices.dtype)

    return run
