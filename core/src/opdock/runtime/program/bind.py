"""Bind: from what the compiler made to kernels, constants and buffers of this process."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opdock import errors
from opdock.compiler.emit.arena import allocate
from opdock.compiler.emit.schedule import Step
from opdock.compiler.ir.block import Node
from opdock.compiler.ir.state import cell_inputs
from opdock.compiler.pipeline import Compiled
from opdock.compiler.place.ladder import node_sig
from opdock.compiler.place.target import Target, memory_of
from opdock.runtime.program.builtin import BUILTINS, check_temporaries, variable_cell
from opdock.runtime.recover.located import as_op_error, where
from opdock.runtime.recover.lost import Losses, homewards
from opdock.runtime.resources import CellProxy, ResourceManager

if TYPE_CHECKING:
    from opdock.runtime.program.parallel import Helpers

__all__ = ["Bound", "KernelContext", "Services", "bind_kernel"]

Call = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Services:
    """What a session's programs share.

    Attributes:
        resources: variables and their like.
        losses: finds out that devices are lost.
        between: (source, destination, name) to a function that moves a buffer.
        control: the callable of a control-flow node.
        helpers: threads for steps that run at the same time.
        replays: whether whole steps may be recorded.
    """

    resources: ResourceManager
    losses: Losses
    between: Callable[[str, str, str], Callable[[Any], Any]]
    control: Callable[[Node], Call]
    helpers: Helpers
    replays: bool = True


class Bound:
    """A schedule with all that its steps need.

    Attributes:
        compiled: what was bound; without planned buffers, if they could not be had.
        schedule: the steps.
        presets: the constants and variables, by slot.
        calls: a callable for each step.
        buffers: the planned ones.
    """

    __slots__ = ("buffers", "calls", "compiled", "presets", "schedule")

    def __init__(self, compiled: Compiled, services: Services) -> None:
        self.schedule = compiled.schedule
        check_temporaries(s.node for s in self.schedule.steps if s.kind == "builtin")
        self.presets = {s: _preset(n, services) for s, n in self.schedule.presets.items()}
        self.calls = [_bind(step, services) for step in self.schedule.steps]
        try:
            self.buffers = allocate(compiled.plan.buffers, compiled.plan.blocks)
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

    def out(self, step: Step) -> Any:
        """What a call gets as `out`: the planned buffer, or a tuple of them, or None."""
        if step.outs:
            return tuple(None if b is None else self.buffers[b] for b in step.outs)
        return None if step.out is None else self.buffers[step.out]


def _preset(node: Node, services: Services) -> Any:
    if not node.is_const:
        return variable_cell(node, services.resources)
    value = node.attrs["value"]
    if node.target is None or node.target.is_host or value.dtype.hasobject:
        return value
    try:
        return node.target.device.upload(value)
    except errors.OpError as e:
        found = as_op_error(e, node)
        raise services.losses.meet(node, found) or found from e


def _bind(step: Step, services: Services) -> Call:
    node = step.node
    if step.kind == "read":
        return lambda cell: cell.read()
    if step.kind == "alias":
        return lambda value: value
    if step.kind == "copy":
        carry: Call = node.attrs["carry"]
        return carry
    if step.kind == "control":
        return services.control(node)
    if step.kind == "builtin":
        return _proxied(node, BUILTINS[node.op](node, services.resources), services)
    return _proxied(node, bind_kernel(node, services.resources), services)


def _proxied(node: Node, fn: Call, services: Services) -> Call:
    """`fn` with copying stand-ins for variables that live on another device."""
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
            args[i] = CellProxy(args[i], to_local, to_home)
        result = fn(*args)
        return result.home if isinstance(result, CellProxy) else result

    return call


def _apart(a: Target | None, b: Target | None) -> bool:
    """Whether two devices have memories of their own."""
    return a is not None and b is not None and memory_of(a) != memory_of(b)


@dataclass(slots=True)
class KernelContext:
    """What a plain kernel `fn(ctx, *inputs)` gets."""

    sig: Any
    attrs: Any
    device: Any
    resources: ResourceManager
    stream: Any = None


def bind_kernel(node: Node, resources: ResourceManager) -> Call:
    """The callable of a placed node.

    Raises:
        OpError: the kernel's binder failed.
    """
    kernel = node.kernel
    if kernel is None:
        raise errors.InternalError(
            None, node.origin, f"Node {node.name} ({node.op}) has no kernel."
        )
    sig = node_sig(node, node.target, resources)
    try:
        if kernel.bind is not None:
            return kernel.bind(sig)
    except Exception as e:
        raise as_op_error(e, node) from e
    assert kernel.fn is not None
    return functools.partial(
        kernel.fn, KernelContext(sig, sig.attrs, sig.device, resources)
    )
