"""What goes through a loop or a branch that is traced, as arrays."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from opdock.devices.segment import HeldVariable, Segment
from opdock.devices.tracing.deferred import defer, deferring
from opdock.devices.tracing.lists import Rows

__all__ = ["Carry"]

Values = tuple[list[Any], list[Any], Any]


class Carry:
    """What goes through a loop or a branch: arrays, variables that it writes, failed checks.

    Args:
        xp: the namespace.
        inputs: of the node, the predicate of a branch left out.
        bodies: the functions that may run.

    Attributes:
        inputs: of the node; lists with room for what a loop adds to them.
        written: the indices of the variables that are written.
        lists: the indices of the lists.
        steps: of each list, by its index, how much longer a turn makes it.
    """

    def __init__(self, xp: Any, inputs: Sequence[Any], bodies: Sequence[Segment]) -> None:
        self.xp = xp
        self.inputs = list(inputs)
        self.written = sorted({
            body.params.index(v.slot) for body in bodies for v in body.variables if v.written
        })  # fmt: skip
        self.lists = [i for i, x in enumerate(inputs) if isinstance(x, Rows)]
        self.steps = dict.fromkeys(self.lists, 0)
        self._outputs: list[Any] = []

    def make_room(
        self, body: Segment, call: Callable[..., Any], count: int, trace: Callable[..., Any]
    ) -> None:
        """Makes the lists as large as a loop will make them: its first turn tells by how much.

        Args:
            body: the loop's.
            call: as for `Segment.walk`.
            count: of turns.
            trace: calls its first argument with the second, traced, and forgets the results.
        """
        before = [self.inputs[i].read() for i in self.written]
        trace(functools.partial(self.through, body, call), self.values())
        for i, value in zip(self.written, before, strict=True):
            self.inputs[i].write(value)
        for i in self.lists:
            old, new = self.inputs[i], self._outputs[i]
            self.steps[i] = new.length - old.length
            if new.array is not None and old.base is None:
                room = new.array.shape[0] + max(0, self.steps[i]) * (count - 1)
                self.inputs[i] = old.with_room(room, new.array)

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
        fresh = [self._typed(self.inputs[i].read()) for i in self.written]
        failed = functools.reduce(self.xp.logical_or, checks, failed)
        return self._arrays_of(self._outputs), fresh, failed

    def settled(self, values: Values, count: int | None = None) -> list[Any]:
        """The outputs of the node after the last of so many turns.

        Raises:
            NotImplementedError: a list grows differently from turn to turn.
        """
        arrays, state, failed = values
        for i, value in zip(self.written, state, strict=True):
            self.inputs[i].write(value)
        defer(self.xp, failed)
        outputs = _with_arrays(self._outputs, arrays)
        for i in self.lists:
            old, step = self.inputs[i], self.steps[i]
            if outputs[i].length != old.length + step:
                raise NotImplementedError("the turns add differently to a list")
            length = old.length + step * (count or 0)
            outputs[i] = replace(outputs[i], base=old.base, length=length)
        return outputs

    def _arrays_of(self, values: Sequence[Any]) -> list[Any]:
        """The arrays of some values, and those of lists."""
        found = (x.array if isinstance(x, Rows) else x for x in values)
        return [self._typed(x) for x in found if x is not None and not isinstance(x, HeldVariable)]

    def _typed(self, x: Any) -> Any:
        """An array of its own type whatever it meets: each turn gives what the next one takes."""
        return self.xp.asarray(x, dtype=x.dtype)


def _with_arrays(values: Sequence[Any], arrays: Sequence[Any]) -> list[Any]:
    """The values with other arrays in place of their own."""
    rest = iter(arrays)

    def other(x: Any) -> Any:
        if isinstance(x, HeldVariable) or (isinstance(x, Rows) and x.array is None):
            return x
        return replace(x, array=next(rest)) if isinstance(x, Rows) else next(rest)

    return [other(x) for x in values]
