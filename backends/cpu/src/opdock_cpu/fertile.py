"""What the leaves of a random tree count until they are split.

A leaf first draws candidates: each of its first examples gives the value of one of its features as
the bound of one test. Examples after them are counted, those that go to the left of each candidate
apart, until the leaf has seen enough; then the candidate that separates best becomes its test.
"""

from __future__ import annotations

import math
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from opdock.plugin import errors, host_ops
from opdock_cpu.forests import MATCHES, Draws, Examples, Params, Test, holds, split_of, test_of

__all__ = ["Batch", "FertileStats", "Slot"]

Array = npt.NDArray[Any]

_GINI, _SPARSE_GINI, _SQUARES = range(3)  # StatsModelType
_HOEFFDING, _BOOTSTRAP = 2, 3  # SplitFinishStrategyType
_PRUNED: Final = {1: 0.5, 2: 0.25, 3: 0.10}  # SplitPruningStrategyType -> the share that goes
_PRUNE_HOEFFDING: Final = 4
_LARGEST: Final = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class Batch:
    """Examples with what is wanted of them.

    Attributes:
        examples: their features.
        targets: for classes a number each, else a row of numbers.
        weights: their weights.
    """

    examples: Examples
    targets: Array
    weights: Array


class Slot(ABC):
    """The counts of a leaf.

    Args:
        params: how the forest grows.
        depth: the depth of the leaf.
    """

    def __init__(self, params: Params, depth: int) -> None:
        self._params, self.depth = params, depth
        self._wanted = int(params.at_depth("num_splits_to_consider", depth))
        self._enough = int(params.at_depth("split_after_samples", depth))
        self.tests: list[Test] = []
        self.weight = np.float32(0)
        self._columns: tuple[Array, Array, Array] | None = None

    @property
    def complete(self) -> bool:
        """Whether it has its candidates."""
        return bool(self.weight > 0) or len(self.tests) == self._wanted

    @property
    def at_once(self) -> bool:
        """Whether many examples may be counted at once: nothing is looked at between them."""
        return True

    @property
    @abstractmethod
    def finished(self) -> bool:
        """Whether it is ready to be split."""

    def offer(self, batch: Batch, row: int, draws: Draws) -> None:
        """Makes a candidate of an example, where one is missing."""
        feature, category, value = batch.examples.draw(row, draws)
        kind = MATCHES if category else int(self._params.message.inequality_test_type)
        if len(self.tests) < self._wanted:
            self.propose((kind, feature, value))

    def propose(self, test: Test) -> None:
        """Adds a candidate."""
        self.tests.append(test)
        self._columns = None

    def drop(self, places: Sequence[int]) -> None:
        """Takes candidates away."""
        self.tests = [test for i, test in enumerate(self.tests) if i not in set(places)]
        self._columns = None

    def lefts(self, examples: Examples, rows: Array) -> Array:
        """Which examples go to the left by each candidate, [examples, candidates]."""
        if self._columns is None:
            kinds, features, bounds = zip(*self.tests, strict=True) if self.tests else ((), (), ())
            self._columns = (
                np.array(kinds, np.int8), np.array(features, np.int32),
                np.array(bounds, np.float32),
            )  # fmt: skip
        kind, feature, bound = self._columns
        shape = len(rows), len(self.tests)
        values = examples.values(
            np.repeat(rows, len(self.tests)), np.tile(feature, len(rows))
        ).reshape(shape)
        return holds(np.broadcast_to(kind, shape), values, np.broadcast_to(bound, shape))

    @abstractmethod
    def add(self, batch: Batch, rows: Array) -> None:
        """Counts examples."""

    @abstractmethod
    def best(self) -> tuple[Test, Array, Array] | None:
        """The best candidate, with the values of the two leaves; None if all are useless."""

    @abstractmethod
    def pack(self, slot: Any) -> None:
        """Fills a `FertileSlot` message."""

    @abstractmethod
    def unpack(self, slot: Any) -> None:
        """Takes the counts of one."""


