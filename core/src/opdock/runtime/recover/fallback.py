"""Run-time fallback: a kernel declines or memory runs out, the op moves, the step goes on."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from opdock import errors
from opdock.compiler.emit.partition import declare_memory
from opdock.compiler.emit.schedule import Step
from opdock.compiler.ir.block import HOST, Block, Fused, Node, Value
from opdock.compiler.ir.state import cell_inputs
from opdock.compiler.place.ladder import climb
from opdock.compiler.place.placer import GAVE_UP, Placer
from opdock.compiler.place.target import Target
from opdock.runtime.program.program import as_op_error, bind_kernel, where
from opdock.runtime.recover.lost import Losses, NoRoomError, homewards
from opdock.runtime.resources import CellProxy, ResourceManager

_log = logging.getLogger("opdock.fallback")
CopyBetween = Callable[[str, str], Callable[[Any], Any]]


@dataclass(slots=True)
class Move:
    """One decision: an op left a kernel at run time."""

    node: str
    op: str
    source: str
    kernel: str
    destination: str
    reason: str
    count: int = 1

    def __str__(self) -> str:
        return (
            f"{self.node} ({self.op}) moved from {self.source} to {self.destination}, "
            f"{self.count} time(s): {self.reason}"
        )


class Fallback:
    """Finds another kernel for a step that declined, and remembers it for later programs.

    The ban makes the next program place the op elsewhere, with copies as nodes of their own.
    """

    def __init__(
        self,
        placer: Placer,
        resources: ResourceManager,
        between: CopyBetween,
        on_ban: Callable[[], None],
    ) -> None:
        self._placer = placer
        self._resources = resources
        self._between = between
        self._on_ban = on_ban
        self.moves: dict[tuple[str, str, str], Move] = {}
        self.losses = Losses(placer, resources, on_ban)

    def __call__(
        self, step: Step, inputs: Sequence[Any], error: errors.OpError
    ) -> tuple[Any, ...] | None:
        """Results of `step` from another kernel, at the places where the program expects them."""
        node = step.node
        if node.fused is not None:
            return self._unfused(node, node.fused, inputs, error)
        if not self._placer.soft or node.target is None or node.kernel is None:
            return None
        reason = error.message.split("\n", 1)[0]
        lost = [self._ban(node, reason, error)]
        for target in self._order(node):
            choice, rejections = climb(node, target, self._resources, self._placer.banned)
            lost += [str(r) for r in rejections]
            if choice is None:
                continue
            clone = _clone(node, target)
            clone.kernel, clone.how = choice.kernel, choice.kind
            try:
                results = self._run(node, clone, choice, inputs)
            except NoRoomError as e:
                # State has to return; a result need not, when the step is placed anew.
                e.again = not cell_inputs(clone)
                raise
            except errors.UnavailableError as e:
                if self.losses.meet(clone, e) is None:
                    raise
                lost.append(f"{target.name}: {e.message}")
                continue
            except (
                errors.UnimplementedError,
                errors.ResourceExhaustedError,
                MemoryError,
                NotImplementedError,
            ) as e:
                text = getattr(e, "message", str(e)).split("\n", 1)[0]
                lost.append(self._ban(clone, text, e))
                continue
            self._report(node, clone, reason)
            return results
        cls: Any = type(error)
        table = "\n".join(f"  {line}" for line in lost)
        raise cls(None, node.origin, f"{error.message}\nNo other kernel could take over:\n{table}")

    def _unfused(
        self, node: Node, fused: Fused, inputs: Sequence[Any], error: errors.OpError
    ) -> tuple[Any, ...]:
        """Results of a fused step from its members' own kernels.

        To fuse was the compiler's choice, so this needs no soft placement; a member that declines
        in turn is subject to it.
        """
        assert node.target is not None
        assert node.kernel is not None
        reason = error.message.split("\n", 1)[0]
        key = (node.name, node.target.name, node.kernel.qualname)
        self._placer.bans[key] = f"{GAVE_UP}: {reason}"
        self._on_ban()
        values = _Values(self._between)
        for i, value in enumerate(fused.inputs):
            values.put(value, inputs[i], HOST if i in node.host_inputs else _memory(node.target))
        for member in fused.members:
            here = _memory(member.target)
            args = [
                values.get(v, HOST if i in member.host_inputs else here)
                for i, v in enumerate(member.inputs)
            ]
            for value, result in zip(member.values(), self._member(member, args), strict=True):
                values.put(value, result, HOST if value.index in member.host_outputs else here)
        self._moved(node, f"its {len(fused.members)} ops on {node.target.name}", reason)
        return tuple(values.get(v, _memory(node.target)) for v in fused.results)

    def _member(self, member: Node, args: list[Any]) -> tuple[Any, ...]:
        kernel = member.kernel
        assert kernel is not None
        try:
            with np.errstate(all="ignore"):
                result = bind_kernel(member, self._resources)(*args, *[None] * kernel.out)
        except Exception as e:
            found = as_op_error(e, member)
            results = None
            if isinstance(found, (errors.UnimplementedError, errors.ResourceExhaustedError)):
                results = self(Step("kernel", member, [], []), args, found)
            if results is None:
                raise found from e
            return results
        return (result,) if len(member.out_dtypes) == 1 else tuple(result)

    # ------------------------------------------------------------ steps
    def _ban(self, node: Node, reason: str, error: Exception) -> str:
        assert node.target is not None
        out_of_memory = isinstance(error, (errors.ResourceExhaustedError, MemoryError))
        kernel = "*" if out_of_memory or node.kernel is None else node.kernel.qualname
        text = f"{GAVE_UP}: {reason}"
        self._placer.bans[(node.name, node.target.name, kernel)] = text
        self._on_ban()
        return f"{node.target.name}: {kernel}: {text}"

    def _order(self, node: Node) -> list[Target]:
        """The same device first (another kernel may do), then by priority down to the host."""
        others = [t for t in self._placer._downwards() if t is not node.target]
        assert node.target is not None
        return [node.target, *others]

    def _run(self, home: Node, clone: Node, choice: Any, inputs: Sequence[Any]) -> tuple[Any, ...]:
        if choice.kind == "decomposed":
            return self._run_decomposed(home, clone, choice, inputs)
        declare_memory(clone)
        fn = bind_kernel(clone, self._resources)
        args = self._arguments(home, clone, inputs)
        if clone.kernel is not None and clone.kernel.out:
            args.append(None)
        result = fn(*args)
        results = (result,) if len(clone.out_dtypes) == 1 else tuple(result or ())
        return tuple(self._bring_home(home, clone, i, r) for i, r in enumerate(results))

    def _run_decomposed(
        self, home: Node, clone: Node, choice: Any, inputs: Sequence[Any]
    ) -> tuple[Any, ...]:
        from opdock.compiler.place.ladder import expand
        from opdock.runtime.program.builtin import BUILTINS

        nodes, mapping = expand(Block(), clone, choice)
        values: dict[Value, Any] = dict(
            zip(clone.inputs, self._arguments(home, clone, inputs), strict=True)
        )
        for node in nodes:
            if node.is_const:
                array = node.attrs["value"]
                host = node.target is None or node.target.is_host
                values[Value(node, 0)] = array if host else node.target.device.upload(array)  # type: ignore[union-attr]
                continue
            cells = cell_inputs(node)
            args = [
                values[v] if i in cells or not hasattr(values[v], "read") else values[v].read()
                for i, v in enumerate(node.inputs)
            ]
            if node.is_alias and node.kernel is None:
                outs: Any = args[0]
            elif node.kernel is None:
                outs = BUILTINS[node.op](node, self._resources)(*args)
            else:
                if node.kernel.out:
                    args.append(None)
                outs = bind_kernel(node, self._resources)(*args)
            results = (outs,) if len(node.out_dtypes) == 1 else tuple(outs or ())
            values.update(zip(node.values(), results, strict=False))
        finals = [values[mapping[Value(clone, i)]] for i in range(len(clone.out_dtypes))]
        return tuple(self._bring_home(home, clone, i, r) for i, r in enumerate(finals))

    def _arguments(self, home: Node, clone: Node, inputs: Sequence[Any]) -> list[Any]:
        cells = cell_inputs(clone)
        args = []
        for i, value in enumerate(inputs):
            source = HOST if i in home.host_inputs else _memory(home.target)
            wanted = HOST if i in clone.host_inputs else _memory(clone.target)
            if i in cells:
                holder = _memory(clone.inputs[i].node.target)
                here = _memory(clone.target)
                args.append(
                    value if holder == here
                    else CellProxy(
                        value, self._between(holder, here), self._homewards(home, here, holder)
                    )
                )  # fmt: skip
            else:
                args.append(value if source == wanted else self._between(source, wanted)(value))
        return args

    def _bring_home(self, home: Node, clone: Node, index: int, value: Any) -> Any:
        if isinstance(value, CellProxy):
            return value.home
        if hasattr(value, "read") and hasattr(value, "write"):
            return value
        source = HOST if index in clone.host_outputs else _memory(clone.target)
        wanted = HOST if index in home.host_outputs else _memory(home.target)
        return value if source == wanted else self._homewards(home, source, wanted)(value)

    def _homewards(self, home: Node, source: str, wanted: str) -> Callable[[Any], Any]:
        """A copy back to where the program expects a value: no other kernel can help it."""
        return homewards(self._between(source, wanted), wanted, home, where(home))

    def _report(self, node: Node, clone: Node, reason: str) -> None:
        assert clone.target is not None
        self._moved(node, clone.target.name, reason)

    def _moved(self, node: Node, destination: str, reason: str) -> None:
        assert node.target is not None
        key = (node.name, node.target.name, destination)
        found = self.moves.get(key)
        if found is not None:
            found.count += 1
            return
        kernel = "" if node.kernel is None else node.kernel.qualname
        move = Move(node.name, node.op, node.target.name, kernel, destination, reason)
        self.moves[key] = move
        _log.warning("%s", move)


class _Values:
    """Buffers by value, each with the place where it lies."""

    def __init__(self, between: CopyBetween) -> None:
        self._between = between
        self._held: dict[Value, tuple[Any, str]] = {}

    def put(self, value: Value, buffer: Any, place: str) -> None:
        """Keeps a buffer that lies at `place`."""
        self._held[value] = buffer, place

    def get(self, value: Value, place: str) -> Any:
        """The buffer of `value` at `place`; constants need not have been put."""
        buffer, source = self._held.get(value) or (value.node.const(), HOST)
        return buffer if source == place else self._between(source, place)(buffer)


def _memory(target: Target | None) -> str:
    return HOST if target is None or target.is_host else target.name


def _clone(node: Node, target: Target) -> Node:
    clone = Node(
        node.op, node.name, spec=node.spec, attrs=node.attrs, inputs=list(node.inputs),
        out_dtypes=node.out_dtypes, out_shapes=node.out_shapes, origin=node.origin,
        requested=node.requested, order=node.id,
    )  # fmt: skip
    clone.target = target
    return clone


__all__ = ["Fallback", "Move"]
