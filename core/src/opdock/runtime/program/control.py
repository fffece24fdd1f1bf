"""Functional control flow: `If` and `While` run compiled bodies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opdock import errors
from opdock.compiler.ir.block import Node
from opdock.graph.nodes.traits import Control
from opdock.runtime.cancellation import Cancellation, check, ends_of
from opdock.runtime.program.program import Program

CompileBody = Callable[[Any, Node, int], Program]


def bind_control(
    node: Node, compile_body: CompileBody, cancellation: Cancellation
) -> Branches | Loop:
    """The callable of an If or While node.

    Args:
        node: placed on the device that holds the arguments and results of its bodies.
        compile_body: (function, node, index of the first argument it gets) to a program.
        cancellation: ends loops when the session is closed.
    """
    if node.traits.control is Control.COND:
        return Branches(node, compile_body)
    return Loop(node, compile_body, cancellation)


class Branches:
    """Runs one of two branches, each compiled when it is first taken.

    The other may never be, or may not fit.
    """

    def __init__(self, node: Node, compile_body: CompileBody) -> None:
        self._node, self._compile = node, compile_body
        self._found: dict[str, Program] = {}

    def __call__(self, predicate: Any, *inputs: Any) -> Any:
        """The results of the branch that the predicate chooses."""
        taken = self.program("then_branch" if _decided(predicate) else "else_branch")
        return _unpack(taken.call(inputs))

    def program(self, name: str) -> Program:
        """The program of "then_branch" or "else_branch"."""
        found = self._found.get(name)
        if found is None:
            found = self._found[name] = self._compile(self._node.attrs[name], self._node, 1)
        return found


class Loop:
    """Runs a body while a condition holds."""

    def __init__(self, node: Node, compile_body: CompileBody, session: Cancellation) -> None:
        self._programs = {
            name: compile_body(node.attrs[name], node, 0) for name in Control.LOOP.functions
        }
        self._limit = node.attrs.get("_maximum_iterations")
        self._session = session

    def __call__(self, *state: Any) -> Any:
        """The loop's variables after the last turn."""
        values: Sequence[Any] = state
        count, limit = 0, self._limit
        ends = ends_of(self._session)
        condition, body = self._programs.values()
        with condition.turns() as keep, body.turns() as turn:
            while (limit is None or count < limit) and _decided(keep(values)[0]):
                values = turn(values)
                count += 1
                check(ends)
        return _unpack(values)

    def program(self, name: str) -> Program:
        """The program of "cond" or "body"."""
        return self._programs[name]


def _decided(predicate: Any) -> bool:
    if getattr(predicate, "ndim", 0):
        shape = ",".join(map(str, np.shape(predicate)))
        raise errors.InvalidArgumentError(
            None, None, f"The second input must be a scalar, but it has shape [{shape}]"
        )
    return bool(predicate)


def _unpack(values: Sequence[Any]) -> Any:
    return values[0] if len(values) == 1 else tuple(values)
