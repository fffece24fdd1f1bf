"""Bind: from what the compiler made to kernels, constants and buffers of this process."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol, cast

from opdock import errors
from opdock.compiler.emit.arena import allocate
from opdock.compiler.emit.schedule import Step
from opdock.compiler.ir.block import HOST, Node
from opdock.compiler.ir.state import cell_inputs
from opdock.compiler.pipeline import Compiled
from opdock.compiler.place.ladder import node_sig
from opdock.compiler.place.target import Target, memory_of
from opdock.devices.answers import uploading
from opdock.failures import failures
from opdock.kernels.select.cells import Cell, UserFunction
from opdock.kernels.select.context import KernelContext
from opdock.kernels.select.notes import Noting
from opdock.late import record
from opdock.runtime.cancellation import Cancellation, check, ends_of
from opdock.runtime.program.builtin import (
    BUILTINS,
    check_temporaries,
    read_variable,
    variable_cell,
)
from opdock.runtime.program.checks import Checks
from opdock.runtime.program.claims import HeldControl, held_to_claims
from opdock.runtime.program.segment import bind_segment
from opdock.runtime.recover.located import as_op_error, culprit, where
from opdock.runtime.recover.lost import Losses, homewards
from opdock.runtime.resources import CellProxy, ResourceManager

if TYPE_CHECKING:
    from opdock.runtime.program.parallel import Helpers
    from opdock.runtime.program.program import Program

__all__ = ["Bound", "Inner", "Services", "bind_kernel", "within"]

Call = Callable[..., Any]


class Inner(Protocol):
    """What runs the functions of a control-flow node."""

    def __call__(self, *inputs: Any) -> Any:
        """The node's results."""

    def program(self, name: str) -> Program:
        """The program of one of its functions, by the attribute that holds it."""


@record(frozen=True, slots=True)
class Services:
    """What a session's programs share.

    Attributes:
        resources: variables and their like.
        losses: finds out that devices are lost.
        between: (source, destination, name) to a function that moves a buffer.
        control: the callable of a control-flow node, with what its bodies are bound to.
        function: a function that a kernel calls when it likes, from the node that names it.
        helpers: threads for steps that run at the same time.
        checks: what looks at all that plugins give, or None.
    """

    resources: ResourceManager
    losses: Losses
    between: Callable[[str, str, str], Callable[[Any], Any]]
    control: Callable[[Node, Services], Inner]
    function: Callable[[Any], UserFunction]
    helpers: Helpers
    checks: Checks | None = None


