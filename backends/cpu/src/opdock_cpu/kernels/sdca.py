"""Kernels of stochastic dual coordinate ascent."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from opdock.plugin import KernelTable, NodeSig, checks
from opdock_cpu.duals import LOSSES, Loss
from opdock_cpu.jit.looped import Array, Looped, single
from opdock_cpu.text import hash_loops, hashing
from opdock_cpu.text.arrays import flat
from opdock_cpu.text.packed import joined

__all__ = ["table"]

table = KernelTable()

# How much less often an example is drawn each time that it has been.
_DECAY = 0.1


def _shrink(begin: int, end: int, out: Array, weights: Array, least: float) -> None:
    for i in range(begin, end):
        weight = weights[i]
        size = max(abs(weight) - single(least), 0.0)
        size = -size if weight < 0 else size
        # Neither sign: zero, and what is no number.
        out[i] = size if weight != 0 else weight


_SHRINK: Final = Looped(_shrink)


class _Penalty(NamedTuple):
    """The penalty of the weights: `l2` halves of squares, and a shrinking by `shrinkage`."""

    l2: float
    shrinkage: float

    def shrunk(self, weights: Array) -> Array:
        """The weights that the model predicts with."""
        kept: Array = np.empty_like(weights)
        if not _SHRINK(weights.size, weights.size, kept, weights, self.shrinkage):
            kept = np.sign(weights) * np.maximum(np.abs(weights) - self.shrinkage, 0)
        return kept


def _penalty(sig: NodeSig) -> _Penalty:
    l1, l2 = (np.float32(sig.attrs[name]) for name in ("l1", "l2"))
    with np.errstate(divide="ignore", invalid="ignore"):
        return _Penalty(float(l2), float(l1 / l2))


@table.binder("SdcaShrinkL1", keeps=())
def sdca_shrink_l1(sig: NodeSig) -> Callable[..., None]:
    """Weights shrunk towards zero by l1 / l2."""
    penalty = _penalty(sig)

    def run(*cells: Any) -> None:
        for cell in cells:
            with cell.lock:
                cell.write(penalty.shrunk(cell.read()))

    return run


class _Sparse(NamedTuple):
    """One group of sparse features: example `i` has those from `starts[i]` to `starts[i + 1]`."""

    starts: Array
    places: Array  # of each feature in the group's weights
    values: Array


class _Model:
    """The examples' features beside the weights, and what those have changed by so far."""

    def __init__(
        self, sparse: Sequence[_Sparse], dense: Sequence[Array], weights: Sequence[Array],
        penalty: _Penalty, partitions: int,
    ) -> None:  # fmt: skip
        self.sparse, self.dense = sparse, dense
        self._penalty, self._partitions = penalty, partitions
        self._weights = [w.reshape(-1) for w in weights]
        self._before = [penalty.shrunk(w) for w in self._weights]
        self.deltas = [np.zeros(w.shape, np.float32) for w in weights]
        self._flat = [delta.reshape(-1) for delta in self.deltas]

    def _of(self, example: int) -> list[tuple[Any, Array]]:
        """Of each group, where in the weights the features of an example are, and the features."""
        rows = [slice(s.starts[example], s.starts[example + 1]) for s in self.sparse]
        found: list[tuple[Any, Array]] = [
            (s.places[row], s.values[row]) for s, row in zip(self.sparse, rows, strict=True)
        ]
        return [*found, *((slice(None), features[example]) for features in self.dense)]

    def norm(self, example: int) -> float:
        """The square of the length of an example's features."""
        return float(sum(np.sum(values * values) for _, values in self._of(example)))

    def predictions(self, example: int) -> tuple[float, float]:
        """For an example, before the step and now."""
        before = now = 0.0
        for group, (places, values) in enumerate(self._of(example)):
            moved = self._flat[group][places] * np.float32(self._partitions)
            before += float(values @ self._before[group][places])
            now += float(values @ self._penalty.shrunk(self._weights[group][places] + moved))
        return before, now

    def move(self, example: int, by: float) -> None:
        """Adds so much of the features of an example to the weights."""
        for group, (places, values) in enumerate(self._of(example)):
            self._flat[group][places] += (values * by).astype(np.float32)


