"""`tf.vectorized_map`, and what TF has in its internal `parallel_for`: a function of each row.

The function is traced once. Where every op of it knows how to take many rows, they are computed
together (`graph/control/rows.py`), with no loop; else a loop computes them one by one.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

from opdock import dtypes
from opdock.graph.control.func_graph import FuncGraph
from opdock.graph.control.function_op import copied_into
from opdock.graph.control.rows import by_rows
from opdock.graph.nodes.composite import IndexedSlices, SparseTensor
from opdock.graph.nodes.constant import constant
from opdock.graph.nodes.constant_value import constant_value
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.graph import get_default_graph
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import control_dependencies
from opdock.ops.array import shape
from opdock.ops.composed.functional import map_fn
from opdock.ops.fill import range as numbers_up_to
from opdock.ops.gather import gather
from opdock.ops.identity import identity
from opdock.ops.reduce import reduce_mean, reduce_sum
from opdock.ops.registry import get
from opdock.shapes import dimension_value
from opdock.util import nest

__all__ = ["for_loop", "pfor", "vectorized_map"]


def vectorized_map(fn: Callable[[Any], Any], elems: Any) -> Any:
    """What `fn` gives for each row of `elems`, stacked.

    Args:
        fn: a function of a row, or of a structure of rows like `elems`.
        elems: a tensor or a structure of tensors with equal first dimensions.

    Returns:
        The results, stacked along a new first dimension.
    """
    elems = nest.map_structure(convert_to_tensor, elems)
    first = nest.flatten(elems)[0]
    # Rows are gathered by number: a gradient taken in `fn` goes on from the row to the whole.
    known = dimension_value(first.shape[0])
    count = shape(first)[0] if known is None else known
    return _of_each(
        lambda i: fn(nest.map_structure(partial(gather, indices=i), elems)),
        numbers_up_to(count),
        None,
    )


def pfor(loop_fn: Callable[..., Any], iters: Any, parallel_iterations: int | None = None) -> Any:
    """What a function gives for each number below `iters`, stacked.

    Args:
        loop_fn: takes an int32 scalar; gives a structure of tensors, SparseTensors, operations and
            None. A function with an argument `pfor_config` gets a `PForConfig` for it.
        iters: how often it is called, a number or a scalar.
        parallel_iterations: how many are computed at once; None for all, where that is possible.

    Returns:
        In the structure of the results, tensors with a new first dimension, and an operation for
        each operation.

    Raises:
        ValueError: `parallel_iterations` is not above 1, or is given where the function asks for
            what all calls give.
    """
    if parallel_iterations is not None and parallel_iterations < 1:
        raise ValueError("parallel_iterations must be None or a positive integer")
    if parallel_iterations == 1:
        raise ValueError("Found parallel_iterations == 1. Use for_loop instead.")
    if parallel_iterations is not None and "pfor_config" in _parameters(loop_fn):
        raise ValueError(
            "Setting parallel_iterations currently unsupported if reductions across iterations are "
            "performed."
        )
    return _of_each(loop_fn, numbers_up_to(_count(iters)), parallel_iterations)


def for_loop(
    loop_fn: Callable[[Tensor], Any], loop_fn_dtypes: Any, iters: Any,
    parallel_iterations: int | None = None,
) -> Any:  # fmt: skip
    """Like `pfor`, but always a loop.

    Args:
        loop_fn: takes an int32 scalar.
        loop_fn_dtypes: the types of its results, in their structure.
        iters: how often it is called.
        parallel_iterations: how many may run at once.

    Returns:
        The results, stacked; None for those that are None, and for all if `iters` is 0.

    Raises:
        ValueError: there are more or fewer results than types.
    """
    if constant_value(_count(iters)) == 0:
        return None
    expected = nest.flatten(loop_fn_dtypes)
    absent: list[bool] = []

    def one(i: Tensor) -> list[Any]:
        found = nest.flatten(loop_fn(i))
        if len(found) != len(expected):
            raise ValueError(
                f"Number of expected outputs, {len(expected)}, does not match the number of actual "
                f"outputs, {len(found)}, from loop_fn"
            )
        absent[:] = [each is None for each in found]
        return [convert_to_tensor(each) for each in found if each is not None] or [i]

    with FuncGraph("trial", get_default_graph()).as_default():
        kinds = [t.dtype.base_dtype for t in one(constant(0, dtypes.int32))]
    stacked = iter(
        map_fn(one, numbers_up_to(_count(iters)), kinds, parallel_iterations=parallel_iterations)
    )
    flat = [None if lacks else next(stacked) for lacks in absent]
    return nest.pack_sequence_as(loop_fn_dtypes, flat)


def _count(iters: Any) -> Tensor:
    return convert_to_tensor(iters, dtypes.int32)


def _parameters(function: Callable[..., Any]) -> Any:
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):  # a builtin
        return ()


class PForConfig:
    """What a function that `pfor` calls may ask of all its calls.

    Args:
        graph: the function, as far as it is traced.
        numbers: what it is called with.
    """

    def __init__(self, graph: FuncGraph, numbers: Tensor) -> None:
        self._graph = graph
        self._numbers = numbers

    def reduce_concat(self, x: Any) -> Tensor:
        """What `x` is in each of the calls, stacked."""
        graph = self._graph
        graph.outputs = [_as_tensor(x)]
        assert graph.outer is not None
        with graph.outer.as_default():
            (stacked,) = _stacked(graph, self._numbers, None)
        return stacked

    def reduce_mean(self, x: Any) -> Tensor:
        """The mean of `x` over the calls."""
        return reduce_mean(self.reduce_concat(x), axis=0)

    def reduce_sum(self, x: Any) -> Tensor:
        """The sum of `x` over the calls."""
        return reduce_sum(self.reduce_concat(x), axis=0)


# ---------------------------------------------------------------- results of all kinds as tensors
def _of_each(fn: Callable[..., Any], numbers: Tensor, parallel_iterations: int | None) -> Any:
    """The stacked results of a function of each number."""
    graph = FuncGraph("rows", get_default_graph())
    with graph.as_default():
        given = graph.add_input(numbers.dtype.base_dtype, ())
        if "pfor_config" in _parameters(fn):
            results = fn(given, pfor_config=PForConfig(graph, numbers))
        else:
            results = fn(given)
        flat = nest.flatten(results)
        graph.outputs = [_as_tensor(each) for each in flat if each is not None]
    stacked = iter(_stacked(graph, numbers, parallel_iterations))
    made = [None if each is None else _stack_of(each, next(stacked)) for each in flat]
    return nest.pack_sequence_as(results, made)


def _as_tensor(result: Any) -> Tensor:
    """A tensor from whose stack the stack of results can be made."""
    if isinstance(result, Operation):
        with control_dependencies([result]):
            return identity(constant(0, dtypes.int32))
    if isinstance(result, SparseTensor):
        parts = (result.indices, result.values, result.dense_shape)
        return get("SerializeSparse")(*parts, out_type=dtypes.variant)  # type: ignore[no-any-return]
    found = convert_to_tensor(result)
    # What comes from outside as it is has no node in the function yet.
    return found if found.op.graph is get_default_graph() else identity(found)


def _stack_of(result: Any, stacked: Tensor) -> Any:
    if isinstance(result, Operation):
        return stacked.op
    if isinstance(result, SparseTensor):
        parts = get("DeserializeSparse")(stacked, dtype=result.dtype)
        return SparseTensor(*parts)
    if isinstance(result, IndexedSlices | Tensor):
        stacked.set_shape(stacked.shape[:1].concatenate(result.shape))
    return stacked


# ---------------------------------------------------------------- many rows
def _stacked(graph: FuncGraph, numbers: Tensor, parallel_iterations: int | None) -> list[Tensor]:
    """The stacked results of a function of each number."""
    captured = [outer for outer, _ in graph.captures]
    if parallel_iterations is None:
        known = constant_value(numbers)
        at_once = by_rows(graph, None if known is None else len(known))
        if at_once is not None:
            return copied_into(at_once, captured if known is not None else [numbers, *captured])
    if not graph.outputs:
        return []
    kinds = [t.dtype.base_dtype for t in graph.outputs]
    found: list[Tensor] = map_fn(
        lambda i: copied_into(graph, [i, *captured]), numbers, kinds,
        parallel_iterations=parallel_iterations,
    )  # fmt: skip
    return [found] if isinstance(found, Tensor) else found
