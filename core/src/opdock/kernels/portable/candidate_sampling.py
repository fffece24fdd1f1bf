"""The portable kernel of drawn classes that are targets by accident."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opdock.dtypes import float32
from opdock.kernels.array_api import index_type, invalid
from opdock.kernels.portable import portable
from opdock.kernels.select.signature import NodeSig


@portable("ComputeAccidentalHits", computes_in=float32)
def accidental_hits(xp: Any, sig: NodeSig) -> Callable[..., tuple[Any, Any, Any]]:
    """Where a drawn class is a target; of equal ones drawn the last counts."""
    num_true = sig.attrs["num_true"]

    def run(classes: Any, drawn: Any) -> tuple[Any, Any, Any]:
        if len(classes.shape) != 2 or classes.shape[1] != num_true:
            raise invalid("true_candidates must be a batch_size * num_true matrix")
        if len(drawn.shape) != 1:
            raise invalid(
                "sampled_candidates must be a vector, which is typically an output from "
                "CandidateSampler"
            )
        device = getattr(classes, "device", None)
        if 0 in (*classes.shape, *drawn.shape):
            rows = ids = xp.zeros((0,), dtype=index_type(xp), device=device)
        else:
            flat = xp.reshape(classes, (-1,))
            order = xp.argsort(drawn, stable=True)
            place = xp.searchsorted(xp.take(drawn, order, axis=0), flat, side="right") - 1
            last = xp.take(order, xp.clip(place, 0, None), axis=0)
            hit = xp.nonzero((place >= 0) & (xp.take(drawn, last, axis=0) == flat))[0]
            rows, ids = hit // num_true, xp.take(last, hit, axis=0)
        weights = xp.full(tuple(rows.shape), float(float32.min), dtype=xp.float32, device=device)
        return xp.astype(rows, xp.int32), xp.astype(ids, xp.int64), weights

    return run