@table.binder("SdcaOptimizer")
@table.binder("SdcaOptimizerV2")
def sdca_optimizer(sig: NodeSig) -> Callable[..., tuple[Array, ...]]:
    """Changes of the weights after a step for each example, and the examples' new state."""
    attrs = sig.attrs
    sparse, dense = int(attrs["num_sparse_features"]), int(attrs["num_dense_features"])
    valued = int(attrs["num_sparse_features_with_values"])
    partitions = int(attrs["num_loss_partitions"])
    if sparse + dense == 0:
        raise checks.invalid("Requires at least one feature to train.")
    loss, penalty = LOSSES[attrs["loss_type"]], _penalty(sig)
    adaptive = bool(attrs.get("adaptive", attrs.get("adaptative")))
    counts = (sparse, sparse, valued, dense, 1, 1, sparse, sparse, dense, 1)

    def run(*inputs: Array) -> tuple[Array, ...]:
        groups = _grouped([np.asarray(i) for i in inputs], counts)
        examples, features, values, tables = groups[:4]
        (weights,), (labels,), indices = groups[4], groups[5], groups[6]
        (state,) = groups[9]
        count = weights.size
        if labels.size != count:
            raise checks.invalid(f"Expected {count} example_labels, got {labels.size}")
        if state.shape != (count, 4):
            raise checks.invalid(
                f"Expected shape [{count},4] for example_state_data, got {checks.dims(state.shape)}"
            )
        columns = [
            _sparse(examples[i], features[i], values[i] if i < valued else None, indices[i], count)
            for i in range(sparse)
        ]
        _check_weights(groups[6], groups[7], tables, groups[8], count)
        model = _Model(columns, tables, groups[7] + groups[8], penalty, partitions)
        try:
            counted = [loss.label(float(label)) for label in labels.reshape(-1)]
        except ValueError as e:
            raise checks.invalid(str(e)) from None
        with np.errstate(all="ignore"):
            fresh = _ascend(
                model, loss, penalty, counted, weights.reshape(-1), state, partitions, adaptive
            )
        return (fresh, *model.deltas)

    return run


def _ascend(
    model: _Model, loss: Loss, penalty: _Penalty, labels: list[float], weights: Array, state: Array,
    partitions: int, adaptive: bool,
) -> Array:  # fmt: skip
    """Takes a step for each example; gives the state of all."""
    fresh = state.copy()
    norms = [model.norm(i) for i in range(len(labels))]
    # Drawn from the state, which each step changes: equal steps take the same way.
    rng = np.random.Generator(np.random.Philox(zlib.crc32(state.tobytes())))
    order = rng.permutation(len(labels))
    if adaptive:
        gaps = [state[i, 0] + loss.slope(labels[i], model.predictions(i)[1]) for i in order]
        wide = np.sqrt(np.array(norms) + penalty.l2 * loss.curvature)[order]
        order = order[_likelier(weights[order] * wide * np.abs(gaps), rng)]
    for i in order.tolist():
        label, weight, dual = labels[i], float(weights[i]), float(fresh[i, 0])
        before, now = model.predictions(i)
        scale = partitions * norms[i] / penalty.l2 * weight
        best = loss.dual(label, dual, now, scale)
        model.move(i, (best - dual) * weight / penalty.l2)
        fresh[i] = (
            best, loss.primal_loss(label, before) * weight, loss.dual_loss(label, dual) * weight,
            weight,
        )  # fmt: skip
    return fresh


