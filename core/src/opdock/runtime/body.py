"""Function bodies as programs, and steps with a deadline."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from opdock import errors, shapes
from opdock.compiler import pipeline
from opdock.compiler.ir import FEED, HOST, Node, Value
from opdock.compiler.prune import prune, refine_shapes
from opdock.runtime.collector import collector_waits
from opdock.runtime.trace import active

if TYPE_CHECKING:
    from opdock.graph.func_graph import FuncGraph
    from opdock.runtime.engine import Engine


@collector_waits()
def compile_body(
    engine: Engine, function: FuncGraph, node: Node, first: int
) -> Callable[[Sequence[Any]], Sequence[Any]]:
    """A branch or loop body as a callable over buffers where `node` keeps them.

    Args:
        engine: compiles and binds.
        function: the body.
        node: the control-flow node; the body's arguments and results live on its device.
        first: the index of the node's input that is the body's first argument.
    """
    feeds = []
    for tensor in function.inputs:
        feeds.append((tensor, tensor._dtype, tensor._shape))
    stateful = [op for op in function.get_operations() if _has_effect(op)]
    block = prune(function.outputs, stateful, feeds)
    if node.op.endswith("If"):
        _narrow(block.feeds, node, first)
    refine_shapes(block)
    here = HOST if node.target is None or node.target.is_host else node.target.name
    for value in block.feeds:
        value.node.target = node.target
        value.node.attrs["at"] = here
    if node.target is not None and not any(n.requested for n in block.nodes):
        # Work stays where the data is unless the user said otherwise.
        for inner in block.nodes:
            if inner.op != FEED and engine.prefers(inner, node.target):
                inner.requested = node.target.name
    if node.op.endswith("While") and function is node.attrs["body"]:
        block.cells = frozenset(
            i for i, t in enumerate(function.inputs) if t._dtype._is_ref_dtype
        )  # fmt: skip
    is_condition = node.op.endswith("While") and function is node.attrs["cond"]
    block, lined_up, plan = pipeline.finish(
        block, engine.placer, engine.evaluate, engine.options, HOST if is_condition else here
    )
    program = engine.bind(block, lined_up, plan)

    def run(values: Sequence[Any]) -> Sequence[Any]:
        tracer = active()
        return program.run(values) if tracer is None else program.interpret(values, tracer)

    return run


def _has_effect(op: Any) -> bool:
    return (
        bool(op.spec.stateful)
        or any(t._dtype._is_ref_dtype for t in op.inputs)
        or any(t._dtype.name == "resource" for t in op.inputs)
    )


def _narrow(feeds: list[Value], node: Node, first: int) -> None:
    """A branch runs with the shapes of this call; a loop's may change from turn to turn."""
    for i, value in enumerate(feeds):
        given = node.inputs[first + i].shape
        if shapes.is_compatible(given, value.shape):
            value.node.out_shapes[0] = shapes.merge(given, value.shape)


def with_deadline(timeout_ms: int, run: Callable[[], Sequence[Any]]) -> Sequence[Any]:
    """`run()`, or DeadlineExceededError when it takes longer than `timeout_ms`.

    The step goes on in its thread until its op returns, as Python threads cannot be stopped.
    """
    box: dict[str, Any] = {}

    def work() -> None:
        try:
            box["value"] = run()
        except BaseException as e:
            box["error"] = e

    thread = threading.Thread(target=work, daemon=True, name="opdock-step")
    thread.start()
    thread.join(timeout_ms / 1000)
    if thread.is_alive():
        raise errors.DeadlineExceededError(
            None, None, f"Timed out waiting for notification ({timeout_ms} ms)."
        )
    if "error" in box:
        raise box["error"]
    value: Sequence[Any] = box["value"]
    return value
