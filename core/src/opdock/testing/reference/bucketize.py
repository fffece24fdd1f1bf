"""What the ops of buckets and packed bits compute."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]


@reference("Bucketize")
def bucketize(attrs: Any, x: Array) -> Array:
    """The number of boundaries up to each number."""
    limits = np.array(attrs["boundaries"], np.float32)
    return np.array([sum(1 for b in limits if b <= v) for v in x.ravel()], np.int32).reshape(
        x.shape
    )


@reference("CompareAndBitpack")
def compare_and_bitpack(attrs: Any, x: Array, threshold: Array) -> Array:
    """One bit for each number that is above the threshold."""
    above = x if x.dtype == np.bool_ else x > threshold
    return np.packbits(above.astype(np.uint8), axis=-1)
