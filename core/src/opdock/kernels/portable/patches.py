"""Portable kernels that lay patches out in the depth dimension."""

from __future__ import annotations

import itertools
from typing import Any

from opdock.kernels.array_api import zeros
from opdock.kernels.portable import portable
from opdock.kernels.select.signature import NodeSig


def _geometry(size: int, k: int, stride: int, rate: int, padding: str) -> tuple[int, int, int]:
    """(number of windows, margin before, padded size) of one dimension."""
    window = k + (k - 1) * (rate - 1)
    if padding == "VALID":
        return max(0, -(-(size - window + 1) // stride)), 0, size
    count = -(-size // stride)
    margin = max(0, (count - 1) * stride + window - size)
    return count, margin // 2, size + margin


@portable("ExtractImagePatches")
def extract_image_patches(xp: Any, sig: NodeSig) -> Any:
    """The patches of images under a sliding window."""
    return _extractor(xp, sig, sig.attrs["rates"][1:-1])


@portable("ExtractVolumePatches")
def extract_volume_patches(xp: Any, sig: NodeSig) -> Any:
    """The patches of volumes under a sliding window."""
    return _extractor(xp, sig, [1, 1, 1])


def _extractor(xp: Any, sig: NodeSig, rates: list[int]) -> Any:
    attrs = sig.attrs
    sizes, strides = attrs["ksizes"][1:-1], attrs["strides"][1:-1]

    def run(x: Any) -> Any:
        space = x.shape[1:-1]
        found = [
            _geometry(*args, attrs["padding"])
            for args in zip(space, sizes, strides, rates, strict=True)
        ]
        if any(full != d for (_, _, full), d in zip(found, space, strict=True)):
            shape = (x.shape[0], *(full for _, _, full in found), x.shape[-1])
            wide = zeros(xp, shape, x, sig.out_dtypes[0])
            inner = tuple(slice(a, a + d) for (_, a, _), d in zip(found, space, strict=True))
            wide[(slice(None), *inner, ...)] = x
        else:
            wide = x
        pieces = []
        for offset in itertools.product(*(range(k) for k in sizes)):
            where = tuple(
                slice(o * rate, o * rate + (count - 1) * stride + 1 if count else o * rate, stride)
                for o, rate, stride, (count, _, _) in zip(
                    offset, rates, strides, found, strict=True
                )
            )
            pieces.append(wide[(slice(None), *where, ...)])
        return xp.concat(pieces, axis=-1)

    return run
