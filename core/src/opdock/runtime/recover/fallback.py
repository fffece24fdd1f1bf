"""Run-time fallback: a kernel declines or memory runs out, the op moves, the step goes on."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, NoReturn

from opdock import errors
from opdock.codes import coded
from opdock.compiler.emit.partition import location
from opdock.compiler.ir.block import FEED, HOST, Block, Fused, Node, Value
from opdock.compiler.ir.state import cell_inputs, is_handle, is_state
from opdock.compiler.pipeline import Compiler
from opdock.compiler.place.experience import ALL
from opdock.compiler.place.ladder import Choice, expand
from opdock.compiler.place.target import Target, memory_of
from opdock.runtime.inspect.trace import active
from opdock.runtime.program.bind import Bound, Services
from opdock.runtime.program.executor import Executor
from opdock.runtime.recover.located import where
from opdock.runtime.recover.lost import NoRoomError, homewards
from opdock.runtime.recover.rescue import Rescue

_log = logging.getLogger("opdock.fallback")
_NO_FAULT_OF_INPUTS = (
    errors.UnimplementedError,
    errors.ResourceExhaustedError,
    errors.UnavailableError,
)


class Fallback:
    """Finds another kernel for a step that declined, and remembers it for later programs.

    The ban makes the next program place the op elsewhere, with copies as nodes of their own.
    """

    def __init__(self, compiler: Compiler, services: Services) -> None:
        self._compiler = compiler
        self._placer = compiler.placer
        self._services = services
        self.losses = services.losses
        self.rest = compiler.rest
        self.loosen = compiler.placer.experience.loosen

    def __call__(
        self, node: Node, inputs: Sequence[Any], error: errors.OpError
    ) -> tuple[Any, ...] | None:
        """Results of `node` from another kernel, at the places where the program expects them."""
        if node.fused is not None:
            return self._unfused(node, node.fused, inputs, error)
        if not self._placer.soft or node.target is None or node.kernel is None:
            return None
        reason = error.message.split("\n", 1)[0]
        earlier = self._placer.experience.barred(node)
        lost = [self._ban(node, reason, error)]
        feeds = _feeds(node)
        for target in self._order(node):
            choice, rejections = self._placer.climb(node, target)
            lost += [str(r) for r in rejections]
            if choice is None:
                continue
            clone, nodes, made = _standing_in(node, feeds, target, choice)
            try:
                results = self._run(node, feeds, nodes, made, inputs)
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
            self._moved(node, target.name, reason)
            return results
        # Memory may be free in the next step, and what was declined has been said.
        self._placer.experience.absolve(node, earlier)
        cls: Any = type(error)
        table = "\n".join(f"  {line}" for line in lost)
        told = f"{error.message}\nNo other kernel could take over:\n{table}"
        raise cls(None, node.origin, coded("OPD-PLACE-004", told))

    def elsewhere(
        self, node: Node, target: Target, inputs: Sequence[Any]
    ) -> tuple[Any, ...] | None:
        """What a node gives on another device, brought to where its results belong.

        Returns:
            None if the device has no kernel for it, or for a part of it.
        """
        feeds = _feeds(node)
        members = [node] if node.fused is None else node.fused.members
        known = {} if node.fused is None else dict(zip(node.fused.inputs, feeds, strict=True))
        nodes: list[Node] = []
        for member in members:
            choice, _ = self._placer.climb(member, target)
            if choice is None or choice.kind == "builtin":
                return None
            given = feeds if node.fused is None else [known.get(v, v) for v in member.inputs]
            _, parts, made = _standing_in(member, given, target, choice)
            nodes += parts
            known.update(zip(member.values(), made, strict=True))
        wanted = node.values() if node.fused is None else node.fused.results
        return self._run(node, feeds, nodes, [known[v] for v in wanted], inputs)

    def _unfused(
        self, node: Node, fused: Fused, inputs: Sequence[Any], error: errors.OpError
    ) -> tuple[Any, ...]:
        """Results of a fused step from its members' own kernels.

        To fuse was the compiler's choice, so this needs no soft placement; a member that declines
        in turn is subject to it.
        """
        assert node.target is not None
        reason = error.message.split("\n", 1)[0]
        kernel = fused.fusion if node.kernel is None else node.kernel.qualname
        feeds = _feeds(node)
        values = dict(zip(fused.inputs, feeds, strict=True))
        members = []
        for member in fused.members:
            made = _copy_of(member, [values.get(v, v) for v in member.inputs])
            made.target, made.kernel, made.how = member.target, member.kernel, member.how
            members.append(made)
            values.update(zip(member.values(), made.values(), strict=True))
        # What the members refuse as well is the user's error, and no fault of the fused kernel.
        faulty = True
        try:
            results = self._run(
                node, feeds, members, [values[v] for v in fused.results], inputs, True
            )
        except errors.OpError as e:
            faulty = isinstance(e, _NO_FAULT_OF_INPUTS)
            raise
        finally:
            if faulty:
                # The members too: a smaller group of them would give up in the next step.
                for one in (node, *fused.members):
                    self._placer.experience.ban(one, node.target.name, kernel, reason)
        self._moved(node, f"its {len(members)} ops on {node.target.name}", reason)
        return results

    # ------------------------------------------------------------ steps
    def _ban(self, node: Node, reason: str, error: Exception) -> str:
        assert node.target is not None
        out_of_memory = isinstance(error, (errors.ResourceExhaustedError, MemoryError))
        kernel = ALL if out_of_memory or node.kernel is None else node.kernel.qualname
        return self._placer.experience.ban(node, node.target.name, kernel, reason)

    def _order(self, node: Node) -> list[Target]:
        """The same device first (another kernel may do), then by priority down to the host."""
        others = [t for t in self._placer.downwards() if t is not node.target]
        assert node.target is not None
        return [node.target, *others]

    def _run(
        self, home: Node, feeds: list[Value], nodes: list[Node], results: list[Value],
        inputs: Sequence[Any], rescued: bool = False,
    ) -> tuple[Any, ...]:  # fmt: skip
        """Results of placed nodes that stand in for another, where the program expects them.

        Args:
            home: the node that they stand in for.
            feeds: its inputs as the nodes know them.
            nodes: in executable order.
            results: its outputs as they give them.
            inputs: the values of the feeds.
            rescued: whether others stand in for nodes that decline in turn.
        """
        constants = {v.node: None for n in nodes for v in n.inputs if v.node.is_const}
        first = [*(v.node for v in feeds), *(n for n in constants if n not in nodes)]
        block = Block([*first, *nodes], feeds, results, nodes)
        block.cells = frozenset(i for i, v in enumerate(results) if v.dtype._is_ref_dtype)
        compiled = self._compiler.only_copies(block)
        bound = Bound(compiled, self._services)
        values = bound.initial(inputs)
        executor = Executor(bound, Rescue(compiled, self) if rescued else _raised)
        executor.walk(range(len(compiled.schedule.steps)), values, active(), planned=False)
        made = zip(results, bound.fetched(values), strict=True)
        return tuple(self._bring_home(home, i, v, r) for i, (v, r) in enumerate(made))

    def _bring_home(self, home: Node, index: int, made: Value, result: Any) -> Any:
        if is_state(made) or is_handle(made):
            return result
        source = location(made)
        wanted = HOST if index in home.host_outputs else memory_of(home.target)
        if source == wanted:
            return result
        copy = self._services.between(source, wanted, home.name)
        return homewards(copy, wanted, home, where(home))(result)

    def _moved(self, node: Node, destination: str, reason: str) -> None:
        experience = self._placer.experience
        move = experience.move(node, destination, reason)
        if move is not None:
            first = " (Session.explain tells all that moved)" if len(experience.moves) == 1 else ""
            _log.warning("%s%s", move, first)


def _feeds(node: Node) -> list[Value]:
    """The inputs of a node as feeds of a block: values and variables where they are."""
    cells, made = cell_inputs(node), []
    for i, value in enumerate(node.inputs):
        feed = Node(
            FEED, value.node.name, spec=None, inputs=[], out_shapes=[value.shape],
            attrs={"at": HOST if i in node.host_inputs else memory_of(node.target)},
            out_dtypes=[value.dtype if i in cells else value.dtype.base_dtype],
        )  # fmt: skip
        feed.target = value.node.target if i in cells else node.target
        made.append(Value(feed, 0))
    return made


def _raised(error: BaseException, i: int, inputs: list[Any]) -> NoReturn:
    raise error


def _standing_in(
    node: Node, inputs: list[Value], target: Target, choice: Choice
) -> tuple[Node, list[Node], list[Value]]:
    """A copy of a node as a device would run it, the nodes of that, and its results."""
    clone = _copy_of(node, inputs)
    clone.target, clone.kernel, clone.how = target, choice.kernel, choice.kind
    if choice.kind != "decomposed":
        return clone, [clone], clone.values()
    nodes, mapping = expand(Block(), clone, choice)
    return clone, nodes, [mapping[v] for v in clone.values()]


def _copy_of(node: Node, inputs: list[Value]) -> Node:
    """A node over other inputs, not placed yet; constants stay, as kernels ask for them."""
    return Node(
        node.op, node.name, spec=node.spec, attrs=node.attrs,
        inputs=[old if old.node.is_const else v for old, v in zip(node.inputs, inputs)],
        out_dtypes=node.out_dtypes, out_shapes=node.out_shapes, origin=node.origin,
        requested=node.requested, order=node.id,
    )  # fmt: skip


__all__ = ["Fallback"]