class _Classes(Slot):
    """Counts of classes; the best candidate has the least Gini impurity on its two sides."""

    def __init__(self, params: Params, depth: int) -> None:
        super().__init__(params, depth)
        self._total = np.zeros(params.outputs, np.float32)
        self._left = np.zeros((0, params.outputs), np.float32)
        self._early = False
        # Candidates whose bound waits for an example of another class -> the class of the first.
        self._halves: dict[int, int] = {}
        strategy = params.message.finish_type.type
        self._finishing, self._pruning = strategy, params.message.pruning_type.type
        if strategy:
            self._least = int(params.at_depth("min_split_samples", depth))
            self._check_every = int(params.of_strategy("finish_type", "check_every_steps", depth))
            self._checks = self._least // self._check_every
        if strategy or self._pruning == _PRUNE_HOEFFDING:
            self._dominate = params.at_depth("dominate_fraction", depth)
        if self._pruning:
            every = params.of_strategy("pruning_type", "prune_every_samples", depth)
            self._prune_every, self._prunes = int(every), 1

    @property
    def at_once(self) -> bool:
        return not (self._finishing or self._pruning)

    @property
    def finished(self) -> bool:
        mixed = np.count_nonzero(self._total) > 1
        return bool(self.weight >= self._enough and mixed) or self._early

    @property
    def complete(self) -> bool:
        return super().complete and (bool(self.weight > 0) or not self._halves)

    def offer(self, batch: Batch, row: int, draws: Draws) -> None:
        before = len(self.tests)
        super().offer(batch, row, draws)
        if not self._params.message.initialize_average_splits:
            return
        label = int(batch.targets[row])
        if len(self.tests) > before and self.tests[-1][0] != MATCHES:
            self._halves[before] = label
        for place in [place for place, first in self._halves.items() if first != label]:
            kind, feature, bound = self.tests[place]
            value = batch.examples.values(np.array([row]), np.array([feature]))[0]
            self.tests[place] = kind, feature, float((np.float32(bound) + value) / 2)
            self._columns = None
            del self._halves[place]

    def propose(self, test: Test) -> None:
        super().propose(test)
        self._left = np.concatenate([self._left, np.zeros((1, len(self._total)), np.float32)])

    def drop(self, places: Sequence[int]) -> None:
        super().drop(places)
        self._left = np.delete(self._left, places, axis=0)

    def add(self, batch: Batch, rows: Array) -> None:
        lefts = self.lefts(batch.examples, rows)
        counts = np.zeros((len(rows), len(self._total)), np.float32)
        counts[np.arange(len(rows)), batch.targets[rows]] = batch.weights[rows]
        self._left += lefts.T.astype(np.float32) @ counts
        self._total += counts.sum(0)
        self.weight += batch.weights[rows].sum()
        if self._finishing:
            self._check_early()
        if self._pruning:
            self._prune()

    def _scores(self) -> Array:
        sides = (self._left, self._total - self._left)
        return sum(_impurity(side) for side in sides)  # type: ignore[return-value]

    def best(self) -> tuple[Test, Array, Array] | None:
        right = self._total - self._left
        useful = (self._left.sum(1) > 0) & (right.sum(1) > 0)
        if not useful.any():
            return None
        place = int(np.where(useful, self._scores(), np.inf).argmin())
        return self.tests[place], self._left[place], right[place]

    # ------------------------------------------------------------ strategies
    def _check_early(self) -> None:
        """Whether the best candidate is sure enough to stay the best."""
        if self.weight < max(self._least, self._checks * self._check_every):
            return
        self._checks += 1
        scores = self._scores()
        if len(scores) < 2:
            self._early = bool(len(scores))
            return
        first, second = np.argsort(scores, kind="stable")[:2].tolist()
        if self._finishing == _HOEFFDING:
            span = 0.25 * len(self._total) * float(self.weight)
            share = math.log(1 / (1 - self._dominate)) / (2 * float(self.weight))
            self._early = float(scores[second] - scores[first]) > span * math.sqrt(share)
        elif self._finishing == _BOOTSTRAP:
            draws = math.ceil(math.log2(1 / (1 - self._dominate))) + 1
            self._early = max(self._drawn(first, draws)) < min(self._drawn(second, draws))

    def _drawn(self, place: int, times: int) -> list[int]:
        """Impurities, less the constants, of as many examples as it saw, drawn as it saw them."""
        counts = np.concatenate([self._left[place], self._total - self._left[place]]) + 1.0
        sampled = np.random.default_rng().multinomial(
            int(self.weight), counts / counts.sum(), size=times
        )
        return [-int(each) for each in (sampled**2).sum(1)]

    def _prune(self) -> None:
        """Takes away the candidates that are the worst so far."""
        if self.finished or self.weight < self._prunes * self._prune_every:
            return
        self._prunes += 1
        scores = self._scores()
        if self._pruning == _PRUNE_HOEFFDING:
            span = float(self.weight) * (1 - 1 / len(self._total))
            share = 0.5 * math.log(1 / (1 - self._dominate)) / float(self.weight)
            worse = scores - scores.min(initial=_LARGEST) > span * math.sqrt(share)
            self.drop(np.flatnonzero(worse).tolist())
            return
        count = int(len(scores) * _PRUNED[self._pruning])
        self.drop(np.argsort(-scores, kind="stable")[:count].tolist())

    # ------------------------------------------------------------ messages
    def pack(self, slot: Any) -> None:
        sparse = self._params.message.stats_type == _SPARSE_GINI
        found = slot.post_init_leaf_stats
        found.weight_sum = float(self.weight)
        _put_classes(found.classification, self._total, sparse)
        for test, left in zip(self.tests, self._left, strict=True):
            candidate = slot.candidates.add()
            candidate.split.CopyFrom(split_of(test))
            _put_classes(candidate.left_stats.classification, left, sparse)

    def unpack(self, slot: Any) -> None:
        found = slot.post_init_leaf_stats
        self.weight = np.float32(found.weight_sum)
        self._total = _classes_of(found.classification, len(self._total))
        for candidate in slot.candidates:
            self.propose(test_of(candidate.split))
            counts = candidate.left_stats.classification
            self._left[-1] = _classes_of(counts, len(self._total))


