"""What lies under a sliding window."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]
Attrs = dict[str, Any]


def _patches(attrs: Attrs, x: Array, rates: list[int]) -> Array:
    """One window after the other; outside the input there are zeros."""
    sizes, strides = attrs["ksizes"][1:-1], attrs["strides"][1:-1]
    counts, starts = [], []
    for size, k, stride, rate in zip(x.shape[1:-1], sizes, strides, rates, strict=True):
        window = k + (k - 1) * (rate - 1)
        if attrs["padding"] == "SAME":
            count = -(-size // stride)
            starts.append(-(max(0, (count - 1) * stride + window - size) // 2))
        else:
            count = max(0, -(-(size - window + 1) // stride))
            starts.append(0)
        counts.append(count)
    depth = x.shape[-1]
    out = np.zeros((x.shape[0], *counts, int(np.prod(sizes)) * depth), x.dtype)
    for place in np.ndindex(*counts):
        for n, offset in enumerate(np.ndindex(*sizes)):
            at = tuple(
                start + p * stride + o * rate
                for start, p, stride, o, rate in zip(
                    starts, place, strides, offset, rates, strict=True
                )
            )
            if all(0 <= a < d for a, d in zip(at, x.shape[1:-1], strict=True)):
                out[(slice(None), *place, slice(n * depth, (n + 1) * depth))] = x[
                    (slice(None), *at)
                ]
    return out


@reference("ExtractImagePatches")
def extract_image_patches(attrs: Attrs, x: Array) -> Array:
    """Patches of images."""
    return _patches(attrs, x, attrs["rates"][1:-1])


@reference("ExtractVolumePatches")
def extract_volume_patches(attrs: Attrs, x: Array) -> Array:
    """Patches of volumes."""
    return _patches(attrs, x, [1, 1, 1])
