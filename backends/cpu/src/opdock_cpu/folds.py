"""Rows folded by the id of each: the one loop behind segments, scattered updates, crops' gradients.

A share of the loop has some of the ids and goes through all rows in order, so each id's rows are
folded one after the other, whatever the number of threads. Without generated code NumPy sorts the
rows by id first and folds each run, in the same order where another one would round otherwise.
"""

from __future__ import annotations

from math import isnan
from typing import Any, Final

import numpy as np

from opdock_cpu.jit.looped import Array, Looped

__all__ = ["fold_onto", "fold_rows", "fold_runs", "runs"]

_KINDS: Final[dict[Any, int]] = {
    np.add: 0,
    np.subtract: 1,
    np.multiply: 2,
    np.maximum: 3,
    np.minimum: 4,
}
_UNORDERED: Final = (np.maximum, np.minimum, np.logical_or)
_FEW: Final = 16
"""Rows of different ids for which a call of NumPy pays."""
_HANDFUL: Final = 32
"""Rows that are folded one by one sooner than they are sorted."""
_SHARED: Final = 1 << 15
"""Elements of rows from which two shares of them pay."""


def _fold(
    begin: int, end: int, out: Array, present: Array, rows: Array, index: Array, ids: Array,
    count: int, width: int, picked: int, kind: int,
) -> None:  # fmt: skip
    """Of `picked` rows the index says which they are."""
    for i in range(count):
        s = ids[i]
        if s >= begin and s < end:
            o = s * width
            r = (index[i] if picked > 0 else i) * width
            if not present[s]:
                present[s] = True
                for c in range(width):
                    out[o + c] = rows[r + c]
            elif kind == 0:
                for c in range(width):
                    out[o + c] = out[o + c] + rows[r + c]
            elif kind == 1:
                for c in range(width):
                    out[o + c] = out[o + c] - rows[r + c]
            elif kind == 2:
                for c in range(width):
                    out[o + c] = out[o + c] * rows[r + c]
            elif kind == 3:
                for c in range(width):
                    x = rows[r + c]
                    if x > out[o + c] or isnan(x):
                        out[o + c] = x
            else:
                for c in range(width):
                    x = rows[r + c]
                    if x < out[o + c] or isnan(x):
                        out[o + c] = x


_FOLD: Final = Looped(_fold)


def fold_onto(
    ufunc: np.ufunc, out: Array, present: Array, rows: Array, ids: Array, index: Array | None = None
) -> None:  # fmt: skip
    """Folds rows into those of `out`; the first of an id that is not yet present is copied there.

    Args:
        ufunc: of two rows; subtraction is for rows that are present.
        out: a matrix of an element type that is not shorter than the rows'.
        present: for each row of it whether it is folded too, not copied over.
        rows: a matrix.
        ids: which row of `out` each one goes to; of negative ids none.
        index: which rows there are, in order; all without it.
    """
    count, width = len(ids), rows.shape[1]
    # Each share looks at all ids: they should be little beside the rows.
    shares = min(len(out), max(1, min(width // 4, count * width // _SHARED)))
    kind = _KINDS.get(ufunc)
    if kind is not None and rows.dtype == out.dtype:
        given = ids if index is None else index
        numbers = (count, width, index is not None, kind)
        if _FOLD(len(out), count * width, out, present, rows, given, ids, *numbers, most=shares):
            return
    rows = rows if index is None else rows[index]
    (_singly if count <= _HANDFUL else _sorted)(ufunc, out, present, rows, ids)


def _singly(ufunc: np.ufunc, out: Array, present: Array, rows: Array, ids: Array) -> None:
    """Row by row, for so few that sorting them takes longer."""
    for i, s in enumerate(ids.tolist()):
        if s >= 0:
            out[s] = ufunc(out[s], rows[i], dtype=out.dtype) if present[s] else rows[i]
            present[s] = True


def _sorted(ufunc: np.ufunc, out: Array, present: Array, rows: Array, ids: Array) -> None:
    if np.any(ids[1:] < ids[:-1]):
        order = np.argsort(ids, kind="stable")
        ids, rows = ids[order], rows[order]
    dropped = int(np.searchsorted(ids, 0))
    ids, rows = ids[dropped:], rows[dropped:]
    if not ids.size or not rows.shape[1]:
        present[ids] = True
        return
    if rows.dtype.kind in "biu" or ufunc in _UNORDERED:
        _by_runs(ufunc, out, present, rows, ids)
    else:
        _by_turns(ufunc, out, present, rows, ids)


def _by_runs(ufunc: np.ufunc, out: Array, present: Array, rows: Array, ids: Array) -> None:
    """Each run of equal ids at once, for what does not depend on the order of the rows."""
    starts = runs(ids)
    places = ids[starts]
    old = present[places]
    # To take off one after the other is to take off the sum.
    folded = (np.add if ufunc is np.subtract else ufunc).reduceat(rows, starts, 0, out.dtype)
    out[places[~old]] = folded[~old]
    out[places[old]] = ufunc(out[places[old]], folded[old])
    present[places] = True


def _by_turns(ufunc: np.ufunc, out: Array, present: Array, rows: Array, ids: Array) -> None:
    """The first row of each id, then the second, and so on: sums are rounded after each row."""
    starts = runs(ids)
    turns = np.arange(len(ids)) - np.repeat(starts, np.diff([*starts, len(ids)]))
    order = np.argsort(turns, kind="stable")
    begin, ends = 0, np.cumsum(np.bincount(turns)).tolist()
    for end in ends:
        if begin and end - begin < _FEW:
            break
        now, turn = ids[order[begin:end]], rows[order[begin:end]]
        old = present[now]
        out[now[~old]] = turn[~old]
        out[now[old]] = ufunc(out[now[old]], turn[old], dtype=out.dtype)
        present[now] = True
        begin = end
    ufunc.at(out, ids[order[begin:]], rows[order[begin:]])


def runs(ids: Array) -> Array:
    """Where runs of equal ids begin."""
    return np.flatnonzero(np.concatenate([[True], ids[1:] != ids[:-1]]))


def fold_rows(combine: Any, rows: Array, ids: Array, count: int) -> tuple[Array, Array]:
    """The rows of each id in one, and which ids are there, as portable kernels ask it.

    Args:
        combine: a function of two rows.
        rows: an array [n, m].
        ids: an array [n]; rows of negative ids are left out.
        count: how many ids there may be.
    """
    out = np.zeros((count, rows.shape[1]), rows.dtype)
    present = np.zeros(count, np.bool_)
    fold_onto(combine, out, present, rows, ids)
    return out, present


def fold_runs(combine: Any, values: Array, starts: Array) -> Array:
    """The values of each run in one, as portable kernels ask it.

    Args:
        combine: NumPy's function of two arrays.
        values: a vector.
        starts: where each run begins.
    """
    folded: Array = combine.reduceat(values, starts, 0, values.dtype)
    return folded
