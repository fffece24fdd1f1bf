"""Levenshtein distances, one row of the table at a time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from opdock.plugin import KernelTable, NodeSig, cells, checks

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


def _sequences(indices: Array, values: Array, shape: tuple[int, ...]) -> dict[int, Array]:
    """The sequence of each place of the leading dimensions."""
    if not len(values):
        return {}
    place = cells.flat(indices[:, :-1], shape)
    order, starts = cells.runs(place)
    parts = np.split(values[order], starts[1:])
    return dict(zip(place[order[starts]].tolist(), parts, strict=True))


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
        hypotheses = _sequences(h_indices, h_values, shape)
        truths = _sequences(t_indices, t_values, shape)
        out = np.zeros(cells.sizes(np.array(shape, np.int64)), np.float32)
        nothing = t_values[:0]
        for place in hypotheses.keys() | truths.keys():
            truth, hypothesis = truths.get(place, nothing), hypotheses.get(place, nothing)
            steps = float(distance(truth, hypothesis))
            if normalize and steps:
                steps = steps / len(truth) if len(truth) else np.inf
            out.reshape(-1)[place] = steps
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
