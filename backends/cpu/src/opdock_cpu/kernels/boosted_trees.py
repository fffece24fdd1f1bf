"""Kernels of tree ensembles, which are host resources."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.plugin import KernelTable, NodeSig, checks
from opdock_cpu.ensembles import INEQUALITY, Ensemble, Split
from opdock_cpu.kernels.boosted_trees_stats import larger, weights_and_gains
from opdock_cpu.places import Place, place_kernels

__all__ = ["table"]

Array = npt.NDArray[Any]

_log = logging.getLogger("tensorflow")

table = KernelTable()
place_kernels(
    table, "BoostedTreesEnsembleResourceHandleOp", "IsBoostedTreesEnsembleInitialized", Ensemble
)


def _text(value: Any) -> bytes:
    found = np.asarray(value, object)[()]
    return found.encode() if isinstance(found, str) else bytes(found)


@table.kernel("BoostedTreesCreateEnsemble", keeps=())
def create(ctx: Any, place: Place[Ensemble], stamp: Array, serialized: Array) -> tuple[()]:
    """Makes the ensemble, if there is none."""
    place.fill(lambda: Ensemble(_text(serialized), int(stamp)))
    return ()


@table.kernel("BoostedTreesDeserializeEnsemble", keeps=())
def deserialize(ctx: Any, place: Place[Ensemble], stamp: Array, serialized: Array) -> tuple[()]:
    """Puts another ensemble in its place."""
    found = place.content
    with found.lock:
        found.load(_text(serialized), int(stamp))
    return ()


@table.kernel("BoostedTreesSerializeEnsemble", keeps=())
def serialize(ctx: Any, place: Place[Ensemble]) -> tuple[Array, Array]:
    """The ensemble as a message."""
    found = place.content
    with found.lock:
        text = np.empty((), object)
        text[()] = found.serialized()
        return np.array(found.stamp, np.int64), text


@table.kernel("BoostedTreesGetEnsembleStates", keeps=())
def states(ctx: Any, place: Place[Ensemble]) -> tuple[Array, ...]:
    """How far it has grown."""
    found = place.content
    with found.lock:
        stamp, *counts = found.states()
    return (np.array(stamp, np.int64), *(np.array(count, np.int32) for count in counts))


# ---------------------------------------------------------------- predictions
@table.binder("BoostedTreesPredict", keeps=())
def predict(sig: NodeSig) -> Callable[..., Array]:
    """The logits of examples."""
    logits = int(sig.attrs["logits_dimension"])

    def run(place: Place[Ensemble], *features: Array) -> Array:
        found = place.content
        with found.lock:
            return found.predict(_rows(features), logits)

    return run


def _rows(features: Sequence[Array]) -> Array:
    lengths = {len(feature) for feature in features}
    if len(lengths) > 1:
        raise checks.invalid(f"Features must have one length, got {sorted(lengths)}")
    return np.stack(features)


@table.binder("BoostedTreesTrainingPredict", keeps=())
def training_predict(sig: NodeSig) -> Callable[..., tuple[Array, ...]]:
    """What has been added to logits since a step before."""
    logits = int(sig.attrs["logits_dimension"])

    def run(
        place: Place[Ensemble], trees: Array, nodes: Array, *features: Array
    ) -> tuple[Array, ...]:
        found, rows = place.content, _rows(features)
        if not len(trees) == len(nodes) == rows.shape[1]:
            raise checks.invalid(
                f"{rows.shape[1]} examples have {len(trees)} cached_tree_ids and {len(nodes)} "
                "cached_node_ids"
            )
        with found.lock:
            return found.predict_from(trees, nodes, rows, logits)

    return run


@table.binder("BoostedTreesExampleDebugOutputs", keeps=())
def debug_outputs(sig: NodeSig) -> Callable[..., Array]:
    """The way of each example through the trees."""
    if sig.attrs["logits_dimension"] != 1:
        raise checks.invalid("Currently only one dimensional outputs are supported.")

    def run(place: Place[Ensemble], *features: Array) -> Array:
        found, rows = place.content, _rows(features)
        out = np.empty(rows.shape[1], object)
        with found.lock:
            out[:] = found.explain(rows)
        return out

    return run


# ---------------------------------------------------------------- growth
@table.kernel("BoostedTreesCenterBias", keeps=())
def center_bias(
    ctx: Any, place: Place[Ensemble], gradients: Array, hessians: Array, l1: Array, l2: Array
) -> Array:
    """Moves the first root towards the mean."""
    if gradients.size != 1:
        raise checks.invalid(f"Centering is for one logit, got gradients of {gradients.shape}")
    weights, _ = weights_and_gains(gradients.reshape(1, 1), hessians.reshape(1, 1), l1, l2)
    found = place.content
    with found.lock:
        return np.array(found.center(weights[0, 0]))


@table.binder("BoostedTreesUpdateEnsemble", keeps=())
def update(sig: NodeSig) -> Callable[..., tuple[()]]:
    """Adds a layer of the best splits."""
    count, pruning = int(sig.attrs["num_features"]), int(sig.attrs["pruning_mode"])

    def run(place: Place[Ensemble], features: Array, *more: Array) -> tuple[()]:
        *lists, max_depth, learning_rate = more
        nodes, gains, thresholds, left, right = _by_kind(lists, count, 5)
        dimensions = [np.zeros(len(each), np.int32) for each in nodes]
        kinds = [np.full(len(each), INEQUALITY, object) for each in nodes]
        candidates = (nodes, gains, thresholds, dimensions, left, right, kinds)
        _grow(place, _best(features, candidates, learning_rate), max_depth, pruning)
        return ()

    return run


@table.binder("BoostedTreesUpdateEnsembleV2", keeps=())
def update_v2(sig: NodeSig) -> Callable[..., tuple[()]]:
    """Adds a layer of the best splits, of any kind and of any dimension."""
    count = int(sig.attrs["num_features"])

    def run(place: Place[Ensemble], features: Array, *more: Array) -> tuple[()]:
        *lists, max_depth, learning_rate, pruning = more
        dimensions, nodes, gains, thresholds, left, right, kinds = _by_kind(lists, count, 7)
        candidates = (nodes, gains, thresholds, dimensions, left, right, kinds)
        _grow(place, _best(features, candidates, learning_rate), max_depth, int(pruning))
        return ()

    return run


def _by_kind(lists: Sequence[Array], count: int, kinds: int) -> list[Sequence[Array]]:
    """Inputs that follow each other, feature by feature, for each kind of input."""
    return [lists[i * count : (i + 1) * count] for i in range(kinds)]


def _grow(place: Place[Ensemble], splits: dict[int, Split], max_depth: Array, pruning: int) -> None:
    found = place.content
    with found.lock:
        if not found.grow(splits, int(max_depth), pruning):
            _log.warning("Not growing tree ensemble as no good splits were found.")


def _best(
    features: Array, candidates: Sequence[Sequence[Array]], learning_rate: Array
) -> dict[int, Split]:
    """The split of each node that gains most; of equal ones that of the first feature.

    Args:
        features: the features' numbers.
        candidates: for each feature the nodes, gains, thresholds, dimensions, what is added on
            the left and on the right, and the kinds of splits.
        learning_rate: the share of it that is added.
    """
    rate, best = np.float32(learning_rate), dict[int, Split]()
    for feature, *columns in zip(features.tolist(), *candidates, strict=True):
        for node, gain, threshold, dimension, left, right, kind in zip(*columns, strict=True):
            known = best.get(int(node))
            if known is not None and not larger(gain, known.gain):
                tied = not larger(known.gain, gain)
                if not (tied and feature < known.feature):
                    continue
            best[int(node)] = Split(
                feature=feature, gain=gain, threshold=int(threshold), dimension=int(dimension),
                left=rate * left[0], right=rate * right[0], kind=_text(kind),
            )  # fmt: skip
    return best
