"""`tf.spectral`: the old home of the Fourier and cosine transforms."""

from __future__ import annotations

from opdock.ops.composed.signal_windows import dct, idct
from opdock.ops.fft import (
    fft,
    fft2d,
    fft3d,
    ifft,
    ifft2d,
    ifft3d,
    irfft,
    irfft2d,
    irfft3d,
    rfft,
    rfft2d,
    rfft3d,
)  # fmt: skip

__all__ = [
    "dct", "fft", "fft2d", "fft3d", "idct", "ifft", "ifft2d", "ifft3d", "irfft", "irfft2d",
    "irfft3d", "rfft", "rfft2d", "rfft3d",
]  # fmt: skip
