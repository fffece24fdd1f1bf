"""Kernels that make datasets of functions of the user's."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from opdock import errors
from opdock.dtypes import DType
from opdock.io.examples import Dense, Sparse
from opdock.kernels.data import flattening, grouping, mapping
from opdock.kernels.data.base import (
    Captured,
    Dataset,
    Element,
    component,
    declared,
    invalid,
    scalar_int,
)
from opdock.kernels.data.batching import MapAndBatchDataset
from opdock.kernels.data.binding import Make, captured, hosted, listed, resources_of
from opdock.kernels.data.branching import ChooseFastestBranchDataset
from opdock.kernels.data.context import Context
from opdock.kernels.data.interleaving import ParallelInterleaveDataset
from opdock.kernels.data.memory import dataset_of
from opdock.kernels.data.parallel import AUTOTUNE, parallelism
from opdock.kernels.data.parallel_map import ParallelMapDataset
from opdock.kernels.data.parsing import Parser
from opdock.kernels.data.rows import stack
from opdock.kernels.select.signature import NodeSig
from opdock.shapes import Shape, as_shape, text
from opdock.shapes import is_compatible as compatible

__all__: list[str] = []

_CAPTURED = "input_dataset other_arguments"


def _parallelism(value: Any, what: str = "num_parallel_calls") -> int:
    """How many calls at once; as many as there are cores where it is to tune itself."""
    count = parallelism(scalar_int(value, what))
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


@hosted("ParseExampleDataset", inputs="input_dataset num_parallel_calls dense_defaults")
def parse_example(sig: NodeSig) -> Make:
    """The features of batches of Examples."""
    attrs, resources = sig.attrs, resources_of(sig)
    types, element_shapes = declared(sig)
    sparse = [
        Sparse(_text(key), kind)
        for key, kind in zip(attrs["sparse_keys"], attrs["sparse_types"], strict=True)
    ]

    def run(source: Any, calls: Any, *defaults: Any) -> Dataset:
        parts = attrs["dense_keys"], attrs["Tdense"], attrs["dense_shapes"], defaults
        dense = [
            Dense(_text(key), kind, as_shape(shape), np.asarray(default))
            for key, kind, shape, default in zip(*parts, strict=True)
        ]
        return ParallelMapDataset(
            dataset_of(source), Parser(sparse, dense), _parallelism(calls), not attrs["sloppy"],
            True, types, element_shapes, resources,
        )  # fmt: skip

    return run


def _text(key: Any) -> str:
    return key.decode() if isinstance(key, bytes) else str(key)


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


@hosted(
    "ChooseFastestBranchDataset",
    inputs="input_dataset ratio_numerator ratio_denominator other_arguments",
)
def choose_fastest_branch(sig: NodeSig) -> Make:
    """What functions make of a dataset, by the one that is the fastest."""
    types, shapes = declared(sig)
    counts, tried = sig.attrs["other_arguments_lengths"], int(sig.attrs["num_elements_per_branch"])
    functions = sig.functions("branches")
    if len(counts) != len(functions):
        raise invalid("branches and other_arguments_lengths must have the same length.")

    def run(source: Any, numerator: Any, denominator: Any, *values: Any) -> Dataset:
        rest = iter(values)
        branches = [
            Captured(f, list(itertools.islice(rest, n)))
            for f, n in zip(functions, counts, strict=True)
        ]
        ratio = scalar_int(numerator, "ratio_numerator"), scalar_int(denominator, "denominator")
        return ChooseFastestBranchDataset(
            dataset_of(source), branches, *ratio, tried, types, shapes
        )

    return run


@hosted("MapDefun", inputs="arguments captured_inputs", outputs="output")
def map_defun(sig: NodeSig) -> Make:
    """A function of each row, whose results are stacked."""
    types, shapes = declared(sig)
    call, count = sig.function("f").instance(), len(sig.attrs["Targuments"])

    def run(*values: Any) -> Any:
        arguments = [np.asarray(v) for v in values[:count]]
        for i, argument in enumerate(arguments):
            if not argument.ndim:
                raise invalid(f"All inputs must have rank at least 1. Input {i} has a rank of 0.")
            if len(argument) != len(arguments[0]):
                raise invalid("All inputs must have the same dimension 0.")
        rows = [
            _row(call([*(a[i, ...] for a in arguments), *values[count:]]), types, shapes)
            for i in range(len(arguments[0]))
        ]
        if rows:
            return listed(stack(rows))
        return listed(tuple(map(_nothing, types, shapes)))

    return run


def _row(results: Sequence[Any], types: Sequence[DType], shapes: Sequence[Shape]) -> Element:
    """What a function gave for a row.

    Raises:
        InvalidArgumentError: it gave something else than was declared.
    """
    row = tuple(map(component, results))
    found = [r.dtype if isinstance(r, np.ndarray) else None for r in row]
    for i, (kind, wanted) in enumerate(zip(found, types, strict=True)):
        if wanted.is_numpy_compatible and wanted.name != "string" and kind != wanted.np:
            raise invalid(f"Result {i} of the function is {kind}, but {wanted.name} was declared.")
        shape = np.shape(row[i])
        if not compatible(shape, shapes[i]):
            raise invalid(
                f"Mismatch in function return shape and expected output shape. Output: {i}, "
                f"expected {text(shapes[i])}, got {text(shape)}."
            )
    return row


def _nothing(kind: DType, shape: Shape) -> Any:
    """No rows of what a function would give."""
    return np.zeros((0, *(n or 0 for n in shape or ())), kind.np)


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
        context = Context(dataset_of(source))
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
