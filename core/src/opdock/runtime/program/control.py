"""Functional control flow: `If` and `While` run compiled bodies."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from opdock import errors
from opdock.compiler.ir.block import Node
from opdock.runtime.inspect.trace import active
from opdock.runtime.program.program import Program, Run

CompileBody = Callable[[Any, Node, int], Program]


class Body:
    """A branch or loop body as a callable over buffers where its node keeps them.

    A step that is traced has its bodies traced.
    """

    __slots__ = ("_program",)

    def __init__(self, program: Program) -> None:
        self._program = program

    def __call__(self, values: Sequence[Any]) -> Sequence[Any]:
        """The results of a branch for some arguments."""
        tracer = active()
        if tracer is None:
            return self._program.run(values)
        return self._program.interpret(values, tracer)

    @contextlib.contextmanager
    def turns(self) -> Iterator[Run]:
        """The body to call turn after turn of one loop."""
        tracer = active()
        if tracer is not None:
            yield self._following(functools.partial(self._program.interpret, observer=tracer))
            return
        with self._program.straight() as turn:
            yield self._following(turn)

    def _following(self, turn: Run) -> Run:
        """The turns after what is done once, before the first."""
        if self._program.once is None:
            return turn
        once, fixed = Body(self._program.once), None

        def run(values: Sequence[Any]) -> Sequence[Any]:
            nonlocal fixed
            if fixed is None:
                fixed = once(values)
            return turn((*values, *fixed))

        return run


def bind_control(node: Node, compile_body: CompileBody) -> Callable[..., Any]:
    """The callable of an If or While node.

    Args:
        node: placed on the device that holds the arguments and results of its bodies.
        compile_body: (function, node, index of the first argument it gets) to a program.
    """
    if node.op in ("If", "StatelessIf"):
        return _bind_if(node, compile_body)
    if node.op in ("While", "StatelessWhile"):
        return _bind_while(node, compile_body)
    raise errors.UnimplementedError(None, node.origin, f"No control flow op '{node.op}'.")


def _bind_if(node: Node, compile_body: CompileBody) -> Callable[..., Any]:
    # A branch is compiled when it is first taken: the other may never be, or may not fit.
    branches: dict[bool, Any] = {}

    def run(predicate: Any, *inputs: Any) -> Any:
        taken = bool(predicate)
        branch = branches.get(taken)
        if branch is None:
            function = node.attrs["then_branch" if taken else "else_branch"]
            branch = branches[taken] = Body(compile_body(function, node, 1))
        return _unpack(branch(inputs))

    return run


def _bind_while(node: Node, compile_body: CompileBody) -> Callable[..., Any]:
    condition = Body(compile_body(node.attrs["cond"], node, 0))
    body = Body(compile_body(node.attrs["body"], node, 0))
    limit = node.attrs.get("_maximum_iterations")

    def run(*state: Any) -> Any:
        values: Sequence[Any] = state
        count = 0
        with condition.turns() as keep, body.turns() as turn:
            while (limit is None or count < limit) and bool(np.asarray(keep(values)[0])):
                values = turn(values)
                count += 1
        return _unpack(values)

    return run


def _unpack(values: Sequence[Any]) -> Any:
    return values[0] if len(values) == 1 else tuple(values)
