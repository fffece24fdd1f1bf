"""The largest elements: by partition where few are wanted of many."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.plugin import REALS, KernelTable, NodeSig, errors

__all__ = ["table"]

Array = npt.NDArray[Any]

table = KernelTable()
# Below this row length, or above this share of it, a full sort is as fast.
_LONG, _SHARE = 256, 8


def _check(shape: tuple[int, ...], k: int) -> None:
    if not shape:
        raise errors.InvalidArgumentError(None, None, "input must be >= 1-D, got shape []")
    if k < 0:
        raise errors.InvalidArgumentError(None, None, f"Need k >= 0, got {k}")
    if shape[-1] < k:
        raise errors.InvalidArgumentError(
            None, None, f"input must have at least k columns. Had {shape[-1]}, needed {k}"
        )


def largest(x: Array, k: int) -> tuple[Array, Array]:
    """The `k` largest of each row in descending order; of equals the lower index comes first."""
    _check(x.shape, k)
    n = x.shape[-1]
    rows = x.reshape(-1, n) if n else x.reshape(x.size, 0)
    if k == 0 or x.size == 0:
        shape = (*x.shape[:-1], k)
        return np.empty(shape, x.dtype), np.empty(shape, np.int32)
    if n >= _LONG and k * _SHARE <= n:
        order = np.stack([_few(row, k) for row in rows])
    else:
        # Reversing before and after keeps a stable ascending sort stable in descending order.
        order = n - 1 - np.argsort(rows[:, ::-1], axis=-1, kind="stable")[:, : -k - 1 : -1]
    values = np.take_along_axis(rows, order, axis=-1)
    shape = (*x.shape[:-1], k)
    return values.reshape(shape), order.astype(np.int32).reshape(shape)


def _few(row: Array, k: int) -> Array:
    """The indices of a row's `k` largest elements."""
    least = np.partition(row, row.size - k)[row.size - k]
    above = np.flatnonzero(row > least)
    equal = np.flatnonzero(row == least)[: k - above.size]
    chosen = np.concatenate([above, equal])
    if chosen.size < k:
        # NaN compares with nothing; a full sort puts it first.
        return row.size - 1 - np.argsort(row[::-1], kind="stable")[: -k - 1 : -1]
    chosen.sort()
    best = chosen.size - 1 - np.argsort(row[chosen][::-1], kind="stable")[::-1]
    return np.asarray(chosen[best])


@table.binder("TopKV2", T=REALS, host_inputs=("k",))
def top_k_v2(sig: NodeSig) -> Callable[..., Any]:
    """The largest elements of each row."""
    return lambda x, k: largest(x, int(k))


@table.binder("TopK", T=REALS)
def top_k(sig: NodeSig) -> Callable[..., Any]:
    """The largest elements of each row."""
    k = sig.attrs["k"]
    return lambda x: largest(x, k)
