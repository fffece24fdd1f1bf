"""Slices and subscripts: strided copies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opdock.plugin import KernelTable, NodeSig, axes, checks
from opdock_ckernels.families.array import HELD
from opdock_ckernels.protocols import Array
from opdock_ckernels.scattering import copied
from opdock_ckernels.strided import place, spread, strides_of, take

__all__ = ["table"]

table = KernelTable()


@table.binder("Slice", T=HELD, out=True, host_inputs=("begin", "size"))
def slice_(sig: NodeSig) -> Callable[..., Array]:
    """A block of the input."""
    device = sig.device

    def run(x: Array, begin: Any, size: Any, out: Array | None) -> Array:
        where = axes.block(x.shape, begin, size)
        steps = strides_of(x.shape)
        offset = sum(w.start * s for w, s in zip(where, steps, strict=True))
        return take(device, x, [w.stop - w.start for w in where], steps, offset, out)

    return run


def _layout(shape: tuple[int, ...], subscript: Any) -> tuple[list[int], int]:
    """The strides of a subscript's result (new axes included) and where it starts."""
    steps = strides_of(shape)
    strides, offset, dim = [], 0, 0
    for part in subscript:
        if part is None:
            strides.append(0)
            continue
        if isinstance(part, slice):
            start, _, step = part.indices(shape[dim])
            strides.append(step * steps[dim])
            offset += start * steps[dim]
        else:
            offset += (int(part) % max(shape[dim], 1)) * steps[dim]
        dim += 1
    return strides + steps[dim:], offset


@table.binder("StridedSlice", T=HELD, out=True, host_inputs=("begin", "end", "strides"))
def strided_slice(sig: NodeSig) -> Callable[..., Array]:
    """A part of the input by Python's rules."""
    device = sig.device

    def run(x: Array, begin: Any, end: Any, strides: Any, out: Array | None) -> Array:
        found = checks.subscript(sig, x.shape, begin, end, strides)
        steps, offset = _layout(x.shape, found.subscript)
        return take(device, x, [int(n or 0) for n in found.shape], steps, offset, out)

    return run


@table.binder("StridedSliceGrad", T=HELD, host_inputs=("shape", "begin", "end", "strides"))
def strided_slice_grad(sig: NodeSig) -> Callable[..., Array]:
    """Zeros, with the gradient where the slice was taken."""
    device = sig.device

    def run(shape: Any, begin: Any, end: Any, strides: Any, dy: Array) -> Array:
        out: Array = device.allocate(tuple(checks.ints(shape)), dy.dtype)
        found = checks.subscript(sig, out.shape, begin, end, strides)
        checks.check_sliced_grad(dy, found.shape)
        device.fill_zero(out)
        place(device, dy, out, *_layout(out.shape, found.subscript))
        return out

    return run


@table.binder(
    "StridedSliceAssign", "ResourceStridedSliceAssign", T=HELD,
    host_inputs=("begin", "end", "strides"),
)  # fmt: skip
def strided_slice_assign(sig: NodeSig) -> Callable[..., Any]:
    """A variable with another value in a part of it."""
    device, returns_ref = sig.device, sig.op == "StridedSliceAssign"

    def run(cell: Any, begin: Any, end: Any, strides: Any, value: Array) -> Any:
        with cell.lock:
            out = copied(device, cell.read())
            found = checks.subscript(sig, out.shape, begin, end, strides)
            if 0 in found.shape:  # whatever the value is, none of it is written
                return cell if returns_ref else None
            checks.check_sliced_value(value, found.shape)
            wide = spread(device, value, tuple(int(n or 0) for n in found.shape))
            place(device, wide, out, *_layout(out.shape, found.subscript))
            cell.write(out)
        return cell if returns_ref else None

    return run
