"""Portable kernels of the Fourier transforms: the array API's fft extension."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opdock.dtypes import COMPLEX
from opdock.kernels.array_api import dtype_of, ints, invalid
from opdock.kernels.portable import portable
from opdock.kernels.select.signature import NodeSig

_SUFFIXES = {"": 1, "2D": 2, "3D": 3}


def _axes(op: str) -> tuple[int, ...]:
    rank = next(n for s, n in sorted(_SUFFIXES.items(), reverse=True) if op.endswith(s))
    return tuple(range(-rank, 0))


@portable(
    *(f"{way}FFT{s}" for way in ("", "I") for s in _SUFFIXES), extension="fft", Tcomplex=COMPLEX
)
def transform(xp: Any, sig: NodeSig) -> Callable[[Any], Any]:
    """The transform of complex numbers, forward or back."""
    axes = _axes(sig.op)
    fn = xp.fft.ifftn if sig.op.startswith("I") else xp.fft.fftn

    def run(x: Any) -> Any:
        if len(x.shape) < len(axes):
            raise invalid(f"Input must have rank of at least {len(axes)} but got: {len(x.shape)}")
        if 0 in tuple(x.shape):
            return xp.zeros_like(x)
        return xp.astype(fn(x, axes=axes), x.dtype, copy=False)

    return run


@portable(
    *(f"{way}RFFT{s}" for way in ("", "I") for s in _SUFFIXES),
    extension="fft",
    host_inputs=("fft_length",),
)
def real_transform(xp: Any, sig: NodeSig) -> Callable[[Any, Any], Any]:
    """The transform of real numbers, forward or back; the input is cropped to length."""
    axes, inverse = _axes(sig.op), sig.op.startswith("I")
    fn = xp.fft.irfftn if inverse else xp.fft.rfftn
    dtype = dtype_of(xp, sig.out_dtypes[0])

    def run(x: Any, fft_length: Any) -> Any:
        if len(x.shape) < len(axes):
            raise invalid(f"Input must have rank of at least {len(axes)} but got: {len(x.shape)}")
        lengths = ints(fft_length)
        if len(lengths) != len(axes):
            raise invalid(f"fft_length must have shape [{len(axes)}]")
        if min(lengths) < 0:
            raise invalid(f"fft_length must be >= 0, but got: {min(lengths)}")
        for axis, length in zip(axes, lengths, strict=True):
            least = length // 2 + 1 if inverse and axis == -1 else length
            if 0 < x.shape[axis] < least:
                raise invalid(
                    f"Input dimension {len(x.shape) + axis} must have length of at least {least} "
                    f"but got: {x.shape[axis]}"
                )
        if 0 in tuple(x.shape) or 0 in lengths:
            last = lengths[-1] if inverse or not lengths[-1] else lengths[-1] // 2 + 1
            batch = tuple(x.shape)[: len(x.shape) - len(axes)]
            return xp.zeros((*batch, *lengths[:-1], last), dtype=dtype)
        return xp.astype(fn(x, s=tuple(lengths), axes=axes), dtype, copy=False)

    return run
