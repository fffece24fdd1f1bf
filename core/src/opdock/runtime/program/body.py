"""Function bodies as programs, and steps with a deadline."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from opdock import errors, shapes
from opdock.compiler import pipeline
from opdock.compiler.clean.hoist import hoist
from opdock.compiler.clean.loops import passes_on
from opdock.compiler.clean.prune import prune, refine_shapes
from opdock.compiler.ir.block import FEED, HOST, Block, Node, Value
from opdock.graph.nodes.traits import Control
from opdock.runtime.inspect.trace import active
from opdock.runtime.program.collector import collector_waits

if TYPE_CHECKING:
    from opdock.graph.control.func_graph import FuncGraph
    from opdock.runtime.engine import Engine
    from opdock.runtime.program.program import Program, Run


class Body:
    """A branch or loop body as a callable over buffers where its node keeps them.

    Args:
        program: the body.
        before: of a loop, what no turn changes: its results are further arguments of `program`.
    """

    __slots__ = ("_before", "_program")

    def __init__(self, program: Program, before: Program | None = None) -> None:
        self._program = program
        self._before = before

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
        """The turns after what comes before the first."""
        if self._before is None:
            return turn
        before, fixed = self._before, None

        def run(values: Sequence[Any]) -> Sequence[Any]:
            nonlocal fixed
            if fixed is None:
                fixed = Body(before)(values)
            return turn((*values, *fixed))

        return run


@collector_waits()
def compile_body(engine: Engine, function: FuncGraph, node: Node, first: int) -> Body:
    """Compiles a branch or loop body.

    Args:
        engine: compiles and binds.
        function: the body.
        node: the control-flow node; the body's arguments and results live on its device.
        first: the index of the node's input that is the body's first argument.
    """
    control = node.traits.control
    feeds = []
    for tensor in function.inputs:
        feeds.append((tensor, tensor._dtype, tensor._shape))
    block = prune(function.outputs, function.targets, feeds)
    if control is Control.COND:
        _narrow(block.feeds, node, first)
    refine_shapes(block)
    here = HOST if node.target is None or node.target.is_host else node.target.name
    for i, value in enumerate(block.feeds):
        value.node.target = node.target
        value.node.attrs["at"] = here
        # Kernels may rely on the very array: a loop is given none that the caller could change.
        value.node.attrs["stays"] = control is Control.LOOP and passes_on(node.attrs["body"], i)
    if node.target is not None and not any(n.requested for n in block.nodes):
        # Work stays where the data is unless the user said otherwise.
        for inner in block.nodes:
            if inner.op != FEED and engine.prefers(inner, node.target):
                inner.requested = node.target.name
    if control is Control.LOOP and function is node.attrs["body"]:
        block.cells = frozenset(
            i for i, t in enumerate(function.inputs) if t._dtype._is_ref_dtype
        )  # fmt: skip
    is_condition = control is Control.LOOP and function is node.attrs["cond"]
    pipeline.improve(block, engine.evaluate, engine.options)
    before = None
    if control is Control.LOOP and "hoist" in engine.options.passes:
        once = hoist(block, here == HOST)
        before = None if once is None else _bound(engine, once, here)
    return Body(_bound(engine, block, HOST if is_condition else here), before)


def _bound(engine: Engine, block: Block, results_at: str) -> Program:
    return engine.bind(*pipeline.line_up(block, engine.placer, engine.options, results_at))


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
