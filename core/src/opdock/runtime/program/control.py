"""Functional control flow: `If` and `While` run compiled bodies."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from opdock import errors
from opdock.compiler.ir.block import Node
from opdock.graph.nodes.traits import Control
from opdock.runtime.cancellation import Cancellation, check, ends_of
from opdock.runtime.inspect.trace import active
from opdock.runtime.program.program import Program

if TYPE_CHECKING:
    from opdock.runtime.program.turns import ManyTurns, TurnsByShape

CompileBranch = Callable[[Any, Node], Program]
CompileLoop = Callable[[Node, bool], "tuple[Program, Program, ManyTurns | TurnsByShape | None]"]
_SOON: Final = 64
"""Turns of a loop, in all its runs, after which code is asked for; and after which once more,
while it is being compiled."""
_FEW: Final = 5
"""Turns below which one call for all of them is not quicker."""


def bind_control(
    node: Node, compile_branch: CompileBranch, compile_loop: CompileLoop, cancellation: Cancellation
) -> Branches | Loop:
    """The callable of an If or While node.

    Args:
        node: placed on the device that holds the arguments and results of its bodies.
        compile_branch: (function, node) to a program.
        compile_loop: a node, and whether its variables may have any shapes, to the programs of its
            condition and body, and what makes many turns in one call, if there is such a thing.
        cancellation: ends loops when the session is closed.
    """
    if node.traits.control is Control.COND:
        return Branches(node, compile_branch)
    return Loop(node, compile_loop, cancellation)


class Branches:
    """Runs one of two branches, each compiled when it is first taken.

    The other may never be, or may not fit.
    """

    def __init__(self, node: Node, compile_branch: CompileBranch) -> None:
        self._node, self._compile = node, compile_branch
        self._found: dict[str, Program] = {}

    def __call__(self, predicate: Any, *inputs: Any) -> Any:
        """The results of the branch that the predicate chooses."""
        taken = self.program("then_branch" if _decided(predicate) else "else_branch")
        return _unpack(taken.call(inputs))

    def program(self, name: str) -> Program:
        """The program of "then_branch" or "else_branch"."""
        found = self._found.get(name)
        if found is None:
            found = self._found[name] = self._compile(self._node.attrs[name], self._node)
        return found


class Loop:
    """Runs a body while a condition holds; many turns in one call, where there is code for them."""

    def __init__(self, node: Node, compile_loop: CompileLoop, session: Cancellation) -> None:
        self._compile = functools.partial(compile_loop, node)
        self._condition, self._body, self._many = self._compile(False)
        self._free: tuple[Program, Program] | None = None
        self._limit = node.attrs.get("_maximum_iterations", sys.maxsize)
        self._session = session
        self._seen = self._last = 0

    def __call__(self, *state: Any) -> Any:
        """The loop's variables after the last turn."""
        if self._body.strayed:
            return self._freely(state, 0)
        values: Sequence[Any] = state
        count, limit = 0, self._limit
        again = max(_SOON - self._seen, 0 if self._last >= _FEW else _FEW)
        ends = ends_of(self._session)
        # Whoever traces a step wants each turn.
        many = self._many if active() is None else None
        kept = self._condition.kept_feeds
        with self._condition.turns() as keep, self._body.turns(kept) as turn:
            while True:
                if many is not None and count >= again:
                    again = count + _SOON
                    whole = many.of(values)
                    if whole is not None and whole.ready:
                        values, made = whole.make(values, limit - count, ends)
                        count += made
                        # What was in the way may be in the way of each turn.
                        again = 2 * count + 1
                if count >= limit or not _decided(keep(values)[0]):
                    self._seen, self._last = self._seen + count, count
                    return _unpack(values)
                values = turn(values)
                count += 1
                check(ends)
                if self._body.strayed:
                    break
        return self._freely(values, count)

    def _freely(self, values: Sequence[Any], count: int) -> Any:
        """The rest of the turns, once one has given values of other shapes than was said."""
        if self._free is None:
            condition, body, _ = self._compile(True)
            self._free = condition, body
        condition, body = self._free
        ends = ends_of(self._session)
        kept = condition.kept_feeds
        with condition.turns() as keep, body.turns(kept) as turn:
            while count < self._limit and _decided(keep(values)[0]):
                values = turn(values)
                count += 1
                check(ends)
        return _unpack(values)

    def program(self, name: str) -> Program:
        """The program of "cond" or "body"."""
        return self._condition if name == "cond" else self._body


def _decided(predicate: Any) -> bool:
    if getattr(predicate, "ndim", 0):
        shape = ",".join(map(str, np.shape(predicate)))
        raise errors.InvalidArgumentError(
            None, None, f"The second input must be a scalar, but it has shape [{shape}]"
        )
    return bool(predicate)


def _unpack(values: Sequence[Any]) -> Any:
    return values[0] if len(values) == 1 else tuple(values)
