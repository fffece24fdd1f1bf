"""Portable kernels of the loss family."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opdock import dtypes
from opdock.kernels.array_api import index_type
from opdock.kernels.portable import portable
from opdock.kernels.select.signature import NodeSig

_HALVES = (dtypes.float16, dtypes.bfloat16)


@portable("L2Loss")
def l2_loss(xp: Any, sig: NodeSig) -> Callable[..., Any]:
    """Half the sum of squares."""
    narrow = sig.in_dtypes[0] in _HALVES

    def run(t: Any) -> Any:
        wide = xp.astype(t, xp.float32) if narrow else t
        half = xp.sum(wide * wide) * 0.5
        return xp.astype(half, t.dtype) if narrow else half

    return run


@portable("InTopK")
@portable("InTopKV2", host_inputs=("k",))
def in_top_k(xp: Any, sig: NodeSig) -> Callable[..., Any]:
    """Whether fewer than k classes beat the target; rows with a non-finite entry say no."""
    fixed = sig.attrs.get("k")

    def run(predictions: Any, targets: Any, k: Any = fixed) -> Any:
        classes = xp.arange(predictions.shape[1], dtype=targets.dtype)
        hit = classes[None, :] == targets[:, None]
        zero = xp.zeros_like(predictions)
        wanted = xp.sum(xp.where(hit, predictions, zero), axis=1, keepdims=True)
        beaten = xp.sum(xp.astype(predictions > wanted, index_type(xp)), axis=1) < int(k)
        sound = xp.all(xp.isfinite(predictions), axis=1) & xp.any(hit, axis=1)
        return beaten & sound

    return run