class Bound:
    """A schedule with all that its steps need.

    Attributes:
        compiled: what was bound; without planned buffers, if they could not be had.
        schedule: the steps.
        presets: the constants and variables, by slot.
        calls: a callable for each step.
        buffers: the planned ones.
        inner: what runs the functions of the control-flow nodes among the steps.
        limited: the devices on which the session's steps run within limits.
        notes: what each step's kernel said of how it computes.
    """

    __slots__ = (
        "buffers", "calls", "compiled", "inner", "limited", "notes", "presets", "schedule",
    )  # fmt: skip

    def __init__(self, compiled: Compiled, services: Services) -> None:
        self.schedule = compiled.schedule
        check_temporaries(s.node for s in self.schedule.steps if s.kind == "builtin")
        nodes = compiled.block.nodes
        self.presets = {s: _preset(n, nodes, services) for s, n in self.schedule.presets.items()}
        targets = {s.node.target: None for s in self.schedule.steps if s.node.target is not None}
        self.limited = [target for target in targets if target.within() is not None]
        self.notes: list[list[str]] = [[] for _ in self.schedule.steps]
        with within(self.limited):
            self.calls = [
                _bind_or_fail(step, services, said, self.presets)
                for step, said in zip(self.schedule.steps, self.notes, strict=True)
            ]
        self.inner: dict[Node, Inner] = {
            step.node: cast("Inner", call)
            for step, call in zip(self.schedule.steps, self.calls, strict=True)
            if step.kind == "control" and not isinstance(call, functools.partial)
        }
        for i in compiled.pauses:
            self.calls[i] = _unless_ended(self.calls[i], services.resources.cancellation)
        try:
            self.buffers = allocate(compiled.plan.buffers, compiled.plan.blocks)
        except errors.InternalError:
            raise  # the device gave what is no such buffer
        except (errors.OpError, MemoryError):
            # Each kernel may still find room for its own result, or move where there is some.
            compiled, self.buffers = compiled.without_buffers(), []
        self.compiled = compiled

    def initial(self, feeds: Sequence[Any]) -> dict[int, Any]:
        """The values by slot before the first step: constants, variables and feeds."""
        return {**self.presets, **dict(zip(self.schedule.params, feeds, strict=True))}

    def fetched(self, values: dict[int, Any]) -> tuple[Any, ...]:
        """What the caller gets of the values after the last step."""
        return tuple(values[s] for s in self.schedule.fetches)

    def needed(self, step: Step) -> Sequence[int]:
        """The slots that a step's call has to be given: a segment knows variables of its own."""
        if step.kind != "segment" or not _known(step, self.presets):
            return step.inputs
        return step.inputs[: _data(step)]

    def out(self, step: Step) -> Any:
        """What a call gets as `out`: the planned buffer, or a tuple of them, or None."""
        if step.outs:
            return tuple(None if b is None else self.buffers[b] for b in step.outs)
        return None if step.out is None else self.buffers[step.out]


def _data(step: Step) -> int:
    """How many of a segment's inputs are none of its variables."""
    return len(step.node.attrs["segment"].inputs)


def _known(step: Step, presets: dict[int, Any]) -> tuple[Any, ...]:
    """The variables of a segment, if each run has the same."""
    slots = step.inputs[_data(step) :]
    return tuple(presets[s] for s in slots) if presets.keys() >= set(slots) else ()


def within(targets: Iterable[Target]) -> AbstractContextManager[object]:
    """The limits that a session has set its devices."""
    limits = [limit for target in targets if (limit := target.within()) is not None]
    # One is what nearly all sessions have that have some, and each step pays for what is around it.
    return limits[0] if len(limits) == 1 else _within_all(limits)


@contextlib.contextmanager
def _within_all(limits: Iterable[AbstractContextManager[object]]) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        for limit in limits:
            stack.enter_context(limit)
        yield


def _unless_ended(call: Call, session: Cancellation) -> Call:
    """The call, before which is asked whether the step is to end."""

    def run(*inputs: Any) -> Any:
        check(ends_of(session))
        return call(*inputs)

    return run


def _preset(node: Node, nodes: Sequence[Node], services: Services) -> Any:
    if not node.is_const:
        return variable_cell(node, services.resources)
    value = node.attrs["value"]
    if node.target is None or node.target.is_host or value.dtype.hasobject:
        return value
    upload = uploading(node.target.device)
    if services.checks is not None:
        upload = services.checks.hop(upload, HOST, node.target.name, "upload", node)
    try:
        return upload(value)
    except failures() as e:
        found = as_op_error(e, node, f"the upload to {node.target.name} by {node.target.owner}")
        losses = services.losses
        raise losses.meet(node, found) or losses.not_taken(node, nodes, found) or found from e


def _bind_or_fail(step: Step, services: Services, said: list[str], presets: dict[int, Any]) -> Call:
    """The callable of a step; one that raises, where the step cannot be bound.

    The step may wait for a check that has better words, or may be one that nothing comes to.
    """
    try:
        with Noting(said):
            return _bind(step, services, presets)
    except errors.OpError as e:
        return functools.partial(_fail, e)


def _fail(error: errors.OpError, *_: Any) -> Any:
    raise error.with_traceback(None)


