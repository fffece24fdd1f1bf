"""Oracle of batch normalization by given statistics, and of its derivatives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]
Attrs = Mapping[str, Any]


def _scale(attrs: Attrs, gamma: Array) -> Array:
    return gamma if attrs["scale_after_normalization"] else np.ones_like(gamma)


@reference("BatchNormWithGlobalNormalization")
def norm(attrs: Attrs, t: Array, m: Array, v: Array, beta: Array, gamma: Array) -> Array:
    """Each channel by its mean and variance."""
    deviation = np.sqrt(v + attrs["variance_epsilon"])
    return np.asarray((t - m) / deviation * _scale(attrs, gamma) + beta)


@reference("BatchNormWithGlobalNormalizationGrad")
def norm_grad(
    attrs: Attrs, t: Array, m: Array, v: Array, gamma: Array, backprop: Array
) -> tuple[Array, ...]:
    """The derivatives by the images, the statistics, the offset and the scale."""
    variance, scale = v + attrs["variance_epsilon"], _scale(attrs, gamma)
    total, along = (np.sum(x, axis=(0, 1, 2)) for x in (backprop, backprop * (t - m)))
    by_gamma = along / np.sqrt(variance) if attrs["scale_after_normalization"] else 0 * gamma
    return (
        backprop * scale / np.sqrt(variance), -total * scale / np.sqrt(variance),
        -0.5 * along * scale * variance**-1.5, total, by_gamma,
    )  # fmt: skip
