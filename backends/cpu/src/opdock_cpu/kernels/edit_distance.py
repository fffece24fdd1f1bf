"""Levenshtein distances, one row of the table of prefixes at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from opdock.plugin import KernelTable, NodeSig, cells, checks
from opdock_cpu.jit.looped import Looped

__all__ = ["table"]

Array = cells.Array
dims = checks.dims

table = KernelTable()


def distance(a: Array, b: Array) -> int:
    """The fewest insertions, deletions and replacements that turn `a` into `b`."""
    if len(a) < len(b):
        a, b = b, a
    steps = np.arange(len(b) + 1)
    row = steps
    for i, element in enumerate(a):
        best = np.empty_like(row)
        best[0] = i + 1
        best[1:] = np.minimum(row[1:] + 1, row[:-1] + (b != element))
        # An insertion costs one more than the cell before: the running minimum less the way.
        row = np.minimum.accumulate(best - steps) + steps
    return int(row[-1])


def _distances(
    begin: int, end: int, out: Array, row: Array, a: Array, b: Array, starts: Array
) -> None:
    """A turn is a pair: from `starts` on, where both sequences begin and end, and its row."""
    for p in range(begin, end):
        first, last, other, far, here = (
            starts[5 * p], starts[5 * p + 1], starts[5 * p + 2], starts[5 * p + 3],
            starts[5 * p + 4],
        )  # fmt: skip
        for j in range(far - other + 1):
            row[here + j] = j
        for i in range(first, last):
            before = row[here]
            row[here] = i - first + 1
            for j in range(other, far):
                at = here + j - other + 1
                above = row[at]
                best = min(min(above, row[at - 1]) + 1, before + int(a[i] != b[j]))
                row[at] = best
                before = above
        out[p] = row[here + far - other]


_DISTANCES: Final = Looped(_distances)


def _sorted(indices: Array, values: Array, shape: tuple[int, ...]) -> tuple[Array, Array, Array]:
    """The values of all sequences, the places that have one, and where each begins and ends."""
    place = cells.flat(indices[:, :-1], shape)
    order, starts = cells.runs(place) if len(place) else (place, place)
    bounds = np.append(starts, len(place)).astype(np.int64)
    return values[order], place[order[starts]], bounds


def _pairs(h_places: Array, h_bounds: Array, t_places: Array, t_bounds: Array) -> Array:
    """For each place that has a sequence: the place, and where both begin and end."""
    found = np.union1d(h_places, t_places)
    out = np.zeros((len(found), 5), np.int64)
    out[:, 0] = found
    for column, places, bounds in ((1, h_places, h_bounds), (3, t_places, t_bounds)):
        at = np.searchsorted(found, places)
        out[at, column], out[at, column + 1] = bounds[:-1], bounds[1:]
    return out


def _all_distances(a: Array, b: Array, pairs: Array) -> Array:
    """The distance of each pair."""
    lengths = pairs[:, 4] - pairs[:, 3]
    rows = np.cumsum(lengths + 1)
    out, row = np.empty(len(pairs), np.int64), np.empty(rows[-1], np.int64)
    starts = np.column_stack([pairs[:, 1:], rows - lengths - 1])
    steps = float((lengths * (pairs[:, 2] - pairs[:, 1])).sum())
    if a.dtype.hasobject:
        whole = np.unique(np.concatenate([a, b]), return_inverse=True)[1].reshape(-1)
        a, b = whole[: len(a)], whole[len(a) :]
    if not _DISTANCES(len(pairs), 4 * steps, out, row, a, b, starts):
        for i, (_, first, last, other, far) in enumerate(pairs.tolist()):
            out[i] = distance(a[first:last], b[other:far])
    return out


@table.binder("EditDistance", host_inputs=("hypothesis_shape", "truth_shape"))
def edit_distance(sig: NodeSig) -> Callable[..., Array]:
    """The distance of each pair of sequences, possibly over the length of the true one."""
    normalize = bool(sig.attrs["normalize"])

    def run(
        h_indices: Array, h_values: Array, h_shape: Array,
        t_indices: Array, t_values: Array, t_shape: Array,
    ) -> Array:  # fmt: skip
        _check(h_indices, h_values, h_shape, t_indices, t_values, t_shape)
        shape = tuple(int(n) for n in np.maximum(h_shape, t_shape)[:-1])
        cells.check_inside(h_indices[:, :-1], shape)
        cells.check_inside(t_indices[:, :-1], shape)
        hypotheses, *found = _sorted(h_indices, h_values, shape)
        truths, *true = _sorted(t_indices, t_values, shape)
        pairs = _pairs(*found, *true)
        out = np.zeros(cells.sizes(np.array(shape, np.int64)), np.float32)
        if len(pairs):
            steps = _all_distances(hypotheses, truths, pairs).astype(np.float64)
            if normalize:
                lengths = pairs[:, 4] - pairs[:, 3]
                with np.errstate(divide="ignore", invalid="ignore"):
                    steps = np.where(steps > 0, steps / lengths, 0.0)
            out.reshape(-1)[pairs[:, 0]] = steps
        return out

    return run


def _check(
    h_indices: Array, h_values: Array, h_shape: Array,
    t_indices: Array, t_values: Array, t_shape: Array,
) -> None:  # fmt: skip
    sides = (
        ("hypothesis", h_indices, h_values, h_shape), ("truth", t_indices, t_values, t_shape),
    )  # fmt: skip
    for part, rank, kind in (
        ("indices", 2, "matrix"),
        ("values", 1, "vector"),
        ("shape", 1, "vector"),
    ):
        for side, *arrays in sides:
            array = arrays[("indices", "values", "shape").index(part)]
            if array.ndim != rank:
                raise checks.invalid(
                    f"{side}_{part} should be a {kind}, but got shape: {dims(array.shape)}"
                )
    for side, indices, values, shape in sides:
        if indices.shape[1] != len(shape):
            raise checks.invalid(
                f"Expected {side}_shape.NumElements == #cols({side}_indices), their shapes are: "
                f"{dims(shape.shape)} and {dims(indices.shape)}"
            )
        cells.check_parts(indices, values, shape)
    if len(t_shape) < 2:
        raise checks.invalid(
            "Input SparseTensors must have rank at least 2, but truth_shape rank is: "
            f"{len(t_shape)}"
        )
    if len(t_shape) != len(h_shape):
        raise checks.invalid(
            "Expected truth and hypothesis to have matching ranks, but their shapes are: "
            f"{dims(t_shape.shape)} and {dims(h_shape.shape)}"
        )
