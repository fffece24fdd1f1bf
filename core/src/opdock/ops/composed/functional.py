"""Functions over the rows of tensors: `map_fn`, `foldl`, `foldr` and `scan`, as loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opdock import dtypes
from opdock.graph.nodes.composite import SparseTensor
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.composed.loops import while_loop
from opdock.ops.composed.tensor_array import TensorArray, _rows
from opdock.util import nest

__all__ = ["foldl", "foldr", "map_fn", "scan"]


def map_fn(
    fn: Callable[[Any], Any],
    elems: Any,
    dtype: Any = None,
    parallel_iterations: int | None = None,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    name: str | None = None,
) -> Any:
    """`fn` of each row of `elems`, stacked.

    Args:
        fn: takes the rows in the structure of `elems`; returns the structure of `dtype`.
        elems: a tensor or nested structure of tensors with equal first dimensions.
        dtype: the types that `fn` returns, where they are not those of `elems`.
        back_prop: whether gradients flow through the loop.
        parallel_iterations, swap_memory: accepted for TF's signature.
        infer_shape: check that all results have one shape.
        name: the name scope, "map" by default.

    Returns:
        The stacked results, in the structure of `dtype`.

    Raises:
        TypeError: `fn` is not callable, or an element is sparse.
        ValueError: the structures do not match.
    """
    _check(fn, elems)
    with name_scope(name, "map", nest.flatten(elems)):
        rows = _Rows(elems)
        types = elems if dtype is None else dtype
        if dtype is None:
            kinds = [t.dtype.base_dtype for t in rows.tensors]
        else:
            kinds = [dtypes.as_dtype(t) for t in nest.flatten(dtype)]
        outs = [_new_array(k, rows.count, infer_shape) for k in kinds]

        def turn(i: Any, arrays: list[Any]) -> Any:
            result = fn(rows.at(i))
            nest.assert_same_structure(types, result)
            return i + 1, [a.write(i, v) for a, v in zip(arrays, nest.flatten(result), strict=True)]

        arrays = _loop(turn, rows, outs, parallel_iterations, back_prop)
        return nest.pack_sequence_as(types, rows.stacked(arrays))


@extensible
def foldl(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
) -> Any:
    """`fn(... fn(fn(initializer, row 0), row 1) ..., last row)`.

    Args:
        fn: takes the accumulator and the rows in the structure of `elems`.
        elems: a tensor or nested structure of tensors with equal first dimensions.
        initializer: the first accumulator; by default row 0, and the fold begins with row 1.
        back_prop: whether gradients flow through the loop.
        parallel_iterations, swap_memory: accepted for TF's signature.
        name: the name scope, "foldl" by default.

    Raises:
        TypeError: `fn` is not callable.
    """
    return _fold(fn, elems, initializer, parallel_iterations, back_prop, name or "foldl", False)


@extensible
def foldr(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
) -> Any:
    """`foldl` from the last row to the first; see there.

    Args:
        fn: called with what there is so far and a row.
        elems: a tensor, or a structure of them, of as many rows.
        initializer: what there is before the first row; the last row by default.
        parallel_iterations: how many turns may run at once.
        back_prop: whether gradients flow through.
        swap_memory: whether memory may be swapped to the host.
        name: a prefix for names.
    """
    return _fold(fn, elems, initializer, parallel_iterations, back_prop, name or "foldr", True)


def _fold(
    fn: Any, elems: Any, initializer: Any, parallel: int, back_prop: bool, name: str, reverse: bool
) -> Any:
    _check(fn, elems)
    with name_scope(name, None, nest.flatten(elems)):
        rows = _Rows(elems)
        place = _mirrored(rows.count) if reverse else _same
        start: Any = 0
        if initializer is None:
            initializer, start = rows.at(place(0)), 1
        initializer = nest.map_structure(convert_to_tensor, initializer)

        def turn(i: Any, state: Any) -> Any:
            state = fn(state, rows.at(place(i)))
            return i + 1, state

        return while_loop(
            lambda i, _: i < rows.count, turn, (convert_to_tensor(start), initializer),
            parallel_iterations=parallel, back_prop=back_prop,
            maximum_iterations=rows.static_count,
        )[1]  # fmt: skip


@extensible
def scan(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    reverse: bool = False,
    name: str | None = None,
) -> Any:
    """All accumulators of a fold, stacked.

    Args:
        fn: takes the accumulator and the rows; returns the next accumulator.
        elems: a tensor or nested structure of tensors with equal first dimensions.
        initializer: the accumulator before the first row; by default the first row, which is
            then also the first result.
        back_prop: whether gradients flow through the loop.
        parallel_iterations, swap_memory: accepted for TF's signature.
        infer_shape: check that all results have one shape.
        reverse: from the last row to the first; the results keep the places of their rows.
        name: the name scope, "scan" by default.

    Returns:
        The accumulators in the structure of `initializer`, with the rows along a new first axis.

    Raises:
        TypeError: `fn` is not callable.
        ValueError: the structures do not match.
    """
    _check(fn, elems)
    with name_scope(name, "scan", nest.flatten(elems)):
        rows = _Rows(elems)
        place = _mirrored(rows.count) if reverse else _same
        first = rows.at(place(0)) if initializer is None else initializer
        first = nest.map_structure(convert_to_tensor, first)
        outs = [
            _new_array(t.dtype.base_dtype, rows.count, infer_shape, t) for t in nest.flatten(first)
        ]
        start = 0
        if initializer is None:
            start = 1
            outs = [a.write(place(0), t) for a, t in zip(outs, nest.flatten(first), strict=True)]

        def turn(i: Any, state: Any, arrays: list[Any]) -> Any:
            state = fn(state, rows.at(place(i)))
            nest.assert_same_structure(first, state)
            flat = [convert_to_tensor(v) for v in nest.flatten(state)]
            return i + 1, state, [a.write(place(i), v) for a, v in zip(arrays, flat, strict=True)]

        arrays = while_loop(
            lambda i, *_: i < rows.count, turn, (convert_to_tensor(start), first, outs),
            parallel_iterations=parallel_iterations, back_prop=back_prop,
            maximum_iterations=rows.static_count,
        )[2]  # fmt: skip
        return nest.pack_sequence_as(first, rows.stacked(arrays))


def _same(index: Any) -> Any:
    return index


def _mirrored(count: Any) -> Callable[[Any], Any]:
    """Turn i of a loop from the end takes row count - 1 - i."""
    return lambda index: count - 1 - index


class _Rows:
    """The rows of a structure of tensors, read one at a time."""

    def __init__(self, elems: Any) -> None:
        self.structure = elems
        self.tensors = [convert_to_tensor(e, name="elem") for e in nest.flatten(elems)]
        for tensor in self.tensors:
            if tensor.raw_shape == ():
                what = "elems must be a 1+ dimensional Tensor, not a scalar"
                if len(self.tensors) > 1:
                    what = "elements in elems must be 1+ dimensional Tensors, not scalars"
                raise ValueError(f"{what}: '{tensor.name}' has shape ()")
        self.static_count = next(
            (t.raw_shape[0] for t in self.tensors if t.raw_shape and t.raw_shape[0] is not None),
            None,
        )
        self.count = self.static_count if self.static_count is not None else _rows(self.tensors[0])
        self._arrays = [
            TensorArray(t.dtype, self.count, dynamic_size=False, infer_shape=True,
                        clear_after_read=False).unstack(t)
            for t in self.tensors
        ]  # fmt: skip

    def at(self, index: Any) -> Any:
        """Row `index`, in the structure."""
        return nest.pack_sequence_as(self.structure, [a.read(index) for a in self._arrays])

    def stacked(self, arrays: list[TensorArray]) -> list[Tensor]:
        """Results stacked, with the static number of rows."""
        out = []
        for array in arrays:
            tensor = array.stack()
            if tensor.raw_shape is not None:
                tensor.set_shape((self.static_count, *tensor.raw_shape[1:]))
            out.append(tensor)
        return out


def _new_array(dtype: Any, count: Any, infer: bool, like: Tensor | None = None) -> TensorArray:
    shape = None if like is None or not infer else like.raw_shape
    return TensorArray(dtype, count, dynamic_size=False, infer_shape=infer, element_shape=shape)


def _loop(
    turn: Any, rows: _Rows, arrays: list[TensorArray], parallel: int | None, back_prop: bool
) -> Any:
    return while_loop(
        lambda i, _: i < rows.count, turn, (convert_to_tensor(0), arrays),
        parallel_iterations=parallel or 10, back_prop=back_prop,
        maximum_iterations=rows.static_count,
    )[1]  # fmt: skip


def _check(fn: Any, elems: Any) -> None:
    if not callable(fn):
        raise TypeError("fn must be callable.")
    for element in nest.flatten(elems):
        if isinstance(element, SparseTensor):
            raise TypeError(
                "elems must not hold a SparseTensor: map over its dense form, or over the indices "
                "of its rows and slice inside of fn."
            )
