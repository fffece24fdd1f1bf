"""The gradient of a bias on oneDNN: sums of columns are a product with a row of ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from opdock.plugin import KernelTable, NodeSig
from opdock_cpu.onednn.kernels.common import F32, PRIORITY, Array, PerShape, declined, size
from opdock_cpu.onednn.matmul import product
from opdock_cpu.onednn.memory import dense

__all__ = ["table"]

table = KernelTable()

_WORTH: Final = 1 << 16


def _when(sig: NodeSig) -> bool | str:
    why = declined(sig)
    if why:
        return why
    if sig.attrs["data_format"] == "NCHW":
        return "channels first: NumPy's sums are as fast"
    total = size(sig.in_shapes[0])
    return total >= _WORTH or f"{total} elements; oneDNN pays from {_WORTH}"


@table.binder("BiasAddGrad", T=F32, out=True, priority=PRIORITY, when=_when)
def bias_add_grad(sig: NodeSig) -> Callable[..., Array]:
    """Sums over all dimensions but the channels."""

    def make(grad: Array) -> Callable[..., None]:
        channels = grad.shape[-1]
        rows = grad.size // channels
        ones = np.ones((1, rows), np.float32)
        run = product(
            dense((1, rows)), dense((rows, channels)), dense((1, channels)),
            count=1,
        ).run  # fmt: skip
        return lambda grad, out: run(ones, grad, out)

    shapes = PerShape(make)

    def run(grad: Array, out: Array | None = None) -> Array:
        if out is None:
            out = np.zeros(grad.shape[-1], np.float32)
        if grad.size:
            shapes.find(grad.shape, grad)(grad, out)
        else:
            out[...] = 0
        return out

    return run
