"""What is left of a step whose result has another shape than set_shape said: it goes on with it.

TF looks at no promise of a shape when it runs. Programs here are compiled for it, so what follows
such a result is compiled anew, from the user's graph, for the shape that it has. What ran has run:
its values are fed to the rest, and what has an effect does not happen a second time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from opdock.compiler.clean.prune import references
from opdock.compiler.emit.partition import location
from opdock.compiler.emit.schedule import Step
from opdock.compiler.ir.block import Node, Value
from opdock.compiler.ir.source import Source
from opdock.compiler.ir.state import written
from opdock.compiler.pipeline import Compiled, Given
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.runtime.program.claims import ClaimError

if TYPE_CHECKING:
    from opdock.runtime.program.program import Program

__all__ = ["Onward"]

_MAKING: Final = ("kernel", "builtin", "control", "segment", "alias")
_KEPT: Final = 4  # rests of one program, which are few: by the step that led there, and shapes


class Onward:
    """Takes a program's steps to their end where a claimed shape proves to be none.

    Args:
        compiled: the program.
        compile_rest: compiles what is left of a source, given values and what is done.
        bind: makes a program of that.
    """

    def __init__(
        self,
        compiled: Compiled,
        compile_rest: Callable[[Source, Sequence[Given], AbstractSet[Operation]], Compiled | None],
        bind: Callable[[Compiled], Program],
    ) -> None:
        self._compiled = compiled
        self._compile, self._bind = compile_rest, bind
        self._rests: dict[Any, Program] = {}

    def __call__(
        self, error: ClaimError, ran: Collection[int], values: dict[int, Any]
    ) -> Sequence[Any] | None:
        """The results of a run that met `error`.

        Args:
            error: with what its step gave.
            ran: the steps that have run, and that one.
            values: what there is by now, by slot.

        Returns:
            None where what is left cannot be told from what has run.
        """
        source, at = self._compiled.block.source, error.at
        if source is None or at is None:
            return None
        steps = self._compiled.schedule.steps
        values = {**values, **dict(zip(steps[at].outputs, error.results, strict=True))}
        past = [step for i, step in enumerate(steps) if i in ran]
        done = _done(past, source.done)
        known = self._known(source, past, values)
        # What met the error would meet it again.
        once = _drawn(past) | {m.origin for m in _members(steps[at]) if m.origin is not None}
        used = None if done is None else _used(source, known, done, once)
        if done is None or used is None:
            return None
        given = [_given(t, *known[t]) for t in used]
        key = (at, frozenset(done), *((t, shape) for t, _, shape, _ in given))
        rest = self._rests.get(key)
        if rest is None:
            compiled = self._compile(source, given, done)
            if compiled is None:
                return None
            rest = self._bind(compiled)
            if len(self._rests) < _KEPT:
                self._rests[key] = rest
        results = rest.call([known[t][0] for t in used])
        shared = zip(results, rest.shared_fetches, strict=True)
        return [r.copy() if s and isinstance(r, np.ndarray) else r for r, s in shared]

    @property
    def possible(self) -> bool:
        """Whether it is known what the program was made from."""
        return self._compiled.block.source is not None

    def _known(
        self, source: Source, ran: Sequence[Step], values: dict[int, Any]
    ) -> dict[Tensor, tuple[Any, str]]:
        """The user's tensors whose values there are, and where these lie."""
        known, block = {}, self._compiled.block
        # What is computed before a loop's first turn comes in as further feeds: it has no effects.
        feeds = zip(source.feeds, block.feeds, strict=False)
        for (tensor, value), slot in zip(feeds, self._compiled.schedule.params, strict=False):
            if slot in values:
                known[tensor] = values[slot], location(value)
        for value, slot in _results(ran):
            node = value.node
            there = values.get(slot) is not None  # it is None once its last reader has run
            if there and value not in block.turned and _same(node) and not _changed(node):
                assert node.origin is not None
                tensor = node.origin.outputs[value.index]
                if not tensor.dtype._is_ref_dtype:
                    known[tensor] = values[slot], location(value)
        return known


def _given(tensor: Tensor, value: Any, lies: str) -> Given:
    """A tensor and what is known of the value that it has."""
    if tensor.dtype._is_data:
        return tensor, tensor.dtype, np.shape(value), lies
    return tensor, tensor.dtype, tensor.raw_shape, lies


def _members(step: Step) -> Iterator[Node]:
    """The nodes that a step stands for."""
    waiting = [step.node]
    while waiting:
        node = waiting.pop()
        if node.fused is None:
            yield node
        else:
            waiting += node.fused.members


def _done(ran: Sequence[Step], before: AbstractSet[Operation]) -> set[Operation] | None:
    """The operations with effects that have run; None where that cannot be said."""
    done = set(before)
    for member in (m for step in ran if step.kind in _MAKING for m in _members(step)):
        if (member.spec is not None and member.spec.has_effect) or written(member):
            if not _same(member):
                return None
            assert member.origin is not None
            done.add(member.origin)
    return done


def _drawn(ran: Sequence[Step]) -> set[Operation]:
    """The random operations that have run: they give something else when they run again."""
    members = (m for step in ran if step.kind in _MAKING for m in _members(step))
    return {m.origin for m in members if m.origin is not None and m.traits.random}


def _results(ran: Sequence[Step]) -> Iterator[tuple[Value, int]]:
    for step in ran:
        if step.kind in _MAKING:
            node = step.node
            made = node.values() if node.fused is None else node.fused.results
            yield from zip(made, step.outputs, strict=False)


def _same(node: Node) -> bool:
    """Whether a node is one of the user's operations, and no pass made it of one."""
    origin = node.origin
    return origin is not None and node.op == origin.type and node.name == origin.name


def _changed(node: Node) -> bool:
    """Whether a pass has changed what the user said of an operation, a format of data say."""
    origin = node.origin
    if origin is None or not _same(node) or node.attrs is origin.attrs:
        return False
    # What a pass adds is between it and the kernels.
    return any(node.attrs.get(name) is not value for name, value in origin.attrs.items())


def _used(
    source: Source,
    known: dict[Tensor, Any],
    done: AbstractSet[Operation],
    once: AbstractSet[Operation],
) -> list[Tensor] | None:
    """What of the known values the rest needs; None if it needs one that is not known any more.

    Args:
        source: what the program was made from.
        known: the values that there are.
        done: operations with effects that have run.
        once: operations that do not run again for another reason.
    """
    stands = references(done)
    used = dict.fromkeys(t for t in source.fetches if t in known)
    waiting = [stands.get(t, t).op for t in source.fetches if t not in known]
    waiting += [op for op in source.targets if op not in done]
    fed, seen = {t.op for t in source.feeds}, set()
    while waiting:
        op = waiting.pop()
        if op in done or op in once or (op in fed and op.spec.traits.placeholder):
            return None
        if op in seen:
            continue
        seen.add(op)
        used.update(dict.fromkeys(t for t in op.inputs if t in known))
        waiting += [stands.get(t, t).op for t in op.inputs if t not in known]
        waiting += [c for c in op.control_inputs if c not in done and c not in fed]
    return list(used)
