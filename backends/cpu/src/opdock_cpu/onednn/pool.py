"""Pooling primitives over plain activations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from opdock.plugin import windows
from opdock_cpu.onednn.declarations import Alg, Arg, Prop, Query
from opdock_cpu.onednn.memory import Desc, activations
from opdock_cpu.onednn.primitive import Plan, Primitive

__all__ = ["PoolShape", "average", "average_gradient", "maximum", "maximum_gradient"]

_SHARED_FROM: Final = 200_000


@dataclass(frozen=True)
class PoolShape:
    """A pooling's geometry in oneDNN's terms."""

    batch: int
    channels: int
    where: windows.Window
    first: bool
    kind: int

    @property
    def threads(self) -> int | None:
        """One thread for few elements, else None."""
        work = self.batch * self.channels
        for o, k in zip(self.where.out, self.where.window, strict=True):
            work *= o * k
        return 1 if work < _SHARED_FROM else None

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


def maximum(shape: PoolShape) -> Primitive:
    """Over (x, y)."""
    return _both(shape, _forward(shape, Prop.INFERENCE, Alg.POOL_MAX))


def average(shape: PoolShape) -> Primitive:
    """Over (x, y): means of the elements that are not padding."""
    return _both(shape, _forward(shape, Prop.INFERENCE, Alg.POOL_AVG_EXCLUDE_PADDING))


def _backward(shape: PoolShape, algorithm: int, hint: Plan) -> Plan:
    return Plan(
        "pooling_backward", algorithm, shape.src(), shape.dst(), *shape.geometry, hint, None,
        count=shape.threads,
    )  # fmt: skip


def average_gradient(shape: PoolShape) -> Primitive:
    """Over (dy, dx)."""
    hint = _forward(shape, Prop.TRAINING, Alg.POOL_AVG_EXCLUDE_PADDING)
    plan = _backward(shape, Alg.POOL_AVG_EXCLUDE_PADDING, hint)
    args = [(Arg.DIFF_DST, shape.dst()), (Arg.DIFF_SRC, shape.src())]
    return Primitive(plan, args)


def maximum_gradient(shape: PoolShape) -> tuple[Primitive, Primitive, int]:
    """(over (x, y, places), over (dy, places, dx), bytes of places).

    Which element of a window was the maximum is found again: TF's op does not hand it on.
    """
    hint = _forward(shape, Prop.TRAINING, Alg.POOL_MAX)
    places = hint.desc(Query.WORKSPACE)
    forward = Primitive(
        hint,
        [(Arg.SRC, shape.src()), (Arg.DST, shape.dst()), (Arg.WORKSPACE, places)],
    )
    backward = Primitive(
        _backward(shape, Alg.POOL_MAX, hint),
        [(Arg.DIFF_DST, shape.dst()), (Arg.WORKSPACE, places), (Arg.DIFF_SRC, shape.src())],
    )
    return forward, backward, places.size