def _likelier(chances: Array, rng: np.random.Generator) -> Array:
    """As many examples as there are, drawn by their chances, a drawn one seldom again."""
    count = len(chances)
    total = np.cumsum(chances)
    if not count or not total[-1] > 0:
        return np.arange(count)
    drawn: list[int] = []
    times = np.zeros(count, np.int64)
    tries = np.searchsorted(total, rng.random(2 * count) * total[-1], side="right")
    for i, luck in zip(np.minimum(tries, count - 1).tolist(), rng.random(2 * count), strict=True):
        if len(drawn) < count and luck <= _DECAY ** times[i]:
            times[i] += 1
            drawn.append(i)
    left = np.flatnonzero(times == 0)
    rest = left[np.argsort(-chances[left], kind="stable")]
    # In any order: the least likely ones together, at the end, would pull the weights their way.
    return rng.permutation(np.array([*drawn, *rest.tolist()][:count], np.int64))


# ---------------------------------------------------------------- arguments
def _grouped(inputs: Sequence[Array], counts: Sequence[int]) -> list[list[Array]]:
    ends = np.cumsum(counts).tolist()
    return [list(inputs[end - n : end]) for n, end in zip(counts, ends, strict=True)]


def _sparse(
    examples: Array, features: Array, values: Array | None, indices: Array, count: int
) -> _Sparse:
    """A group of sparse features, checked."""
    examples, features, indices = examples.reshape(-1), features.reshape(-1), indices.reshape(-1)
    given = np.ones(features.size) if values is None else values.reshape(-1).astype(np.float64)
    if not examples.size == features.size == given.size:
        raise checks.invalid(
            "Expected as many sparse_example_indices, sparse_feature_indices and "
            f"sparse_feature_values, got {examples.size}, {features.size} and {given.size}"
        )
    if np.any(examples[1:] < examples[:-1]) or np.any((examples < 0) | (examples >= count)):
        raise checks.invalid(
            f"Expected sparse_example_indices in ascending order from 0 to below {count}"
        )
    order = np.argsort(indices, kind="stable")
    ranks = np.searchsorted(indices[order], features)
    known = np.zeros(features.size, bool)
    if indices.size:
        known = indices[order][np.minimum(ranks, indices.size - 1)] == features
    if not known.all():
        raise checks.invalid(
            f"Found sparse feature indices out of valid range: {features[~known][0]}"
        )
    places = order[ranks] if indices.size else ranks
    pairs = examples * max(indices.size, 1) + places
    if np.unique(pairs).size != pairs.size:
        raise checks.invalid("Duplicate index in sparse vector.")
    return _Sparse(np.searchsorted(examples, np.arange(count + 1)), places, given)


def _check_weights(
    indices: Sequence[Array], sparse: Sequence[Array], features: Sequence[Array],
    dense: Sequence[Array], count: int,
) -> None:  # fmt: skip
    for ids, weights in zip(indices, sparse, strict=True):
        if ids.size != weights.size:
            raise checks.invalid(
                f"Expected as many sparse_weights as sparse_indices, got {weights.size} and "
                f"{ids.size}"
            )
    for table_, weights in zip(features, dense, strict=True):
        if table_.ndim != 2 or len(table_) != count:
            raise checks.invalid(
                f"Expected dense_features of {count} rows, got {checks.dims(table_.shape)}"
            )
        if table_.shape[1] > weights.size:
            raise checks.invalid(
                f"More dense features than we have parameters for: {table_.shape[1]}"
            )
        if table_.shape[1] < weights.size:
            raise checks.invalid(
                f"Expected {weights.size} dense features, as there are dense_weights, got "
                f"{table_.shape[1]}"
            )


# ---------------------------------------------------------------- the others
@table.kernel("SdcaFprint")
def sdca_fprint(ctx: Any, strings: Array) -> Array:
    """FarmHash's Fingerprint128 of each string; its low half is neither 0 nor 1."""
    if np.ndim(strings) != 1:
        raise checks.invalid(f"Input must be a vector, got shape {checks.dims(np.shape(strings))}")
    found = hash_loops.city(joined(strings))
    words = hashing.fingerprint128(flat(strings)) if found is None else found
    low = words[:, 0]
    words[:, 0] = np.where(low < 2, low - np.uint64(2), low)
    return words.view(np.int64)
