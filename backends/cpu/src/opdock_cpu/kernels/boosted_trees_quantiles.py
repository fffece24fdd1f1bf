"""Kernels of quantile summaries and their streams, which are host resources."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.plugin import KernelTable, NodeSig, checks
from opdock_cpu.places import Place, place_kernels
from opdock_cpu.quantiles import QuantileStreams, Stream

__all__ = ["table"]

Array = npt.NDArray[Any]
Results = Array | tuple[Array, ...]

table = KernelTable()
place_kernels(
    table, "BoostedTreesQuantileStreamResourceHandleOp",
    "IsBoostedTreesQuantileStreamResourceInitialized", QuantileStreams,
)  # fmt: skip


def _results(found: list[Array]) -> Results:
    """An array for each feature, as the program takes them."""
    return found[0] if len(found) == 1 else tuple(found)


@table.kernel("BoostedTreesMakeQuantileSummaries")
def make_summaries(ctx: Any, *features_and_more: Array) -> Results:
    """A summary of each feature's values."""
    *features, weights, epsilon = features_and_more
    if not features:
        return ()
    count = len(features[0])
    if weights.size not in (1, count):
        raise checks.invalid("Weights should be a single value or same size as features.")
    if not 0 < epsilon < 1:
        raise checks.invalid(f"epsilon must be in (0, 1), got {float(epsilon)}")
    out = []
    for values in features:
        if len(values) != count:
            raise checks.invalid(f"Features must have one length, got {count} and {len(values)}")
        stream = Stream(float(epsilon), count + 1)
        stream.push(values, np.broadcast_to(weights, (count,)))
        out.append(stream.summary())
    return _results(out)


# ---------------------------------------------------------------- streams
@table.binder("BoostedTreesCreateQuantileStreamResource", keeps=())
def create(sig: NodeSig) -> Callable[..., tuple[()]]:
    """Makes the streams, if there are none."""
    most = int(sig.attrs["max_elements"])

    def run(place: Place[QuantileStreams], epsilon: Array, count: Array) -> tuple[()]:
        place.fill(lambda: QuantileStreams(float(epsilon), most, int(count)))
        return ()

    return run


@table.kernel("BoostedTreesQuantileStreamResourceAddSummaries", keeps=())
def add_summaries(ctx: Any, place: Place[QuantileStreams], *summaries: Array) -> tuple[()]:
    """Adds a summary to each stream."""
    for entries in summaries:
        if entries.shape[1] != 4:
            raise checks.invalid(f"A summary has 4 columns, got shape {list(entries.shape)}")
    with place.content.lock:
        place.content.add([np.array(entries) for entries in summaries])
    return ()


@table.kernel("BoostedTreesQuantileStreamResourceDeserialize", keeps=())
def deserialize(ctx: Any, place: Place[QuantileStreams], *boundaries: Array) -> tuple[()]:
    """Puts boundaries back."""
    with place.content.lock:
        place.content.check_count(len(boundaries))
        place.content.boundaries = [np.array(each) for each in boundaries]
    return ()


@table.binder("BoostedTreesQuantileStreamResourceFlush", keeps=())
def flush(sig: NodeSig) -> Callable[..., tuple[()]]:
    """Draws boundaries from the streams."""
    quantiles = bool(sig.attrs["generate_quantiles"])

    def run(place: Place[QuantileStreams], count: Array) -> tuple[()]:
        with place.content.lock:
            place.content.flush(int(count), quantiles)
        return ()

    return run


@table.binder("BoostedTreesFlushQuantileSummaries", keeps=())
def flush_summaries(sig: NodeSig) -> Callable[..., Results]:
    """Takes the summaries out of the streams."""
    count = int(sig.attrs["num_features"])

    def run(place: Place[QuantileStreams]) -> Results:
        with place.content.lock:
            place.content.check_count(count)
            return _results(place.content.take())

    return run


@table.binder("BoostedTreesQuantileStreamResourceGetBucketBoundaries", keeps=())
def bucket_boundaries(sig: NodeSig) -> Callable[..., Results]:
    """The boundaries that were last drawn."""
    count = int(sig.attrs["num_features"])

    def run(place: Place[QuantileStreams]) -> Results:
        with place.content.lock:
            place.content.check_count(count)
            return _results(place.content.boundaries)

    return run
