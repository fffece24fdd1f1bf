"""Portable kernels of buckets and packed bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from opdock import dtypes
from opdock.kernels.array_api import dims, dtype_of, invalid
from opdock.kernels.portable import portable
from opdock.kernels.select.signature import NodeSig

_TYPES = frozenset({dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64})
_PACKED = frozenset({
    dtypes.bool_, dtypes.float16, dtypes.float32, dtypes.float64, dtypes.int8, dtypes.int16,
    dtypes.int32, dtypes.int64,
})  # fmt: skip


def _compared_in(sig: NodeSig) -> dtypes.DType:
    """A type that has all the numbers of the argument, and the boundaries, which are float32."""
    exact = sig.in_dtypes[0].base_dtype is dtypes.float32
    return dtypes.float32 if exact else dtypes.float64


@portable("Bucketize", T=dtypes.float32)
@portable("Bucketize", T=_TYPES - {dtypes.float32}, computes_in=dtypes.float64)
def bucketize(xp: Any, sig: NodeSig) -> Any:
    """How many boundaries are not above each number."""
    limits = np.asarray(sig.attrs["boundaries"], np.float32).astype(_compared_in(sig).np)
    if (np.diff(limits) < 0).any():
        raise invalid("Expected sorted boundaries")
    element = dtype_of(xp, _compared_in(sig))

    def run(x: Any) -> Any:
        flat = xp.astype(xp.reshape(x, (-1,)), element, copy=False)
        where = xp.asarray(limits, device=getattr(x, "device", None))
        found = xp.searchsorted(where, flat, side="right")
        return xp.reshape(xp.astype(found, xp.int32), x.shape)

    return run


@portable("CompareAndBitpack", T=_PACKED)
def compare_and_bitpack(xp: Any, sig: NodeSig) -> Any:
    """Eight answers a byte, the first in the highest bit."""
    is_bool = sig.in_dtypes[0].base_dtype is dtypes.bool_

    def run(x: Any, threshold: Any) -> Any:
        if threshold.shape != ():
            raise invalid(f"Compare must be a scalar, but saw shape: {dims(threshold.shape)}")
        if not x.shape:
            raise invalid("Input should be at least a vector, but saw a scalar.")
        if x.shape[-1] % 8:
            raise invalid(
                f"Inner dimension of input should be divisible by 8, but saw shape: {dims(x.shape)}"
            )
        # A truth value passes a threshold of either kind if it is true, as in TensorFlow.
        passes = x if is_bool else x > threshold
        bits = xp.reshape(xp.astype(passes, xp.int32), (*x.shape[:-1], x.shape[-1] // 8, 8))
        weights = xp.asarray([1 << 7 - i for i in range(8)], dtype=xp.int32,
                             device=getattr(x, "device", None))  # fmt: skip
        return xp.astype(xp.sum(bits * weights, axis=-1), xp.uint8)

    return run
