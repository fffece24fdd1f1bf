"""What margins hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]
Attrs = dict[str, Any]


def _padded(x: Array, paddings: Array, value: Any) -> Array:
    lengths = [d + int(a) + int(b) for d, (a, b) in zip(x.shape, paddings, strict=True)]
    out = np.full(lengths, value, x.dtype)
    for place in np.ndindex(*x.shape):
        out[tuple(p + int(a) for p, (a, _) in zip(place, paddings, strict=True))] = x[place]
    return out


@reference("Pad")
def pad(attrs: Attrs, x: Array, paddings: Array) -> Array:
    """Zeros, False or empty strings around the input."""
    return _padded(x, paddings, b"" if x.dtype.kind in "OSU" else 0)


@reference("PadV2")
def pad_v2(attrs: Attrs, x: Array, paddings: Array, value: Array) -> Array:
    """One value around the input."""
    return _padded(x, paddings, value[()])


def _mirrored(place: int, size: int, mode: str) -> int:
    """The index that a mirror at each end shows at `place`."""
    first, last = (-1, 2 * size - 1) if mode == "SYMMETRIC" else (0, 2 * size - 2)
    if place < 0:
        return first - place
    return last - place if place >= size else place


def _sources(shape: tuple[int, ...], paddings: Array, mode: str) -> Any:
    """Pairs of (place in the padded tensor, place in the input)."""
    lengths = [d + int(a) + int(b) for d, (a, b) in zip(shape, paddings, strict=True)]
    for place in np.ndindex(*lengths):
        yield (
            place,
            tuple(
                _mirrored(p - int(a), d, mode)
                for p, d, (a, _) in zip(place, shape, paddings, strict=True)
            ),
        )


@reference("MirrorPad")
def mirror_pad(attrs: Attrs, x: Array, paddings: Array) -> Array:
    """Mirrors around the input."""
    out = np.empty([d + int(a + b) for d, (a, b) in zip(x.shape, paddings, strict=True)], x.dtype)
    for place, source in _sources(x.shape, paddings, attrs["mode"]):
        out[place] = x[source]
    return out


@reference("MirrorPadGrad")
def mirror_pad_grad(attrs: Attrs, grad: Array, paddings: Array) -> Array:
    """What each element was copied to, added up."""
    out = np.zeros(
        [d - int(a + b) for d, (a, b) in zip(grad.shape, paddings, strict=True)], grad.dtype
    )
    for place, source in _sources(out.shape, paddings, attrs["mode"]):
        out[source] += grad[place]
    return out