def _impurity(counts: Array) -> Array:
    """Gini impurities, times how much weighs, of counts to which one of each class is added."""
    total, classes = counts.sum(1), counts.shape[1]
    squares = (counts * counts).sum(1)
    return np.asarray(total * (1 - (squares + 2 * total + classes) / (classes + total) ** 2))


def _put_classes(message: Any, counts: Array, sparse: bool) -> None:
    if sparse:
        message.sparse_counts.SetInParent()
        for i in np.flatnonzero(counts).tolist():
            message.sparse_counts.sparse_value[i].float_value = float(counts[i])
        return
    _put_vector(message.dense_counts, counts)


def _classes_of(message: Any, count: int) -> Array:
    if message.WhichOneof("counts") != "sparse_counts":
        return _vector_of(message.dense_counts)
    found = np.zeros(count, np.float32)
    for i, value in message.sparse_counts.sparse_value.items():
        found[i] = value.float_value
    return found


def _put_vector(message: Any, values: Array) -> None:
    message.SetInParent()
    for value in values.tolist():
        message.value.add().float_value = value


def _vector_of(message: Any) -> Array:
    return np.array([value.float_value for value in message.value], np.float32)


class _Squares(Slot):
    """Sums of numbers and of their squares; the best candidate leaves the least variance."""

    def __init__(self, params: Params, depth: int) -> None:
        super().__init__(params, depth)
        # For each candidate, and for all examples in the last row: count, sums, sums of squares.
        self._sums = np.zeros((1, 1 + 2 * params.outputs), np.float32)

    @property
    def finished(self) -> bool:
        return bool(self.weight >= self._enough)

    def propose(self, test: Test) -> None:
        super().propose(test)
        self._sums = np.insert(self._sums, -1, 0, axis=0)

    def add(self, batch: Batch, rows: Array) -> None:
        lefts = self.lefts(batch.examples, rows).astype(np.float32)
        targets = batch.targets[rows]
        ones = np.ones((len(rows), 1), np.float32)
        terms = np.concatenate([ones, targets, targets * targets], axis=1)
        self._sums += np.concatenate([lefts, ones], axis=1).T @ terms
        self.weight = self._sums[-1, 0]

    def best(self) -> tuple[Test, Array, Array] | None:
        left, right = self._sums[:-1], self._sums[-1] - self._sums[:-1]
        useful = np.flatnonzero((left[:, 0] > 0) & (right[:, 0] > 0))
        if not len(useful):
            return None
        scores = _variance(left[useful]) + _variance(right[useful])
        place = int(useful[scores.argmin()])
        return self.tests[place], _means(left[place]), _means(right[place])

    def pack(self, slot: Any) -> None:
        slot.post_init_leaf_stats.weight_sum = float(self.weight)
        _put_sums(slot.post_init_leaf_stats.regression, self._sums[-1])
        for test, sums in zip(self.tests, self._sums[:-1], strict=True):
            candidate = slot.candidates.add()
            candidate.split.CopyFrom(split_of(test))
            candidate.left_stats.weight_sum = float(sums[0])
            _put_sums(candidate.left_stats.regression, sums)

    def unpack(self, slot: Any) -> None:
        self.weight = np.float32(slot.post_init_leaf_stats.weight_sum)
        self._sums[-1] = _sums_of(slot.post_init_leaf_stats)
        for candidate in slot.candidates:
            self.propose(test_of(candidate.split))
            self._sums[-2] = _sums_of(candidate.left_stats)


