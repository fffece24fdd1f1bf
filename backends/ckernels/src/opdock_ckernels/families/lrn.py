"""Local response normalization: sums over a band of neighbouring channels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opdock.plugin import FLOATS, KernelTable, NodeSig
from opdock_ckernels.dialect import TYPES
from opdock_ckernels.narrow import computed, widened
from opdock_ckernels.protocols import Array

__all__ = ["table"]

table = KernelTable()

_SOURCE = """
#define PLACE \\
  i64 i = GLOBAL_ID(0); \\
  if (i >= n) return; \\
  int ch = i % c; \\
  int low = ch - radius > 0 ? -radius : -ch, high = c - 1 - ch < radius ? c - 1 - ch : radius;
KERNEL void norm(GLOBAL const T* x, GLOBAL T* y, int apply, i64 n, int c, int radius, T bias,
                 T alpha, T beta) {
  PLACE
  T total = 0;
  for (int k = low; k <= high; ++k) total += x[i + k] * x[i + k];
  total = bias + alpha * total;
  y[i] = apply ? x[i] * pow(total, -beta) : total;
}
KERNEL void backward(GLOBAL const T* g, GLOBAL const T* x, GLOBAL const T* y, GLOBAL const T* norm,
                     GLOBAL T* out, i64 n, int c, int radius, T alpha, T beta) {
  PLACE
  T shared = 0;
  for (int k = low; k <= high; ++k) shared += g[i + k] * y[i + k] / norm[i + k];
  out[i] = g[i] * pow(norm[i], -beta) - 2 * alpha * beta * x[i] * shared;
}
"""


class _Band:
    """A node's numbers and kernels."""

    def __init__(self, sig: NodeSig) -> None:
        dtype = computed(sig.in_dtypes[0])
        self.device, self._type = sig.device, TYPES[dtype.name]
        self.radius = int(sig.attrs["depth_radius"])
        self.bias, self.alpha, self.beta = (
            dtype.np.type(sig.attrs[k]) for k in ("bias", "alpha", "beta")
        )

    def kernel(self, name: str) -> Any:
        """A kernel of the program."""
        return self.device.kernel(_SOURCE, name, T=self._type)

    def sizes(self, x: Array) -> tuple[Any, ...]:
        """Elements, channels, and how far the band reaches."""
        channels = x.shape[-1]
        return np.int64(x.size), np.int32(channels), np.int32(min(self.radius, channels))

    def norm(self, x: Array, apply: bool) -> Array:
        """The band's energy, or `x` divided by its power."""
        out: Array = self.device.allocate(x.shape, x.dtype)
        numbers = (self.bias, self.alpha, self.beta)
        self.device.launch(
            self.kernel("norm"), x.size, x, out, np.int32(apply), *self.sizes(x), *numbers
        )
        return out


@table.binder("LRN", T=FLOATS)
def lrn(sig: NodeSig) -> Callable[[Array], Array]:
    """Divides by a power of the neighbours' energy."""
    band = _Band(sig)
    return widened(sig.device, sig.in_dtypes[0], lambda x: band.norm(x, apply=True))


@table.binder("LRNGrad", T=FLOATS)
def lrn_grad(sig: NodeSig) -> Callable[[Array, Array, Array], Array]:
    """The gradient; the band is symmetric, so the neighbours' share is a band's sum again."""
    device, band = sig.device, _Band(sig)
    backward = band.kernel("backward")

    def run(grad: Array, x: Array, y: Array) -> Array:
        norm = band.norm(x, apply=False)
        out: Array = device.allocate(x.shape, x.dtype)
        device.launch(
            backward, x.size, grad, x, y, norm, out, *band.sizes(x), band.alpha, band.beta
        )
        return out

    return widened(device, sig.in_dtypes[0], run)
