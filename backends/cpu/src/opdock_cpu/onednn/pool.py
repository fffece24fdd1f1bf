"""Pooling primitives over plain activations."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from opdock.plugin import windows
from opdock_cpu.onednn.declarations import Alg, Arg, Prop, Query
from opdock_cpu.onednn.memory import Desc, activations
from opdock_cpu.onednn.parts import Parts, over_batch
from opdock_cpu.onednn.primitive import Plan, Primitive

__all__ = ["PoolShape", "average", "average_gradient", "maximum", "maximum_gradient"]

_TAP: Final = 8
"""An element of a window takes as long as so many multiply-adds of a convolution."""
_MASKED: Final = "avx512"
"""In the names of code for processors that have them."""


@dataclass(frozen=True)
class PoolShape:
    """A pooling's geometry in oneDNN's terms."""

    batch: int
    channels: int
    where: windows.Window
    first: bool
    kind: int
    threads: int | None = 1

    @property
    def work(self) -> int:
        """In multiply-adds."""
        taps = self.batch * self.channels
        for o, k in zip(self.where.out, self.where.window, strict=True):
            taps *= o * k
        return taps * _TAP

    def part(self, batch: int, threads: int | None) -> PoolShape:
        """The same for another batch, and for so many threads."""
        return replace(self, batch=batch, threads=threads)

    @property
    def geometry(self) -> tuple[list[int], ...]:
        """Strides, window, dilations counted from 0, padding before and after."""
        where = self.where
        after = [
            max((o - 1) * s + k - n - before, 0)
            for o, s, k, n, (before, _) in zip(
                where.out, where.strides, where.window, where.size, where.pads, strict=True
            )
        ]
        before = [a for a, _ in where.pads]
        flat = [0] * len(after)
        return list(where.strides), list(where.window), flat, before, after

    def src(self) -> Desc:
        """The input."""
        return activations((self.batch, self.channels, *self.where.size), self.first, self.kind)

    def dst(self) -> Desc:
        """The output."""
        return activations((self.batch, self.channels, *self.where.out), self.first, self.kind)


def _forward(shape: PoolShape, prop: int, algorithm: int) -> Plan:
    return Plan(
        "pooling_forward", prop, algorithm, shape.src(), shape.dst(), *shape.geometry, None,
        count=shape.threads,
    )  # fmt: skip


def _both(shape: PoolShape, plan: Plan) -> Primitive:
    return Primitive(plan, [(Arg.SRC, shape.src()), (Arg.DST, shape.dst())])


def maximum(shape: PoolShape) -> Primitive | Parts:
    """Over (x, y)."""
    return _pooled(shape, Alg.POOL_MAX)


def average(shape: PoolShape) -> Primitive | Parts:
    """Over (x, y): means of the elements that are not padding."""
    return _pooled(shape, Alg.POOL_AVG_EXCLUDE_PADDING)


def _pooled(shape: PoolShape, algorithm: int) -> Primitive | Parts:
    def make(batch: int, threads: int | None) -> Primitive:
        part = shape.part(batch, threads)
        return _both(part, _forward(part, Prop.INFERENCE, algorithm))

    return over_batch(shape.batch, shape.work, make)


def _backward(shape: PoolShape, algorithm: int, hint: Plan) -> Plan:
    return Plan(
        "pooling_backward", algorithm, shape.src(), shape.dst(), *shape.geometry, hint, None,
        count=shape.threads,
    )  # fmt: skip


def average_gradient(shape: PoolShape) -> Primitive | Parts:
    """Over (dy, dx)."""

    def make(batch: int, threads: int | None) -> Primitive:
        part = shape.part(batch, threads)
        hint = _forward(part, Prop.TRAINING, Alg.POOL_AVG_EXCLUDE_PADDING)
        plan = _backward(part, Alg.POOL_AVG_EXCLUDE_PADDING, hint)
        return Primitive(plan, [(Arg.DIFF_DST, part.dst()), (Arg.DIFF_SRC, part.src())])

    return over_batch(shape.batch, shape.work, make)


def maximum_gradient(shape: PoolShape) -> tuple[Primitive | Parts, Primitive | Parts, int] | None:
    """(over (x, y, places), over (dy, places, dx), bytes of places).

    Which element of a window was the maximum is found again: TF's op does not hand it on.

    Returns:
        None where oneDNN has no code with masks of vectors: what it has for AVX2 takes two to five
        times as long as a loop, and what it has for SSE twenty to fifty times.
    """

    def again(batch: int, threads: int | None) -> Primitive:
        part = shape.part(batch, threads)
        hint = _forward(part, Prop.TRAINING, Alg.POOL_MAX)
        places = (Arg.WORKSPACE, hint.desc(Query.WORKSPACE))
        return Primitive(hint, [(Arg.SRC, part.src()), (Arg.DST, part.dst()), places])

    def back(batch: int, threads: int | None) -> Primitive:
        part = shape.part(batch, threads)
        hint = _forward(part, Prop.TRAINING, Alg.POOL_MAX)
        places = (Arg.WORKSPACE, hint.desc(Query.WORKSPACE))
        plan = _backward(part, Alg.POOL_MAX, hint)
        return Primitive(plan, [(Arg.DIFF_DST, part.dst()), places, (Arg.DIFF_SRC, part.src())])

    hint = _forward(shape, Prop.TRAINING, Alg.POOL_MAX)
    if _MASKED not in _backward(shape, Alg.POOL_MAX, hint).implementation:
        return None
    whole = hint.desc(Query.WORKSPACE)
    forward, backward = (over_batch(shape.batch, shape.work, make) for make in (again, back))
    return forward, backward, whole.size
