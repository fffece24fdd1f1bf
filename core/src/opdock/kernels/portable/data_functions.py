"""Kernels that make datasets of functions of the user's."""

from __future__ import annotations

import os
from typing import Any

from opdock import errors
from opdock.kernels.data import flattening, grouping, mapping
from opdock.kernels.data.base import Captured, Dataset, declared, invalid, scalar_int
from opdock.kernels.data.batching import MapAndBatchDataset
from opdock.kernels.data.binding import Make, captured, hosted, resources_of
from opdock.kernels.data.context import Context
from opdock.kernels.data.interleaving import ParallelInterleaveDataset
from opdock.kernels.data.memory import dataset_of
from opdock.kernels.data.parallel import AUTOTUNE
from opdock.kernels.data.parallel_map import ParallelMapDataset
from opdock.kernels.select.signature import NodeSig

__all__: list[str] = []

_CAPTURED = "input_dataset other_arguments"


def _parallelism(value: Any, what: str = "num_parallel_calls") -> int:
    """How many calls at once; as many as there are cores where it is to tune itself."""
    count = scalar_int(value, what)
    if count == AUTOTUNE:
        return max(2, os.cpu_count() or 1)
    if count < 1:
        raise invalid(f"{what} must be greater than zero.")
    return count


@hosted("MapDataset", inputs=_CAPTURED)
def map_(sig: NodeSig) -> Make:
    """A function of each element."""
    types, shapes = declared(sig)
    keeps = bool(sig.attrs["preserve_cardinality"])
    return lambda source, *values: mapping.MapDataset(
        dataset_of(source), captured(sig, "f", values), keeps, types, shapes
    )


@hosted("ParallelMapDataset", inputs=f"{_CAPTURED} num_parallel_calls")
def parallel_map(sig: NodeSig) -> Make:
    """The same of several at once."""
    types, shapes = declared(sig)
    keeps, in_order = bool(sig.attrs["preserve_cardinality"]), not sig.attrs["sloppy"]
    resources = resources_of(sig)
    return lambda source, *given: ParallelMapDataset(
        dataset_of(source), captured(sig, "f", given[:-1]), _parallelism(given[-1]), in_order,
        keeps, types, shapes, resources,
    )  # fmt: skip


@hosted("MapAndBatchDataset", inputs=f"{_CAPTURED} batch_size num_parallel_calls drop_remainder")
def map_and_batch(sig: NodeSig) -> Make:
    """The same, stacked."""
    types, shapes = declared(sig)
    keeps, resources = bool(sig.attrs["preserve_cardinality"]), resources_of(sig)
    inner = [None if s is None else s[1:] for s in shapes]

    def run(source: Any, *given: Any) -> Dataset:
        *values, size, calls, drop = given
        mapped = ParallelMapDataset(
            dataset_of(source), captured(sig, "f", values), _parallelism(calls), True, keeps,
            types, inner, resources,
        )  # fmt: skip
        return MapAndBatchDataset(mapped, scalar_int(size, "batch_size"), bool(drop), types, shapes)

    return run


@hosted("FlatMapDataset", inputs=_CAPTURED)
def flat_map(sig: NodeSig) -> Make:
    """Datasets, one after the other."""
    types, shapes = declared(sig)
    return lambda source, *values: flattening.FlatMapDataset(
        dataset_of(source), captured(sig, "f", values), types, shapes
    )


@hosted("InterleaveDataset", inputs=f"{_CAPTURED} cycle_length block_length")
def interleave(sig: NodeSig) -> Make:
    """Datasets in turn."""
    types, shapes = declared(sig)
    return lambda source, *given: flattening.InterleaveDataset(
        dataset_of(source), captured(sig, "f", given[:-2]), *_cycle(given[-2:]), types, shapes
    )


def _cycle(values: Any) -> tuple[int, int]:
    return scalar_int(values[0], "cycle_length"), scalar_int(values[1], "block_length")


@hosted(
    "ParallelInterleaveDatasetV2",
    inputs=f"{_CAPTURED} cycle_length block_length num_parallel_calls",
)
def parallel_interleave_v2(sig: NodeSig) -> Make:
    """The same, made ahead."""
    types, shapes = declared(sig)
    resources, in_order = resources_of(sig), not sig.attrs["sloppy"]

    def run(source: Any, *given: Any) -> Dataset:
        (cycle, block), limit = _cycle(given[-3:-1]), _parallelism(given[-1])
        if limit > cycle > 0 and scalar_int(given[-1], "num_parallel_calls") != AUTOTUNE:
            raise invalid("num_parallel_calls must less than or equal to cycle_length.")
        return ParallelInterleaveDataset(
            dataset_of(source), captured(sig, "f", given[:-3]), cycle, block, limit,
            max(1, block), in_order, types, shapes, resources,
        )  # fmt: skip

    return run


