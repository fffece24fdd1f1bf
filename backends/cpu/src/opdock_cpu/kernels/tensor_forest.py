"""Kernels of random forests, whose trees and counts are host resources."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.plugin import KernelTable, NodeSig, checks
from opdock_cpu.fertile import Batch, FertileStats
from opdock_cpu.forests import Draws, Examples, Params, Tree
from opdock_cpu.places import Place, place_kernels

__all__ = ["table"]

Array = npt.NDArray[Any]

table = KernelTable()
place_kernels(table, "DecisionTreeResourceHandleOp", "TreeIsInitializedOp", Tree)
place_kernels(table, "FertileStatsResourceHandleOp", "FertileStatsIsInitializedOp", FertileStats)


def _bytes(value: Any) -> bytes:
    found = np.asarray(value, object)[()]
    return found.encode() if isinstance(found, str) else bytes(found)


def _scalar(text: bytes) -> Array:
    out = np.empty((), object)
    out[()] = text
    return out


def _params(sig: NodeSig) -> Params:
    return Params(_bytes(sig.attrs["params"]))


@table.binder("CreateTreeVariable", keeps=())
def create_tree(sig: NodeSig) -> Callable[..., tuple[()]]:
    """Makes the tree, if there is none."""
    params = _params(sig)

    def run(place: Place[Tree], config: Array) -> tuple[()]:
        place.fill(lambda: Tree(params, _bytes(config)))
        return ()

    return run


@table.binder("CreateFertileStatsVariable", keeps=())
def create_stats(sig: NodeSig) -> Callable[..., tuple[()]]:
    """Makes the counts, if there are none."""
    params = _params(sig)

    def run(place: Place[FertileStats], config: Array) -> tuple[()]:
        place.fill(lambda: FertileStats(params, _bytes(config)))
        return ()

    return run


@table.binder("TreeDeserialize", keeps=())
@table.binder("FertileStatsDeserialize", keeps=())
def deserialize(sig: NodeSig) -> Callable[..., tuple[()]]:
    """Puts others in their place."""
    params = _params(sig)

    def run(place: Place[Tree | FertileStats], config: Array) -> tuple[()]:
        found = place.content
        with found.lock:
            found.load(params, _bytes(config))
        return ()

    return run


@table.kernel("TreeSerialize", keeps=())
@table.kernel("FertileStatsSerialize", keeps=())
def serialize(ctx: Any, place: Place[Tree | FertileStats]) -> Array:
    """The message of what is there."""
    found = place.content
    with found.lock:
        return _scalar(found.serialized())


@table.kernel("TreeSize", keeps=())
def tree_size(ctx: Any, place: Place[Tree]) -> Array:
    """How many nodes there are."""
    found = place.content
    with found.lock:
        return np.array(len(found), np.int32)


@table.kernel("FeatureUsageCounts", keeps=())
def feature_usage(ctx: Any, place: Place[Tree]) -> Array:
    """How many nodes test each feature."""
    found = place.content
    with found.lock:
        return found.usage()


@table.binder("TraverseTreeV4", keeps=())
def traverse(sig: NodeSig) -> Callable[..., Array]:
    """Where examples end."""
    spec = _bytes(sig.attrs["input_spec"]).decode()

    def run(place: Place[Tree], *inputs: Array) -> Array:
        found = place.content
        with found.lock:
            return found.leaves(Examples(spec, *inputs))

    return run


@table.binder("TreePredictionsV4", keeps=())
def predictions(sig: NodeSig) -> Callable[..., tuple[Array, Array]]:
    """What the tree says of examples, and on request the nodes that each passed."""
    spec = _bytes(sig.attrs["input_spec"]).decode()
    with_paths = bool(_params(sig).message.inference_tree_paths)

    def run(place: Place[Tree], *inputs: Array) -> tuple[Array, Array]:
        found = place.content
        with found.lock:
            leaves = found.leaves(Examples(spec, *inputs))
            paths = np.empty(len(leaves) if with_paths else 0, object)
            paths[:] = [found.path(leaf) for leaf in leaves[: len(paths)].tolist()]
            return found.predictions(leaves), paths

    return run


def _targets(params: Params, labels: Array) -> Array:
    """A class for each example, or a row of numbers."""
    if params.regression:
        rows = labels.reshape(len(labels), -1)
        if rows.shape[1] != params.outputs:
            raise checks.invalid(
                f"The forest is for {params.outputs} numbers an example, labels have "
                f"{rows.shape[1]}"
            )
        return rows
    classes = labels.reshape(-1).astype(np.int32)
    if len(classes) and not 0 <= classes.min() <= classes.max() < params.outputs:
        raise checks.invalid(
            f"Labels from {classes.min()} to {classes.max()} are none of {params.outputs} classes: "
            "is num_classes right?"
        )
    return classes


@table.binder("UpdateModelV4", keeps=())
def update_model(sig: NodeSig) -> Callable[..., tuple[()]]:
    """Adds examples to what their leaves predict."""
    params = _params(sig)

    def run(place: Place[Tree], leaves: Array, labels: Array, weights: Array) -> tuple[()]:
        found, targets = place.content, _targets(params, labels)
        with found.lock:
            if not params.regression:  # its leaves' means stay what they were when they split
                found.add(leaves, targets, _weights(weights, len(targets)))
        return ()

    return run


def _weights(given: Array, count: int) -> Array:
    """A weight for each example; 1 for those without one."""
    found = np.ones(count, np.float32)
    known = given.reshape(-1)[:count]
    found[: len(known)] = known
    return found


@table.binder("ProcessInputV4", keeps=())
def process_input(sig: NodeSig) -> Callable[..., Array]:
    """Adds examples to the counts of their leaves; which of these are ready to be split."""
    params, spec = _params(sig), _bytes(sig.attrs["input_spec"]).decode()
    seed = int(sig.attrs["random_seed"])

    def run(tree: Place[Tree], stats: Place[FertileStats], *inputs: Array) -> Array:
        *features, labels, weights, leaves = inputs
        found, targets = stats.content, _targets(params, labels)
        batch = Batch(Examples(spec, *features), targets, _weights(weights, len(targets)))
        with found.lock:
            return np.array(found.add(batch, leaves, Draws(seed)), np.int32)

    return run


@table.kernel("GrowTreeV4", keeps=())
def grow(ctx: Any, tree: Place[Tree], stats: Place[FertileStats], finished: Array) -> tuple[()]:
    """Splits leaves that are ready, as far as the tree may grow."""
    grown, counts = tree.content, stats.content
    with counts.lock, grown.lock:
        grown.split(counts.grown(finished.tolist(), len(grown)))
    return ()
