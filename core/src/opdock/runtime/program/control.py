"""Functional control flow: `If` and `While` run compiled bodies."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from opdock import errors
from opdock.compiler.ir.block import Node
from opdock.graph.nodes.traits import Control
from opdock.runtime.cancellation import Cancellation, check, ends_of
from opdock.runtime.inspect.trace import active
from opdock.runtime.program.program import Program
from opdock.runtime.program.turns import ManyTurns

CompileBranch = Callable[[Any, Node], Program]
CompileLoop = Callable[[Node], tuple[Program, Program, ManyTurns | None]]
_SOON: Final = 64
"""Turns of a loop, in all its runs, after which code is asked for; and after which once more,
while it is being compiled."""
_FEW: Final = 5
"""Turns below which one call for all of them is not quicker."""


def bind_control(
    node: Node, compile_branch: CompileBranch, compile_loop: CompileLoop, cancellation: Cancellation
) -> Callable[..., Any]:
    """The callable of an If or While node.

    Args:
        node: placed on the device that holds the arguments and results of its bodies.
        compile_branch: (function, node) to a program.
        compile_loop: a node to the programs of its condition and body, and what makes many turns
            in one call, if there is such a thing.
        cancellation: ends loops when the session is closed.
    """
    if node.traits.control is Control.COND:
        return _bind_if(node, compile_branch)
    return _bind_while(node, compile_loop, cancellation)


def _bind_if(node: Node, compile_branch: CompileBranch) -> Callable[..., Any]:
    # A branch is compiled when it is first taken: the other may never be, or may not fit.
    branches: dict[bool, Program] = {}

    def run(predicate: Any, *inputs: Any) -> Any:
        taken = _decided(predicate)
        branch = branches.get(taken)
        if branch is None:
            function = node.attrs["then_branch" if taken else "else_branch"]
            branch = branches[taken] = compile_branch(function, node)
        return _unpack(branch.call(inputs))

    return run


def _bind_while(node: Node, compile_loop: CompileLoop, session: Cancellation) -> Callable[..., Any]:
    condition, body, many = compile_loop(node)
    limit = node.attrs.get("_maximum_iterations", sys.maxsize)
    seen = last = 0

    def run(*state: Any) -> Any:
        nonlocal seen, last
        values: Sequence[Any] = state
        count, again = 0, max(_SOON - seen, 0 if last >= _FEW else _FEW)
        ends = ends_of(session)
        # Whoever traces a step wants each turn.
        whole = many if active() is None else None
        with condition.turns() as keep, body.turns() as turn:
            while True:
                if whole is not None and count >= again:
                    again = count + _SOON
                    if whole.ready:
                        values, made = whole.make(values, limit - count, ends)
                        count += made
                        # What was in the way may be in the way of each turn.
                        again = 2 * count + 1
                if count >= limit or not _decided(keep(values)[0]):
                    seen, last = seen + count, count
                    return _unpack(values)
                values = turn(values)
                count += 1
                check(ends)

    return run


def _decided(predicate: Any) -> bool:
    if getattr(predicate, "ndim", 0):
        shape = ",".join(map(str, np.shape(predicate)))
        raise errors.InvalidArgumentError(
            None, None, f"The second input must be a scalar, but it has shape [{shape}]"
        )
    return bool(predicate)


def _unpack(values: Sequence[Any]) -> Any:
    return values[0] if len(values) == 1 else tuple(values)
