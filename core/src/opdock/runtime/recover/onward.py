"""What is left of a step whose result has another shape than set_shape said: it goes on with it.

TF looks at no promise of a shape when it runs. Programs here are compiled for it, so what follows
such a result is compiled anew, from the user's graph, for the shape that it has. What ran has run:
its values are fed to the rest, and what has an effect does not happen a second time.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from opdock.compiler.clean.prune import references
from opdock.compiler.emit.partition import location
from opdock.compiler.emit.schedule import Step
from opdock.compiler.ir.block import SEGMENT, Node, Value
from opdock.compiler.ir.source import Source
from opdock.compiler.pipeline import Compiled, Given
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.runtime.program.claims import ClaimError
from opdock.runtime.recover.lost import has_effect

if TYPE_CHECKING:
    from opdock.runtime.program.program import Program

__all__ = ["Onward"]

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

    def __call__(self, error: ClaimError, values: dict[int, Any]) -> Sequence[Any] | None:
        """The results of a step that met `error`, whose values by slot are `values`.

        Returns:
            None where what is left cannot be told from what has run.
        """
        source, at = self._compiled.block.source, error.at
        if source is None or at is None or not self.possible:
            return None
        steps = self._compiled.schedule.steps
        values = {**values, **dict(zip(steps[at].outputs, error.results, strict=True))}
        done = self._done(steps[: at + 1])
        known = self._known(source, steps[: at + 1], values)
        used = None if done is None else _used(source, known, done)
        if done is None or used is None:
            return None
        given = [(t, t.dtype.base_dtype, np.shape(known[t][0]), known[t][1]) for t in used]
        key = (at, *((t, shape) for t, _, shape, _ in given))
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

    @functools.cached_property
    def possible(self) -> bool:
        """Whether steps run in turn, and their values can be told as the user's."""
        compiled = self._compiled
        if compiled.block.source is None or compiled.once is not None:
            return False
        return not self._rearranged()

    def _rearranged(self) -> bool:
        """Whether values may have another layout than the user's, or be out of sight."""
        return any(n.op == SEGMENT or _changed(n) for n in self._compiled.block.nodes)

    def _done(self, ran: Sequence[Step]) -> set[Operation] | None:
        """The operations with effects that have run; None where that cannot be said."""
        done: set[Operation] = set()
        for node in (s.node for s in ran if has_effect(s)):
            for member in [node] if node.fused is None else node.fused.members:
                if member.origin is None or not _same(member):
                    return None
                done.add(member.origin)
        return done

    def _known(
        self, source: Source, ran: Sequence[Step], values: dict[int, Any]
    ) -> dict[Tensor, tuple[Any, str]]:
        """The user's tensors whose values there are, and where these lie."""
        known = {}
        feeds = zip(source.feeds, self._compiled.block.feeds, strict=True)
        for (tensor, value), slot in zip(feeds, self._compiled.schedule.params, strict=True):
            if slot in values:
                known[tensor] = values[slot], location(value)
        for value, slot in _results(ran):
            if slot in values and value.node.origin is not None and _same(value.node):
                tensor = value.node.origin.outputs[value.index]
                if tensor.dtype._is_data:
                    known[tensor] = values[slot], location(value)
        return known


def _results(ran: Sequence[Step]) -> Iterator[tuple[Value, int]]:
    for step in ran:
        if step.kind in ("kernel", "builtin", "control"):
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
    source: Source, known: dict[Tensor, Any], done: AbstractSet[Operation]
) -> list[Tensor] | None:
    """What of the known values the rest needs; None if it needs one that is not known any more."""
    stands = references(done)
    used = dict.fromkeys(t for t in source.fetches if t in known)
    waiting = [stands.get(t, t).op for t in source.fetches if t not in known]
    waiting += [op for op in source.targets if op not in done]
    fed, seen = {t.op for t in source.feeds}, set()
    while waiting:
        op = waiting.pop()
        if op in done or (op in fed and op.spec.traits.placeholder):
            return None
        if op in seen:
            continue
        seen.add(op)
        used.update(dict.fromkeys(t for t in op.inputs if t in known))
        waiting += [stands.get(t, t).op for t in op.inputs if t not in known]
        waiting += [c for c in op.control_inputs if c not in done and c not in fed]
    return list(used)