@hosted(
    "ParallelInterleaveDataset",
    inputs=f"{_CAPTURED} cycle_length block_length sloppy buffer_output_elements "
    "prefetch_input_elements",
)
def parallel_interleave(sig: NodeSig) -> Make:
    """The same with as many at once as are open."""
    types, shapes = declared(sig)
    resources = resources_of(sig)

    def run(source: Any, *given: Any) -> Dataset:
        cycle, block = _cycle(given[-5:-3])
        ahead = scalar_int(given[-2], "buffer_output_elements")
        if ahead <= 0:
            raise invalid("`buffer_output_elements` must be > 0")
        if scalar_int(given[-1], "prefetch_input_elements") < 0:
            raise invalid("`prefetch_input_elements` must be >= 0")
        if cycle <= 0:
            raise invalid("`cycle_length` must be > 0")
        if block <= 0:
            raise invalid("`block_length` must be > 0")
        return ParallelInterleaveDataset(
            dataset_of(source), captured(sig, "f", given[:-5]), cycle, block, cycle, ahead,
            not given[-3], types, shapes, resources,
        )  # fmt: skip

    return run


@hosted("FilterDataset", inputs=_CAPTURED)
def filter_(sig: NodeSig) -> Make:
    """The elements of which a predicate holds."""
    return lambda source, *values: mapping.FilterDataset(
        dataset_of(source), captured(sig, "predicate", values)
    )


@hosted("TakeWhileDataset", inputs=_CAPTURED)
def take_while(sig: NodeSig) -> Make:
    """The elements as long as a predicate holds."""
    return lambda source, *values: mapping.TakeWhileDataset(
        dataset_of(source), captured(sig, "predicate", values)
    )


@hosted("ScanDataset", inputs="input_dataset initial_state other_arguments")
def scan(sig: NodeSig) -> Make:
    """A function of a state and each element."""
    types, shapes = declared(sig)
    keeps, count = bool(sig.attrs["preserve_cardinality"]), len(sig.attrs["Tstate"])
    return lambda source, *given: mapping.ScanDataset(
        dataset_of(source), given[:count], captured(sig, "f", given[count:]), keeps, types, shapes
    )


# ---------------------------------------------------------------- groups
def _functions(sig: NodeSig, names: tuple[str, ...], values: Any) -> list[Captured]:
    found, first = [], 0
    for name in names:
        end = first + len(sig.attrs[f"T{name}_other_arguments"])
        found.append(captured(sig, name, values[first:end]))
        first = end
    return found


@hosted(
    "GroupByReducerDataset",
    inputs="input_dataset key_func_other_arguments init_func_other_arguments "
    "reduce_func_other_arguments finalize_func_other_arguments",
)
def group_by_reducer(sig: NodeSig) -> Make:
    """What is left of each group."""
    types, shapes = declared(sig)
    names = ("key_func", "init_func", "reduce_func", "finalize_func")
    return lambda source, *values: grouping.GroupByReducerDataset(
        dataset_of(source),
        _functions(sig, names, values),
        types,
        shapes,
    )


@hosted(
    "GroupByWindowDataset",
    inputs="input_dataset key_func_other_arguments reduce_func_other_arguments "
    "window_size_func_other_arguments",
)
def group_by_window(sig: NodeSig) -> Make:
    """Datasets of windows of each group."""
    types, shapes = declared(sig)
    names = ("key_func", "reduce_func", "window_size_func")
    return lambda source, *values: grouping.GroupByWindowDataset(
        dataset_of(source),
        _functions(sig, names, values),
        types,
        shapes,
    )


# ---------------------------------------------------------------- reducing
@hosted("ReduceDataset", inputs="input_dataset initial_state other_arguments", outputs="components")
def reduce(sig: NodeSig) -> Make:
    """The last state of a function that goes from state and element to state."""
    count = len(sig.attrs["Tstate"])

    def run(source: Any, *given: Any) -> Any:
        context = Context()
        call = captured(sig, "f", given[count:]).within(context)
        state = tuple(given[:count])
        iterator = dataset_of(source).iterator(context)
        try:
            while (element := iterator.next()) is not None:
                try:
                    state = call((*state, *element))
                except errors.OutOfRangeError as e:
                    mapping.map_error(e, True)
        finally:
            iterator.close()
        return state[0] if len(state) == 1 else state

    return run
