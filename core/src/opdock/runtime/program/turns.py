"""Turns: many turns of a loop in one call of what a backend compiled."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from opdock import errors, shapes
from opdock.compiler.emit.turns import Array, Held, Whole
from opdock.dtypes import DType
from opdock.kernels.expr.elements import unwrap
from opdock.kernels.expr.turns import WRITTEN, Item, MakeSome, MakeTurns, Rows
from opdock.kernels.tensor_arrays import TensorArrayState
from opdock.kernels.tensor_lists import TensorList
from opdock.runtime.cancellation import Cancellation, check
from opdock.runtime.resources import Cell
from opdock.shapes import Shape

if TYPE_CHECKING:
    from opdock.runtime.program.program import Program

__all__ = ["ManyTurns", "TurnsByShape"]

_FIRST: Final = 1 << 8
_MOST_ELEMENTS: Final = 1 << 20
"""Elements that one call computes: it takes a few milliseconds, then others are heard."""
_MOST_TURNS: Final = 1 << 15
_MOST_SHAPES: Final = 8
"""Shapes of a loop's variables for which there is code."""
CompileTurns = Callable[[Sequence[Shape], Mapping[int, Shape]], "ManyTurns | None"]


class ManyTurns:
    """The turns of one loop.

    Args:
        whole: the loop as one call.
        call: what its kernel is bound to.
        sums: what adds up what many turns have kept, where they keep something.
    """

    def __init__(self, whole: Whole, call: MakeTurns, sums: Program | None = None) -> None:
        self._whole, self._call, self._sums = whole, call, sums
        turns = whole.turns
        # What is pushed lies in memory of the call's until the list has it.
        pushed = sum(shapes.num_elements(i.shape) or 0 for i in turns.pushes)
        self._most = max(1, min(_MOST_TURNS, _MOST_ELEMENTS // max(1, turns.work, pushed)))

    @property
    def ready(self) -> bool:
        """Whether turns can be made."""
        return self._call.ready

    def of(self, values: Sequence[Any]) -> ManyTurns | None:
        """What makes turns of the loop's variables: this does."""
        return self

    def make(
        self, values: Sequence[Any], limit: int, ends: tuple[Cancellation, ...]
    ) -> tuple[Sequence[Any], int]:
        """Makes turns as long as nothing is in the way.

        Args:
            values: the loop's variables.
            limit: the most turns that there may be.
            ends: what ends the step.

        Returns:
            The variables after those turns, and how many they were: none if something is not as
            the code expects it, which makes single ops do.

        Raises:
            CancelledError: the step is to end.
        """
        found = self._variables(values) if self._adds_to(values) else None
        states = [_state(values[a.variable], a) for a in self._whole.arrays]
        left = [_held(values[held.variable]) for _, held in self._whole.left]
        if found is None or any(v is None for v in (*states, *left)):
            return values, 0
        with contextlib.ExitStack() as locks:
            # In one order, whichever loops have arrays in common.
            for state in sorted(states, key=id):
                if isinstance(state, TensorArrayState):
                    locks.enter_context(state.lock)
            rows = self._rows(states)
            if rows is None:
                return values, 0
            after, made, step, make = list(values), 0, _FIRST, self._call(found)
            while made < limit:
                most = min(step, self._most, limit - made)
                count, most = self._some(make, after, rows, most)
                made += count
                check(ends)
                if not count or count < most:
                    break
                step *= 4
        if made:
            for place, item, value in zip(
                self._whole.variables, self._whole.turns.variables, found, strict=True
            ):
                if item.changes:
                    after[place] = value
            for (place, _), value in zip(self._whole.left, left, strict=True):
                after[place] = value
        return after, made

    def _some(
        self, make: MakeSome, values: list[Any], rows: list[Rows], most: int
    ) -> tuple[int, int]:
        """Makes at most so many turns; how many it made, and how many it could have."""
        whole, turns = self._whole, self._whole.turns
        pops = [
            _last_rows(values[place], item, most)
            for place, item in zip(whole.pops, turns.pops, strict=True)
        ]
        if any(rows is None for rows in pops):
            return 0, 0
        own = len(whole.pushes)
        lists = [values[place] for place in whole.pushes]
        if not all(_takes(v, i) for v, i in zip(lists, turns.pushes[:own], strict=True)):
            return 0, 0
        most = min([most, *map(len, pops)])
        pushes = [np.empty((most, *item.shape), item.dtype.np) for item in turns.pushes]
        count = make(rows, pops, pushes, most)
        for place in whole.pops:
            values[place] = unwrap(values[place]).without(count)
        device = None if whole.node.target is None else whole.node.target.device
        for place, added in zip(whole.pushes, pushes[:own], strict=True):
            kept = added if count == most else added[:count].copy()
            values[place] = unwrap(values[place]).push_rows(kept, device)
        if count:
            self._add_up(values, [kept[:count] for kept in pushes[own:]])
        return count, most

    def _adds_to(self, values: Sequence[Any]) -> bool:
        """Whether the variables that are sums are arrays as the program says."""
        sums = self._whole.sums
        return sums is None or all(
            _alike(values[i], feed.dtype, feed.shape)
            for i, feed in zip(sums.variables, sums.block.feeds, strict=False)
        )

    def _add_up(self, values: list[Any], kept: Sequence[Any]) -> None:
        """Adds what turns have kept, one behind the other."""
        if self._sums is None or self._whole.sums is None:
            return
        variables = self._whole.sums.variables
        rows = [k.reshape(-1, *k.shape[2:]) for k in kept]
        found = self._sums.call([*(values[i] for i in variables), *rows])
        for i, value in zip(variables, found, strict=True):
            values[i] = value

    def _variables(self, values: Sequence[Any]) -> list[Any] | None:
        """The variables as arrays, of which those that change are nobody else's."""
        found = []
        for place, item in zip(self._whole.variables, self._whole.turns.variables, strict=True):
            value = place
            if isinstance(place, int):
                value = values[place]
            elif isinstance(place, Held):
                value = _held(values[place.variable])
            if not _is(value, item):
                return None
            found.append(
                np.array(value, order="C") if item.changes else np.ascontiguousarray(value)
            )  # fmt: skip
        return found

    def _rows(self, states: list[Any]) -> list[Rows] | None:
        """The arrays' elements."""
        found = []
        for state, item in zip(states, self._whole.turns.arrays, strict=True):
            if isinstance(state, TensorArrayState):
                rows = state.rows(item.dtype, item.shape, item.changes, item.adds)
            else:
                rows = _all_there(state, item)
            if rows is None:
                return None
            found.append(rows)
        written = [id(state) for state in states if isinstance(state, TensorArrayState)]
        return found if len(set(written)) == len(written) else None


def _is(value: Any, item: Item, lead: tuple[int, ...] = ()) -> bool:
    """Whether it is a host array, or number, of an item's type and shape, behind others."""
    return _alike(value, item.dtype, (*lead, *item.shape))


def _held(handle: Any) -> Any:
    """The value of a variable; None where it has none, of which the op that reads it tells."""
    with contextlib.suppress(errors.OpError):
        return handle.read() if isinstance(handle, Cell) else None
    return None


def _alike(value: Any, dtype: DType, shape: Shape) -> bool:
    """Whether it is a host array, or number, of a type and a shape."""
    host = isinstance(value, (np.ndarray, np.generic))
    return host and value.dtype == dtype.np and value.shape == shape


class TurnsByShape:
    """The turns of a loop whose shapes are known when it runs.

    Args:
        compile_turns: for shapes of the variables, and of the elements of those that are arrays or
            lists, what makes turns; None if nothing does.
        read: which of the variables are arrays or lists that a turn reads.
    """

    def __init__(self, compile_turns: CompileTurns, read: Collection[int]) -> None:
        self._compile, self._read = compile_turns, sorted(read)
        self._made: dict[tuple[Any, ...], ManyTurns | None] = {}

    def of(self, values: Sequence[Any]) -> ManyTurns | None:
        """What makes turns of the loop's variables; compiled for the first few shapes that come."""
        given = [_shape_of(value) for value in values]
        elements = {i: _elements_of(values[i]) for i in self._read}
        key = (*given, *elements.values())
        if key not in self._made and len(self._made) < _MOST_SHAPES:
            self._made[key] = self._compile(given, elements)
        return self._made.get(key)


def _shape_of(value: Any) -> Shape:
    """The shape of a number or an array in host memory."""
    return value.shape if isinstance(value, (np.ndarray, np.generic)) else None


def _elements_of(handle: Any) -> Shape:
    """The shape of what may be read of an array, or taken from the end of a list."""
    found = unwrap(handle)
    if isinstance(found, TensorArrayState):
        with found.lock:
            return found.first_shape
    last = found.last if isinstance(found, TensorList) and len(found) else None
    return None if last is None else _shape_of(last.value)


def _all_there(values: Any, item: Item) -> Rows | None:
    """The rows of a tensor, each of which may be read at any time."""
    if not _is(values, item, values.shape[:1]):
        return None
    return Rows(np.ascontiguousarray(values), np.full(len(values), WRITTEN, np.uint8), WRITTEN)


def _state(handle: Any, array: Array) -> Any:
    """An array's state, or a tensor of which rows are read; None if there is neither."""
    if array.reading is not None:
        return handle if isinstance(handle, np.ndarray) and handle.ndim else None
    found = unwrap(handle)
    if not isinstance(found, TensorArrayState):
        return None
    return found if array.source is None or found.closed else found.gradient(array.source)


def _last_rows(handle: Any, item: Item, most: int) -> Any:
    """Elements at the end of a list."""
    found = unwrap(handle)
    if not isinstance(found, TensorList):
        return None
    return found.last_rows(most, item.dtype.np, item.shape)


def _takes(handle: Any, item: Item) -> bool:
    """Whether any number of elements may be pushed to a list."""
    found = unwrap(handle)
    return (
        isinstance(found, TensorList)
        and found.dtype is item.dtype
        and found.limit == -1
        and shapes.is_compatible(found.known, item.shape)
    )