def _means(sums: Array) -> Array:
    return np.asarray(sums[1 : 1 + len(sums) // 2] / sums[0])


def _variance(sums: Array) -> Array:
    means = sums[:, 1:] / sums[:, :1]
    outputs = means.shape[1] // 2
    return np.asarray((means[:, outputs:] - means[:, :outputs] ** 2).sum(1))


def _put_sums(message: Any, sums: Array) -> None:
    outputs = len(sums) // 2
    _put_vector(message.mean_output, sums[1 : 1 + outputs])
    _put_vector(message.mean_output_squares, sums[1 + outputs :])


def _sums_of(stats: Any) -> Array:
    means, squares = stats.regression.mean_output, stats.regression.mean_output_squares
    return np.concatenate([[np.float32(stats.weight_sum)], _vector_of(means), _vector_of(squares)])


class FertileStats:
    """The counts of all leaves of a tree.

    Args:
        params: how the forest grows.
        serialized: a `FertileStats` message; empty for those of a tree that is one leaf.
    """

    def __init__(self, params: Params, serialized: bytes) -> None:
        self.lock = threading.RLock()
        self.load(params, serialized)

    def load(self, params: Params, serialized: bytes) -> None:
        """Takes the place of what was there."""
        self._params, self._slots = params, dict[int, Slot]()
        for given in host_ops.forest_message("FertileStats", serialized).node_to_slot:
            slot = self._slots[given.node_id] = self._slot(given.depth)
            if given.HasField("post_init_leaf_stats"):
                slot.unpack(given)
        if not self._slots:
            self._slots[0] = self._slot(0)

    def _slot(self, depth: int) -> Slot:
        kind = self._params.message.stats_type
        if kind in (_GINI, _SPARSE_GINI):
            return _Classes(self._params, depth)
        if kind == _SQUARES:
            return _Squares(self._params, depth)
        raise errors.UnimplementedError(
            None, None,
            f"Random trees count classes in full here, not by stats_type {kind}: take the model "
            "names 'all_dense' or 'all_sparse'",
        )  # fmt: skip

    def serialized(self) -> bytes:
        """The counts as a `FertileStats` message: the leaves alone, unless counts are kept too."""
        message = host_ops.forest_message("FertileStats")
        for node, slot in self._slots.items():
            packed = message.node_to_slot.add()
            packed.node_id, packed.depth = node, slot.depth
            if self._params.message.checkpoint_stats:
                slot.pack(packed)
        text: bytes = message.SerializeToString()
        return text

    def add(self, batch: Batch, leaves: Array, draws: Draws) -> list[int]:
        """Counts examples at their leaves.

        Returns:
            The leaves that are ready to be split.
        """
        collated, ready = bool(self._params.message.collate_examples), dict[int, None]()
        counted: dict[int, list[int]] = {}
        late: set[int] = set()
        for row, leaf in enumerate(leaves.tolist()):
            slot = self._at(leaf)
            if leaf in late and slot.complete:
                continue  # TF drops what a batch has left where its leaf was just completed
            if slot.complete:
                counted.setdefault(leaf, []).append(row)
                continue
            slot.offer(batch, row, draws)
            if collated:
                late.add(leaf)
        for leaf, rows in counted.items():
            slot = self._slots[leaf]
            step = len(rows) if slot.at_once else 1
            for start in range(0, len(rows), step):
                slot.add(batch, np.array(rows[start : start + step]))
                if slot.finished:
                    ready[leaf] = None
        return list(ready)

    def _at(self, leaf: int) -> Slot:
        if leaf not in self._slots:
            raise errors.InvalidArgumentError(
                None, None, f"Leaf {leaf} of a random tree has no counts: they are another tree's"
            )
        return self._slots[leaf]

    def grown(self, finished: Iterable[int], first: int) -> list[tuple[int, Test, Array, Array]]:
        """The splits of leaves, whose counts give way to those of two new leaves each.

        Args:
            finished: the leaves.
            first: the number of the first new leaf.
        """
        splits = []
        room = int(self._params.message.max_nodes)
        for leaf in finished:
            if first >= room:
                break
            slot = self._at(leaf)
            best = slot.best()
            if best is None:
                self._slots[leaf] = self._slot(slot.depth)
                continue
            splits.append((leaf, *best))
            for child in (first, first + 1):
                self._slots[child] = self._slot(slot.depth + 1)
            del self._slots[leaf]
            first += 2
        return splits
