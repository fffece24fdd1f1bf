"""The largest elements, in one pass where few are wanted of many; where values fit into rows."""

from __future__ import annotations

from collections.abc import Callable
from math import isnan
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from opdock.plugin import REALS, KernelTable, NodeSig, checks, dtypes
from opdock_cpu.jit.looped import Looped
from opdock_cpu.ordering import descending
from opdock_cpu.portable import portable_kernel

__all__ = ["table"]

Array = npt.NDArray[Any]

table = KernelTable()
# Below this row length, or above this share of it, a full sort is as fast.
_LONG, _SHARE = 256, 8
_PASSES: Final = 4
"""How often an element is looked at, about, until one is found that so many others are before."""
_SORTED = REALS - {dtypes.float16, dtypes.bfloat16}
"""Types that NumPy sorts as they are; of 16 bits numbers are quicker as wide ones."""
_FEW = 32
"""So many are kept in order as the row goes by."""


def _pass(
    begin: int, end: int, values: Array, places: Array, x: Array, length: int, k: int
) -> None:
    """Each element that is larger than the least of those kept moves up to its place."""
    for r in range(begin, end):
        have = 0
        for i in range(length):
            v = x[r * length + i]
            if have == k:
                w = values[r * k + k - 1]
                if not v > w and not (isnan(v) and not isnan(w)):
                    continue
                have -= 1
            at = r * k + have
            while at > r * k:
                w = values[at - 1]
                if not v > w and not (isnan(v) and not isnan(w)):
                    break
                values[at] = w
                places[at] = places[at - 1]
                at -= 1
            values[at] = v
            places[at] = i
            have += 1


_PASS: Final = Looped(_pass)


def largest(x: Array, k: int) -> tuple[Array, Array]:
    """The `k` largest of each row in descending order; of equals the lower index comes first."""
    checks.check_k(x.shape, k)
    n = x.shape[-1]
    rows = x.reshape(-1, n) if n else x.reshape(x.size, 0)
    shape = (*x.shape[:-1], k)
    if k == 0 or x.size == 0:
        return np.empty(shape, x.dtype), np.empty(shape, np.int32)
    if k <= _FEW:
        found, places = np.empty(shape, x.dtype), np.empty(shape, np.int32)
        if _PASS(len(rows), x.size, found, places, rows, n, k):
            return found, places
    if n >= _LONG and k * _SHARE <= n:
        order = _few(rows, k)
    else:
        order = descending(rows)[:, :k]
    values = np.take_along_axis(rows, order, axis=-1)
    return values.reshape(shape), order.astype(np.int32).reshape(shape)


def _few(rows: Array, k: int) -> Array:
    """The indices of each row's `k` largest elements, without sorting the rest."""
    n = rows.shape[-1]
    chosen = np.argpartition(rows, n - k, axis=-1)[:, n - k :]
    chosen.sort(axis=-1)
    values = np.take_along_axis(rows, chosen, axis=-1)
    least = values.min(axis=-1, keepdims=True)
    # Where elements equal to the least were left out, which of them were taken is chance.
    torn = (rows == least).sum(axis=-1) != (values == least).sum(axis=-1)
    torn |= np.isnan(least)[:, 0]  # equal to no other NaN
    order = np.take_along_axis(chosen, descending(values), axis=-1)
    if torn.any():
        order[torn] = descending(rows[torn])[:, :k]
    return order


@table.binder("TopKV2", T=_SORTED, host_inputs=("k",))
def top_k_v2(sig: NodeSig) -> Callable[..., Any]:
    """The largest elements of each row."""
    return lambda x, k: largest(x, int(k))


@table.binder("TopK", T=_SORTED)
def top_k(sig: NodeSig) -> Callable[..., Any]:
    """The largest elements of each row."""
    k = sig.attrs["k"]
    return lambda x: largest(x, k)