def _bind(step: Step, services: Services, presets: dict[int, Any]) -> Call:
    node = step.node
    if step.kind == "read":
        return read_variable
    if step.kind == "alias":
        return lambda value: value
    if step.kind == "copy":
        carry: Call = node.attrs["carry"]
        return carry if services.checks is None else services.checks.copy(node, carry)
    if step.kind == "control":
        inner = services.control(node, services)
        return HeldControl(node, inner)
    if step.kind == "segment":
        executable = node.attrs["executable"]
        checks = services.checks
        call = executable if checks is None else checks.segment(node, executable)
        return bind_segment(node, services.resources, call, _known(step, presets))
    if step.kind == "builtin":
        return _proxied(node, BUILTINS[node.op](node, services.resources), services)
    fn = bind_kernel(node, services.resources, services.checks, services.function)
    if node.claimed:
        fn = held_to_claims(node, fn)
    return _proxied(node, fn, services)


def bind_alone(step: Step, streams: Any) -> Call:
    """The callable of a step outside any program: for whoever compiles it with others.

    Args:
        step: neither control flow nor a copy; its variables are on its device.
        streams: where a random op finds its stream.

    Raises:
        OpError: the kernel's binder failed.
    """
    node, kernel = step.node, step.node.kernel
    if step.kind == "read":
        return read_variable
    if step.kind == "alias":
        return lambda value: value
    if step.kind == "builtin":
        return BUILTINS[node.op](node, streams)
    call = bind_kernel(node, streams)
    return call if kernel is None or not kernel.out else lambda *inputs: call(*inputs, None)


def _proxied(node: Node, fn: Call, services: Services) -> Call:
    """`fn` with copying stand-ins for variables that live on another device."""
    if not node.touches:
        return fn
    here = node.target
    proxies = {}
    for i in cell_inputs(node):
        variable = node.inputs[i].node
        if node.inputs[i].dtype.name == "variant" or not _apart(variable.target, here):
            continue  # a list is no variable
        ours, theirs = memory_of(here), memory_of(variable.target)
        bring = services.between(theirs, ours, variable.name)
        back = services.between(ours, theirs, variable.name)
        proxies[i] = bring, homewards(back, theirs, node, where(node))
    if not proxies:
        return fn

    def call(*inputs: Any) -> Any:
        args = list(inputs)
        for i, (to_local, to_home) in proxies.items():
            stand_in: Cell = CellProxy(args[i], to_local, to_home)
            args[i] = stand_in
        result = fn(*args)
        return result.home if isinstance(result, CellProxy) else result

    return call


def _apart(a: Target | None, b: Target | None) -> bool:
    """Whether two devices have memories of their own."""
    return a is not None and b is not None and memory_of(a) != memory_of(b)


def bind_kernel(
    node: Node, resources: ResourceManager, checks: Checks | None = None,
    functions: Callable[[Any], UserFunction] | None = None,
) -> Call:  # fmt: skip
    """The callable of a placed node, with a check around it if there are `checks`.

    Raises:
        OpError: the kernel's binder failed.
    """
    fn = _bound(node, resources, functions)
    return fn if checks is None else checks.kernel(node, fn)


def _bound(node: Node, resources: ResourceManager, functions: Any) -> Call:
    kernel = node.kernel
    if kernel is None:
        raise errors.InternalError(
            None, node.origin, f"Node {node.name} ({node.op}) has no kernel."
        )
    sig = node_sig(node, node.target, resources, functions)
    if kernel.bind is None:
        assert kernel.fn is not None
        return functools.partial(
            kernel.fn, KernelContext(sig, resources)
        )  # fmt: skip
    try:
        fn = kernel.bind(sig)
    except failures() as e:
        raise as_op_error(e, node, "bind()") from e
    if not callable(fn):
        told = f"bind() of {culprit(node)} returned {fn!r}, which cannot be called"
        raise errors.InternalError(None, node.origin, f"Op {node.op} failed: {told}{where(node)}")
    return fn
