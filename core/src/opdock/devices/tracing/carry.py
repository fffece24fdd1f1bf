"""What goes through a loop or a branch that is traced, as arrays."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from opdock.devices.segment import HeldVariable, Segment
from opdock.devices.tracing.deferred import defer, deferring
from opdock.devices.tracing.lists import Rows
from opdock.devices.tracing.places import Places

__all__ = ["Carry"]

Values = tuple[list[Any], list[Any], Any]
_HELD: Final = (HeldVariable, Places)
"""What is changed in place: its value goes through, apart from those of the arguments."""


class Carry:
    """What goes through a loop or a branch: arrays, variables that it writes, failed checks.

    Args:
        xp: the namespace.
        inputs: of the node, the predicate of a branch left out.
        bodies: the functions that may run.

    Attributes:
        inputs: of the node; lists with room for what a loop adds to them.
        written: the indices of the variables and tensor arrays that are written.
        lists: the indices of the lists.
        arrays: the indices of the tensor arrays that are written.
        steps: of each list, by its index, how much longer a turn makes it.
        chosen: of each list that a branch gives, by its index, the longest of what there may be.
    """

    def __init__(self, xp: Any, inputs: Sequence[Any], bodies: Sequence[Segment]) -> None:
        self.xp = xp
        self.inputs = list(inputs)
        self.written = sorted({
            body.params.index(v.slot) for body in bodies for v in body.variables if v.written
        })  # fmt: skip
        self.lists = [i for i, x in enumerate(inputs) if isinstance(x, Rows)]
        self.steps = dict.fromkeys(self.lists, 0)
        self.arrays = [i for i in self.written if isinstance(inputs[i], Places)]
        self.chosen: dict[int, Rows] = {}
        self._outputs: list[Any] = []

    def agree(
        self, sides: Sequence[Segment], call: Callable[..., Any], trace: Callable[..., Any]
    ) -> None:
        """Finds out how long the lists are that branches give: the first trace of each tells.

        Args:
            sides: the branches.
            call: as for `Segment.walk`.
            trace: as for `make_room`.

        Raises:
            NotImplementedError: the elements of a list depend on the branch.
        """
        given = [self._tried(side, call, trace) for side in sides]
        for i, several in enumerate(zip(*given, strict=True)):
            full = [x for x in several if isinstance(x, Rows) and x.array is not None]
            if not full:
                continue
            alike = {(x.array.shape[1:], x.array.dtype, x.counts is None) for x in full}
            if len(alike) > 1:
                raise NotImplementedError("the elements of a list depend on the branch")
            self.chosen[i] = max(full, key=lambda x: int(x.array.shape[0]))

    def _tried(
        self, body: Segment, call: Callable[..., Any], trace: Callable[..., Any]
    ) -> list[Any]:
        """What a body gives, of which only the forms are of use."""
        before = [self.inputs[i].read() for i in self.written]
        trace(functools.partial(self.through, body, call), self.values())
        for i, value in zip(self.written, before, strict=True):
            held = self.inputs[i]
            form = held.form() if isinstance(held, Places) else None
            held.write(value)
            if form is not None:
                held.fit(form)
        return self._outputs

    def make_room(
        self,
        body: Segment,
        call: Callable[..., Any],
        count: int | None,
        trace: Callable[..., Any],
    ) -> None:
        """Makes lists and tensor arrays as large as a loop will: its first turn tells how large.

        Args:
            body: the loop's.
            call: as for `Segment.walk`.
            count: of turns, where there are lists.
            trace: calls its first argument with the second, traced, and forgets the results.
        """
        outputs = self._tried(body, call, trace)
        for i in self.lists:
            old, new = self.inputs[i], outputs[i]
            self.steps[i] = new.length - old.length
            if new.array is not None and old.base is None:
                room = new.array.shape[0] + max(0, self.steps[i]) * ((count or 1) - 1)
                self.inputs[i] = old.with_room(room, new)

    def values(self) -> Values:
        """The values before the first turn: a structure of arrays."""
        state = [self.inputs[i].read() for i in self.written]
        return self._arrays_of(self.inputs), state, self.xp.asarray(False)

    def through(
        self, body: Segment, call: Callable[..., Any], values: Values, turn: Any = None
    ) -> Values:
        """The values after a body, in a turn of a loop or otherwise."""
        arrays, state, failed = values
        for i, value in zip(self.written, state, strict=True):
            self.inputs[i].write(value)
        given = _with_arrays(self.inputs, arrays)
        for i in self.lists if turn is not None else ():
            base = turn * self.steps[i]
            base = base if given[i].base is None else base + given[i].base
            given[i] = replace(given[i], base=base)
        with deferring() as checks:
            self._outputs = list(body.walk(given, call))
            for i, longest in self.chosen.items():
                rows = longest.array.shape[0]
                self._outputs[i] = self._outputs[i].counted(rows, longest)
        fresh = [self._typed(self.inputs[i].read()) for i in self.written]
        failed = functools.reduce(self.xp.logical_or, checks, failed)
        return self._arrays_of(self._outputs), fresh, failed

    def taken(self, values: Values) -> list[Any]:
        """The outputs of the node after one of its branches."""
        return self._after(values)

    def settled(self, values: Values, count: int | None = None) -> list[Any]:
        """The outputs of the node after the last of so many turns.

        Raises:
            NotImplementedError: a list grows differently from turn to turn.
        """
        outputs = self._after(values)
        for i in self.lists:
            old, step = self.inputs[i], self.steps[i]
            if outputs[i].length != old.length + step:
                raise NotImplementedError("the turns add differently to a list")
            length = old.length + step * (count or 0)
            outputs[i] = replace(outputs[i], base=old.base, length=length)
        return outputs

    def _after(self, values: Values) -> list[Any]:
        """The outputs, once the variables have their new values."""
        arrays, state, failed = values
        for i, value in zip(self.written, state, strict=True):
            self.inputs[i].write(value)
        defer(self.xp, failed)
        counts = {i: arrays[len(arrays) - len(self.chosen) + k] for k, i in enumerate(self.chosen)}
        outputs = _with_arrays(self._outputs, arrays)
        for i, base in counts.items():
            outputs[i] = replace(outputs[i], base=base)
        return outputs

    def _arrays_of(self, values: Sequence[Any]) -> list[Any]:
        """The arrays of some values, and those of lists; behind them the lengths of lists that a
        branch gives.
        """
        found = [y for x in values for y in (x.arrays() if isinstance(x, Rows) else [x])]
        if values is self._outputs:
            found += [values[i].base for i in self.chosen]
        return [self._typed(x) for x in found if not isinstance(x, _HELD)]

    def _typed(self, x: Any) -> Any:
        """Arrays of their own types whatever they meet: each turn gives what the next one takes."""
        if isinstance(x, tuple):
            return tuple(map(self._typed, x))
        if isinstance(x, dict):
            return {name: self._typed(value) for name, value in x.items()}
        return None if x is None else self.xp.asarray(x, dtype=x.dtype)


def _with_arrays(values: Sequence[Any], arrays: Sequence[Any]) -> list[Any]:
    """The values with other arrays in place of their own."""
    rest = iter(arrays)

    def other(x: Any) -> Any:
        if isinstance(x, _HELD):
            return x
        return x.with_arrays(rest) if isinstance(x, Rows) else next(rest)

    return [other(x) for x in values]