# ---------------------------------------------------------------- places in sorted rows
def _select(
    begin: int, end: int, out: Array, work: Array, x: Array, length: int, at: int
) -> None:  # fmt: skip
    """A turn is a row; what is no number stands behind all others.

    Elements less than one of them are brought to the front, and what is wanted is on one side.
    """
    for r in range(begin, end):
        low, high, wanted = r * length, (r + 1) * length, r * length + at
        pivot, fresh = _middle(x[low], x[(low + high) // 2], x[high - 1]), 1
        less, far, found = low, high - 1, x[low]
        for i in range(low, high):
            v = x[i]
            work[less] = v
            work[far] = v
            before = 1 if v < pivot else 0
            less += before
            far -= 1 - before
        while wanted >= low and wanted < high:
            if fresh == 0:
                pivot, less = _middle(work[low], work[(low + high) // 2], work[high - 1]), low
                for i in range(low, high):
                    v = work[i]
                    work[i] = work[less]
                    work[less] = v
                    less += 1 if v < pivot else 0
            fresh = 0
            if wanted < less:
                high = less
            elif isnan(pivot):
                for i in range(low, high):
                    v = work[i]
                    work[i] = work[less]
                    work[less] = v
                    less += 0 if isnan(v) else 1
                found = pivot
                if wanted < less:
                    high = less
                else:
                    low = high
            else:
                same = less
                for i in range(less, high):
                    v = work[i]
                    work[i] = work[same]
                    work[same] = v
                    same += 1 if v <= pivot else 0
                low = same
                found = pivot
        out[r] = found


def _middle(a: Any, b: Any, c: Any) -> Any:
    """The middle one of three numbers."""
    least, most = min(a, b), max(a, b)
    return max(least, min(most, c))


_SELECT: Final = Looped(_select)


@table.binder("NthElement", T=_SORTED, host_inputs=("n",))
def nth_element(sig: NodeSig) -> Callable[..., Any]:
    """One element of each sorted row: the others need not be in order."""
    plain: Callable[..., Any] = portable_kernel(sig)
    reverse = bool(sig.attrs["reverse"])

    def run(x: Array, n: Any) -> Any:
        if np.ndim(n) or not x.ndim or not 0 <= int(n) < x.shape[-1]:
            return plain(x, n)
        at = x.shape[-1] - 1 - int(n) if reverse else int(n)
        length = x.shape[-1]
        out, rows = np.empty(x.shape[:-1], x.dtype), x.size // length
        if rows and _SELECT(rows, _PASSES * x.size, out, np.empty(x.size, x.dtype), x, length, at):
            return out
        return np.array(np.partition(x, at, axis=-1)[..., at])

    return run


def _before(a: Any, b: Any) -> bool:
    """Whether one number stands before another; a NaN stands behind all that are none."""
    return a < b or (isnan(b) and not isnan(a))


def _bounds(
    begin: int, end: int, out: Array, rows: Array, values: Array,
    length: int, count: int, upper: int,
) -> None:  # fmt: skip
    """A turn is a row: the first place before which a value fits, or the last."""
    for r in range(begin, end):
        for i in range(r * count, (r + 1) * count):
            low, high, v = r * length, (r + 1) * length, values[i]
            while low < high:
                middle = (low + high) // 2
                other = rows[middle]
                further = not _before(v, other) if upper > 0 else _before(other, v)
                if further:
                    low = middle + 1
                else:
                    high = middle
            out[i] = low - r * length


_BOUNDS: Final = Looped(_bounds)


@table.binder("LowerBound", "UpperBound", T=REALS)
def bound(sig: NodeSig) -> Callable[..., Any]:
    """Where values fit into sorted rows."""
    plain: Callable[..., Any] = portable_kernel(sig)
    upper, dtype = int(sig.op == "UpperBound"), sig.out_dtypes[0].np

    def run(rows: Array, values: Array) -> Any:
        if rows.ndim == values.ndim == 2 and len(rows) == len(values) and rows.size:
            out = np.empty(values.shape, dtype)
            numbers = (rows.shape[1], values.shape[1], upper)
            steps = 4.0 * values.size * rows.shape[1].bit_length()
            if _BOUNDS(len(rows), steps, out, rows, values, *numbers):
                return out
        return plain(rows, values)

    return run
