"""Portable kernels of order: the largest elements, and searching in sorted rows.

The array API has no search for the largest elements, so rows are sorted whole. A namespace that has
one, which gives the first of equal elements first, brings it as `top_k`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from opdock import dtypes
from opdock.kernels.array_api import dims, ints, invalid
from opdock.kernels.portable import portable
from opdock.kernels.select.signature import NodeSig


def check_k(shape: Any, k: int) -> None:
    """Raises InvalidArgumentError unless rows of `shape` have `k` elements."""
    if len(shape) < 1:
        raise invalid("input must be >= 1-D, got shape []")
    if k < 0:
        raise invalid(f"Need k >= 0, got {k}")
    if shape[-1] < k:
        raise invalid(f"input must have at least k columns. Had {shape[-1]}, needed {k}")


def _largest(xp: Any, x: Any, k: int) -> Any:
    check_k(x.shape, k)
    if own := getattr(xp, "top_k", None):
        values, places = own(x, k)
        return values, xp.astype(places, xp.int32)
    # Equal elements keep their order, so the lower index comes first.
    order = xp.argsort(x, axis=-1, descending=True, stable=True)
    values = xp.sort(x, axis=-1, descending=True, stable=True)
    return (
        xp.asarray(values[..., :k], copy=True),
        xp.astype(order[..., :k], xp.int32),
    )


def check_searched(rows: Any, values: Any) -> None:
    """Raises InvalidArgumentError unless there are values to look for in each sorted row."""
    if rows.shape[0] != values.shape[0]:
        raise invalid(
            "Leading dim_size of both tensors must match: "
            f"{dims(rows.shape)} vs. {dims(values.shape)}"
        )


@portable("TopKV2", T=dtypes.REALS, host_inputs=("k",))
def top_k_v2(xp: Any, sig: NodeSig) -> Any:
    """The largest elements of each row."""
    return lambda x, k: _largest(xp, x, ints(k)[0])


@portable("TopK", T=dtypes.REALS)
def top_k(xp: Any, sig: NodeSig) -> Any:
    """The largest elements of each row."""
    k = sig.attrs["k"]
    return lambda x: _largest(xp, x, k)


@portable("NthElement", T=dtypes.REALS, host_inputs=("n",))
def nth_element(xp: Any, sig: NodeSig) -> Any:
    """One element of each sorted row."""
    reverse = bool(sig.attrs["reverse"])

    def run(x: Any, n: Any) -> Any:
        if np.ndim(n) != 0:
            raise invalid(f"N must be scalar, got shape {dims(np.shape(n))}")
        at = int(n)
        if at < 0:
            raise invalid(f"Need n >= 0, got {at}")
        if len(x.shape) < 1:
            raise invalid(f"Input must be >= 1-D, got shape {dims(x.shape)}")
        if x.shape[-1] <= at:
            raise invalid("Input must have at least n+1 columns")
        ordered = xp.sort(x, axis=-1, descending=reverse)
        return xp.asarray(ordered[..., at], copy=True)

    return run


@portable("LowerBound", "UpperBound", T=dtypes.REALS)
def bound(xp: Any, sig: NodeSig) -> Any:
    """Where values fit into sorted rows."""
    side = "left" if sig.op == "LowerBound" else "right"
    dtype = sig.out_dtypes[0].name

    def run(rows: Any, values: Any) -> Any:
        check_searched(rows, values)
        element = getattr(xp, dtype)
        if math.prod(values.shape) == 0:
            return xp.zeros(values.shape, dtype=element, device=getattr(values, "device", None))
        found = [xp.searchsorted(rows[i, :], values[i, :], side=side) for i in range(rows.shape[0])]
        return xp.astype(xp.stack(found), element)

    return run
