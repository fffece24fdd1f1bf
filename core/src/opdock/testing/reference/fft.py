"""What the Fourier transforms compute: sums of products with roots of unity."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]
Attrs = dict[str, Any]


def _transform(x: Array, axis: int, sign: int) -> Array:
    """X[k] = sum of x[n] exp(sign 2 pi i k n / N), over one axis."""
    n = x.shape[axis]
    k = np.arange(n)
    roots = np.exp(sign * 2j * np.pi * np.outer(k, k) / max(n, 1))
    return np.moveaxis(np.tensordot(roots, np.moveaxis(x, axis, 0), 1), 0, axis)


def _forward(x: Array, rank: int) -> Array:
    for axis in range(-rank, 0):
        x = _transform(x, axis, -1)
    return x


def _backward(x: Array, rank: int) -> Array:
    for axis in range(-rank, 0):
        x = _transform(x, axis, 1) / max(x.shape[axis], 1)
    return x


def _fit(x: Array, axis: int, length: int) -> Array:
    """Crops or zero-pads one axis."""
    x = np.moveaxis(x, axis, 0)[:length]
    padding = [(0, length - len(x))] + [(0, 0)] * (x.ndim - 1)
    return np.moveaxis(np.pad(x, padding), 0, axis)


def _complex(rank: int, transform: Callable[[Array, int], Array]) -> Callable[..., Array]:
    def fn(attrs: Attrs, x: Array) -> Array:
        """The transform over the last axes."""
        return transform(x, rank)

    return fn


def _real(rank: int) -> Callable[..., Array]:
    def fn(attrs: Attrs, x: Array, fft_length: Array) -> Array:
        """The half of the spectrum of real numbers that determines the rest."""
        for axis, length in zip(range(-rank, 0), fft_length, strict=True):
            x = _fit(x, axis, int(length))
        return _forward(x.astype(np.complex128), rank)[..., : int(fft_length[-1]) // 2 + 1]

    return fn


def _real_inverse(rank: int) -> Callable[..., Array]:
    def fn(attrs: Attrs, x: Array, fft_length: Array) -> Array:
        """Real numbers from half of their spectrum."""
        length = int(fft_length[-1])
        for axis, size in zip(range(-rank, -1), fft_length[:-1], strict=True):
            x = _fit(x, axis, int(size))
        x = _fit(x, -1, length // 2 + 1)
        for axis in range(-rank, -1):
            x = _transform(x, axis, 1) / max(x.shape[axis], 1)
        full = np.zeros((*x.shape[:-1], length), np.complex128)
        for k in range(length):
            full[..., k] = x[..., k] if k <= length // 2 else np.conj(x[..., length - k])
        # The transform of a real signal is real at zero and at the highest frequency.
        full[..., 0] = full[..., 0].real
        if length % 2 == 0:
            full[..., length // 2] = full[..., length // 2].real
        return _backward(full, 1).real

    return fn


for _rank, _suffix in ((1, ""), (2, "2D"), (3, "3D")):
    reference(f"FFT{_suffix}")(_complex(_rank, _forward))
    reference(f"IFFT{_suffix}")(_complex(_rank, _backward))
    reference(f"RFFT{_suffix}")(_real(_rank))
    reference(f"IRFFT{_suffix}")(_real_inverse(_rank))
