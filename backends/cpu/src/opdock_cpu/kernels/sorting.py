"""The largest elements: by partition where few are wanted of many."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.plugin import REALS, KernelTable, NodeSig, checks

__all__ = ["table"]

Array = npt.NDArray[Any]

table = KernelTable()
# Below this row length, or above this share of it, a full sort is as fast.
_LONG, _SHARE = 256, 8


def largest(x: Array, k: int) -> tuple[Array, Array]:
    """The `k` largest of each row in descending order; of equals the lower index comes first."""
    checks.check_k(x.shape, k)
    n = x.shape[-1]
    rows = x.reshape(-1, n) if n else x.reshape(x.size, 0)
    if k == 0 or x.size == 0:
        shape = (*x.shape[:-1], k)
        return np.empty(shape, x.dtype), np.empty(shape, np.int32)
    if n >= _LONG and k * _SHARE <= n:
        order = _few(rows, k)
    else:
        order = _descending(rows)[:, :k]
    values = np.take_along_axis(rows, order, axis=-1)
    shape = (*x.shape[:-1], k)
    return values.reshape(shape), order.astype(np.int32).reshape(shape)


def _descending(rows: Array) -> Array:
    """The order of each row from large to small, equals by index."""
    # Reversing before and after keeps a stable ascending sort stable in descending order.
    return np.asarray(
        rows.shape[-1] - 1 - np.argsort(rows[:, ::-1], axis=-1, kind="stable")[:, ::-1]
    )


def _few(rows: Array, k: int) -> Array:
    """The indices of each row's `k` largest elements, without sorting the rest."""
    n = rows.shape[-1]
    chosen = np.argpartition(rows, n - k, axis=-1)[:, n - k :]
    chosen.sort(axis=-1)
    values = np.take_along_axis(rows, chosen, axis=-1)
    least = values.min(axis=-1, keepdims=True)
    # Where elements equal to the least were left out, which of them were taken is chance.
    torn = (rows == least).sum(axis=-1) != (values == least).sum(axis=-1)
    order = np.take_along_axis(chosen, _descending(values), axis=-1)
    if torn.any():
        order[torn] = _descending(rows[torn])[:, :k]
    return order


@table.binder("TopKV2", T=REALS, host_inputs=("k",))
def top_k_v2(sig: NodeSig) -> Callable[..., Any]:
    """The largest elements of each row."""
    return lambda x, k: largest(x, int(k))


@table.binder("TopK", T=REALS)
def top_k(sig: NodeSig) -> Callable[..., Any]:
    """The largest elements of each row."""
    k = sig.attrs["k"]
    return lambda x: largest(x, k)
