"""Samples of the Fourier transforms."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples

_RANKS = {"": 1, "2D": 2, "3D": 3}
_SIZES = (4, 3, 6)
_TOL = {"tol": (1e-4, 1e-4), "tol_reason": "sums of up to 72 rounded products"}


def _register(suffix: str, rank: int) -> None:
    inner = _SIZES[-rank:]

    @samples(f"FFT{suffix}", f"IFFT{suffix}", vary="Tcomplex")
    def full(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
        yield Sample([rng.normal(inner)], {}, "plain", **_TOL)  # type: ignore[arg-type]
        yield Sample([rng.normal((2, *inner))], {}, "batch", **_TOL)  # type: ignore[arg-type]
        yield Sample([rng.normal((0, *inner))], {}, "empty", grad=False)

    @samples(f"RFFT{suffix}", f"IRFFT{suffix}")
    def real(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
        for delta, tag in ((0, "plain"), (-1, "cropped")):
            length = np.array([n + delta for n in inner], np.int32)
            grad = rank < 3 or delta == 0
            yield Sample([rng.normal((2, *inner)), length], {}, tag, grad=grad, **_TOL)  # type: ignore[arg-type]

    def bad_length(dtype: Any) -> Iterable[ErrorSample]:
        data, length = np.zeros((4, 4, 4), dtype), np.zeros((rank + 1,), np.int32)
        message = f"Dimension must be {rank} but is {rank + 1}"
        yield ErrorSample([data, length], {}, "ValueError", message, "build")
        # Functions pad what is too short; the op does not.
        short = f"Input dimension {3 - rank} must have length of at least"
        beyond = np.full((rank,), 9, np.int32)
        yield ErrorSample([data, beyond], {}, "InvalidArgumentError", short, "run")

    error_samples(f"RFFT{suffix}")(lambda: bad_length(np.float32))
    error_samples(f"IRFFT{suffix}")(lambda: bad_length(np.complex64))


for _suffix, _rank in _RANKS.items():
    _register(_suffix, _rank)
