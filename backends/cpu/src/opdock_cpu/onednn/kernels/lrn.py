"""Local response normalization on oneDNN."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from opdock.plugin import KernelTable, NodeSig, checks
from opdock_cpu.onednn import norm as primitives
from opdock_cpu.onednn.kernels.common import F32, PRIORITY, Array, PerShape, declined

__all__ = ["table"]

table = KernelTable()

_F32: Final = np.dtype(np.float32)
_FAST: Final = 2
"""The neighbours on each side for which oneDNN generates code: with others it takes five times as
long as the loop of `opdock_cpu.kernels.lrn`."""


def _dims(shape: tuple[int, ...]) -> tuple[int, ...]:
    batch, *space, channels = shape
    return (batch, channels, *space)


def _when(sig: NodeSig) -> bool | str:
    why = declined(sig)
    if why:
        return why
    if any(len(s or ()) != 4 for s in sig.in_shapes):
        return "the input has not four dimensions"
    return True


def _when_forward(sig: NodeSig) -> bool | str:
    why = _when(sig)
    if why is True and sig.attrs["depth_radius"] != _FAST:
        return f"oneDNN is quick with a depth_radius of {_FAST} only"
    return why


def _parameters(attrs: Any) -> tuple[int, float, float, float]:
    # oneDNN divides alpha by the window; TF does not.
    window = 2 * int(attrs["depth_radius"]) + 1
    return window, float(attrs["alpha"]) * window, float(attrs["beta"]), float(attrs["bias"])


@table.binder("LRN", T=F32, out=True, priority=PRIORITY, when=_when_forward)
def lrn(sig: NodeSig) -> Callable[..., Array]:
    """Divides by a power of the sum of squares over neighbouring channels."""
    parameters = _parameters(sig.attrs)

    def make(x: Array) -> Callable[..., Any]:
        return primitives.lrn(_dims(x.shape), *parameters).run

    shapes = PerShape(make)

    def run(x: Array, out: Array | None = None) -> Array:
        if out is None:
            out = np.empty(x.shape, _F32)
        if x.size:
            shapes.find(x.shape, x)(x, out)
        return out

    return run


def _when_grad(sig: NodeSig) -> bool | str:
    why = _when(sig)
    if why is not True:
        return why
    dims = _dims(tuple(n or 0 for n in sig.in_shapes[1] or ()))
    if not primitives.has_lrn_gradient(dims, *_parameters(sig.attrs)):
        return "oneDNN has no fast gradient for these sizes"
    return True


@table.binder("LRNGrad", T=F32, out=True, priority=PRIORITY, when=_when_grad)
def lrn_grad(sig: NodeSig) -> Callable[..., Array]:
    """The gradient of `lrn` with respect to its input."""
    parameters = _parameters(sig.attrs)

    def make(x: Array) -> Callable[..., Any]:
        return primitives.lrn_gradient(_dims(x.shape), *parameters)

    shapes = PerShape(make)

    def run(grad: Array, x: Array, y: Array, out: Array | None = None) -> Array:
        if not grad.shape == x.shape == y.shape:
            raise checks.invalid(
                "input_grads, input_image and output_image must have the same shape; got "
                f"{[list(a.shape) for a in (grad, x, y)]}"
            )
        if out is None:
            out = np.empty(x.shape, _F32)
        if x.size:
            shapes.find(x.shape, x)(x, grad, out)
        return out

    return run
