"""Oracle of local response normalization."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]


def _norms(attrs: Any, pixel: Array) -> list[float]:
    """For each channel, bias + alpha * the energy of its neighbours."""
    radius = int(attrs["depth_radius"])
    return [
        attrs["bias"]
        + attrs["alpha"] * sum(float(v) ** 2 for v in pixel[max(0, d - radius) : d + radius + 1])
        for d in range(len(pixel))
    ]


@reference("LRN")
def lrn(attrs: Any, image: Array) -> Array:
    """Divides each channel by a power of its norm, pixel by pixel."""
    out = np.zeros(image.shape)
    for at in np.ndindex(image.shape[:3]):
        norms = _norms(attrs, image[at])
        out[at] = [v * n ** -attrs["beta"] for v, n in zip(image[at], norms, strict=True)]
    return out


@reference("LRNGrad")
def lrn_grad(attrs: Any, grads: Array, image: Array, output: Array) -> Array:
    """The Jacobian, entry by entry: output j depends on input k within the radius."""
    out = np.zeros(image.shape)
    alpha, beta, radius = attrs["alpha"], attrs["beta"], int(attrs["depth_radius"])
    for at in np.ndindex(image.shape[:3]):
        norms = _norms(attrs, image[at])
        for j, norm in enumerate(norms):
            for k in range(max(0, j - radius), min(len(norms), j + radius + 1)):
                slope = -2 * alpha * beta * image[at][k] * output[at][j] / norm
                if j == k:
                    slope += norm**-beta
                out[at][k] += grads[at][j] * slope
    return out
