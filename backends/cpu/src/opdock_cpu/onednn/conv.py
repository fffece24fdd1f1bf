"""Convolution primitives: forward, by the data and by the weights.

Activations are plain, channels last or first as the node says. Weights come as TF has them,
[*window, inputs, outputs], and are laid out as the primitive wants them: once, when they are known
to stay, else in every call.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from opdock.plugin import windows
from opdock_cpu.onednn.declarations import Alg, Arg, Prop, Query
from opdock_cpu.onednn.memory import Desc, activations, any_layout, dense, strided
from opdock_cpu.onednn.packing import Call
from opdock_cpu.onednn.primitive import Attributes, Plan, Primitive

__all__ = ["ConvShape", "backward_data", "backward_weights", "forward"]
_SHARED_FROM = 1_500_000


@dataclass(frozen=True)
class ConvShape:
    """A convolution's geometry in oneDNN's terms.

    Attributes:
        batch, channels, outputs, groups: sizes.
        where: the window over the spatial dimensions.
        first: whether channels are stored before the spatial dimensions.
        kind: the element type.
    """

    batch: int
    channels: int
    outputs: int
    groups: int
    where: windows.Window
    first: bool
    kind: int

    @property
    def macs(self) -> int:
        """Multiply-adds of one pass."""
        taps = math.prod(self.where.window) * self.channels // self.groups
        return self.batch * math.prod(self.where.out) * self.outputs * taps

    @property
    def geometry(self) -> tuple[list[int], list[int], list[int], list[int]]:
        """Strides, dilations counted from 0, and the padding before and after."""
        where = self.where
        return (
            list(where.strides), [d - 1 for d in where.dilations],
            [before for before, _ in where.pads], self._after(),
        )  # fmt: skip

    def _after(self) -> list[int]:
        # The padding at which the window fits exactly: oneDNN rejects input that is never seen
        # unless the padding after is negative by as much.
        return [
            (o - 1) * s + (k - 1) * d + 1 - n - before
            for o, s, k, d, n, (before, _) in zip(
                self.where.out, self.where.strides, self.where.window, self.where.dilations,
                self.where.size, self.where.pads, strict=True,
            )
        ]  # fmt: skip

    def src(self) -> Desc:
        """The input."""
        return activations((self.batch, self.channels, *self.where.size), self.first, self.kind)

    def dst(self, kind: int = 0) -> Desc:
        """The output, of another element type if one is given."""
        dims = (self.batch, self.outputs, *self.where.out)
        return activations(dims, self.first, kind or self.kind)

    def src_wanted(self) -> Desc:
        """The input as a primitive should take it.

        Channels last serves all of oneDNN's fast implementations as it is. Channels first does
        not: there the primitive chooses, and copying to and fro costs less than what it gains.
        """
        if self.first:
            return any_layout((self.batch, self.channels, *self.where.size), self.kind)
        return self.src()

    def dst_wanted(self) -> Desc:
        """The output as a primitive should give it; see `src_wanted`."""
        if self.first:
            return any_layout((self.batch, self.outputs, *self.where.out), self.kind)
        return self.dst()

    @property
    def threads(self) -> int | None:
        """One thread for little work, else None."""
        return 1 if self.macs < _SHARED_FROM else None

    @property
    def weight_dims(self) -> tuple[int, ...]:
        """([groups,] outputs, inputs, *window)."""
        inner, share = self.channels // self.groups, self.outputs // self.groups
        lead = (self.groups,) if self.groups > 1 else ()
        return (*lead, share, inner, *self.where.window)

    def weights(self, kind: int = 0) -> Desc:
        """The weights in TF's layout, of another element type if one is given."""
        window, inner = self.where.window, self.channels // self.groups
        space = [math.prod(window[i + 1 :]) * inner * self.outputs for i in range(len(window))]
        lead = (self.outputs // self.groups,) if self.groups > 1 else ()
        return strided(self.weight_dims, (*lead, 1, self.outputs, *space), kind or self.kind)

    def depthwise_weights(self) -> Desc:
        """The weights of a depthwise convolution, [*window, channels, multiplier]."""
        window, share = self.where.window, self.outputs // self.groups
        space = [math.prod(window[i + 1 :]) * self.outputs for i in range(len(window))]
        lead = (share,) if self.groups > 1 else ()
        return strided(self.weight_dims, (*lead, 1, 1, *space), self.kind)


def forward(
    shape: ConvShape, weights: Desc, bias: bool = False,
    post_ops: Sequence[tuple[Any, ...]] = (), extra: Sequence[tuple[int, Desc]] = (),
) -> Call:  # fmt: skip
    """Over (x, weights[, bias], y, *extra)."""
    vector = dense((shape.outputs,)) if bias else None
    plan = Plan(
        "convolution_forward", Prop.INFERENCE, Alg.CONV_DIRECT, shape.src_wanted(),
        any_layout(shape.weight_dims, shape.kind), vector, shape.dst_wanted(), *shape.geometry,
        Attributes(post_ops) if post_ops else None, count=shape.threads,
    )  # fmt: skip
    args = [(Arg.SRC, plan.desc(Query.SRC)), (Arg.WEIGHTS, plan.desc(Query.WEIGHTS))]
    plain = [shape.src(), weights]
    if vector is not None:
        args.append((Arg.BIAS, vector))
        plain.append(vector)
    args += [(Arg.DST, plan.desc(Query.DST)), *extra]
    plain += [shape.dst(), *(d for _, d in extra)]
    return Call(Primitive(plan, args), plain, [3 if bias else 2])


def _hint(shape: ConvShape) -> Plan:
    """Backward primitives are described beside the forward one."""
    return Plan(
        "convolution_forward", Prop.TRAINING, Alg.CONV_DIRECT, shape.src_wanted(),
        any_layout(shape.weight_dims, shape.kind), None, shape.dst_wanted(), *shape.geometry,
        None, count=shape.threads,
    )  # fmt: skip


def backward_data(shape: ConvShape, weights: Desc) -> Call:
    """Over (dy, weights, dx)."""
    plan = Plan(
        "convolution_backward_data", Alg.CONV_DIRECT, shape.src_wanted(),
        any_layout(shape.weight_dims, shape.kind), shape.dst_wanted(), *shape.geometry,
        _hint(shape), None, count=shape.threads,
    )  # fmt: skip
    args = [
        (Arg.DIFF_DST, plan.desc(Query.DIFF_DST)), (Arg.WEIGHTS, plan.desc(Query.WEIGHTS)),
        (Arg.DIFF_SRC, plan.desc(Query.DIFF_SRC)),
    ]  # fmt: skip
    plain = [shape.dst(), weights, shape.src()]
    return Call(Primitive(plan, args), plain, [2])


def backward_weights(shape: ConvShape, weights: Desc, bias: bool = False) -> Call:
    """Over (x, dy, dw[, db])."""
    vector = dense((shape.outputs,)) if bias else None
    plan = Plan(
        "convolution_backward_weights", Alg.CONV_DIRECT, shape.src_wanted(),
        any_layout(shape.weight_dims, shape.kind), vector, shape.dst_wanted(), *shape.geometry,
        _hint(shape), None, count=shape.threads,
    )  # fmt: skip
    args = [
        (Arg.SRC, plan.desc(Query.SRC)), (Arg.DIFF_DST, plan.desc(Query.DIFF_DST)),
        (Arg.DIFF_WEIGHTS, plan.desc(Query.DIFF_WEIGHTS)),
    ]  # fmt: skip
    plain = [shape.src(), shape.dst(), weights]
    if vector is not None:
        args.append((Arg.DIFF_BIAS, vector))
        plain.append(vector)
    return Call(Primitive(plan, args), plain, [2, 3])
