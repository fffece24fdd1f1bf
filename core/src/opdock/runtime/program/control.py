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
) -> Callable[..., Any]:
    """The callable of an If or While node.

    Args:
        node: placed on the device that holds the arguments and results of its bodies.
        compile_body: (function, node, index of the first argument it gets) to a program.
        cancellation: ends loops when the session is closed.
    """
    if node.traits.control is Control.COND:
        return _bind_if(node, compile_body)
    return _bind_while(node, compile_body, cancellation)


def _bind_if(node: Node, compile_body: CompileBody) -> Callable[..., Any]:
    # A branch is compiled when it is first taken: the other may never be, or may not fit.
    branches: dict[bool, Program] = {}

    def run(predicate: Any, *inputs: Any) -> Any:
        taken = _decided(predicate)
        branch = branches.get(taken)
        if branch is None:
            function = node.attrs["then_branch" if taken else "else_branch"]
            branch = branches[taken] = compile_body(function, node, 1)
        return _unpack(branch.call(inputs))

    return run


def _bind_while(node: Node, compile_body: CompileBody, session: Cancellation) -> Callable[..., Any]:
    condition = compile_body(node.attrs["cond"], node, 0)
    body = compile_body(node.attrs["body"], node, 0)
    limit = node.attrs.get("_maximum_iterations")

    def run(*state: Any) -> Any:
        values: Sequence[Any] = state
        count = 0
        ends = ends_of(session)
        with condition.turns() as keep, body.turns() as turn:
            while (limit is None or count < limit) and _decided(keep(values)[0]):
                values = turn(values)
                count += 1
                check(ends)
        return _unpack(values)

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
