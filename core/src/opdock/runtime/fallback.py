"""Run-time fallback: a kernel declines or memory runs out, the op moves, the step goes on."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from opdock import errors
from opdock.compiler.ir import HOST, Block, Node, Value
from opdock.compiler.ladder import climb
from opdock.compiler.partition import _declare_memory, cell_inputs
from opdock.compiler.place import Placer
from opdock.compiler.schedule import Step
from opdock.compiler.target import Target
from opdock.runtime.program import bind_kernel
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

    def __call__(
        self, step: Step, inputs: Sequence[Any], error: errors.OpError
    ) -> tuple[Any, ...] | None:
        """Results of `step` from another kernel, at the places where the program expects them."""
        node = step.node
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

    # ------------------------------------------------------------ steps
    def _ban(self, node: Node, reason: str, error: Exception) -> str:
        assert node.target is not None
        out_of_memory = isinstance(error, (errors.ResourceExhaustedError, MemoryError))
        kernel = "*" if out_of_memory or node.kernel is None else node.kernel.qualname
        text = f"gave up at run time: {reason}"
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
        _declare_memory(clone)
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
        from opdock.compiler.ladder import expand
        from opdock.compiler.schedule import ALIASES
        from opdock.runtime.builtin import BUILTINS

        nodes, mapping = expand(Block(), clone, choice)
        values: dict[Value, Any] = dict(
            zip(clone.inputs, self._arguments(home, clone, inputs), strict=True)
        )
        for node in nodes:
            if node.op == "Const":
                array = node.attrs["value"]
                host = node.target is None or node.target.is_host
                values[Value(node, 0)] = array if host else node.target.device.upload(array)  # type: ignore[union-attr]
                continue
            cells = cell_inputs(node)
            args = [
                values[v] if i in cells or not hasattr(values[v], "read") else values[v].read()
                for i, v in enumerate(node.inputs)
            ]
            if node.op in ALIASES:
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
                    else CellProxy(value, self._between(holder, here), self._between(here, holder))
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
        return value if source == wanted else self._between(source, wanted)(value)

    def _report(self, node: Node, clone: Node, reason: str) -> None:
        assert node.target is not None
        assert clone.target is not None
        key = (node.name, node.target.name, clone.target.name)
        found = self.moves.get(key)
        if found is not None:
            found.count += 1
            return
        kernel = "" if node.kernel is None else node.kernel.qualname
        move = Move(node.name, node.op, node.target.name, kernel, clone.target.name, reason)
        self.moves[key] = move
        _log.warning("%s", move)


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
