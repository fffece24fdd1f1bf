"""Convolution primitives: forward, by the data and by the weights.

Activations are plain, channels last or first as the node says. Weights come as TF has them,
[*window, inputs, outputs], and are laid out as the primitive wants them: once, when they are known
to stay, else in every call.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from opdock.plugin import windows
from opdock_cpu.onednn.declarations import Alg, Arg, Prop, Query, Type
from opdock_cpu.onednn.memory import Desc, activations, any_layout, dense, strided
from opdock_cpu.onednn.packing import Call
from opdock_cpu.onednn.parts import LEAST, OPENMP_FROM, Part, Parts, divides, evenly
from opdock_cpu.onednn.primitive import Attributes, Plan, Primitive

__all__ = ["ConvShape", "backward_data", "backward_weights", "forward"]
_PER_SUMMAND = 2_000
"""What sums over the batch count for: a part for each 1,000 multiply-adds of a weight."""
_HALVED: Final = range(OPENMP_FROM, 5 * OPENMP_FROM)
"""Multiply-adds of such sums that are divided once at least, from so many of a weight on: oneDNN's
threads add up theirs behind a barrier that spins until the system has run the last of them."""
_HALVED_FROM: Final = 750


@dataclass(frozen=True)
class ConvShape:
    """A convolution's geometry in oneDNN's terms.

    Attributes:
        batch, channels, outputs, groups: sizes.
        where: the window over the spatial dimensions.
        first: whether channels are stored before the spatial dimensions.
        kind: the element type.
        parted: whether it is a part of another one, for one thread.
    """

    batch: int
    channels: int
    outputs: int
    groups: int
    where: windows.Window
    first: bool
    kind: int
    parted: bool = False

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

    def dst_wanted(self, kind: int = 0) -> Desc:
        """The output as a primitive should give it; see `src_wanted`."""
        if self.first:
            return any_layout((self.batch, self.outputs, *self.where.out), kind or self.kind)
        return self.dst(kind)

    @property
    def threads(self) -> int | None:
        """One thread for little work, else None."""
        return 1 if self.parted or self.macs < OPENMP_FROM else None

    def parts(self, sums: bool) -> list[ConvShape]:
        """The same for parts of the batch; itself where that is not divided.

        Args:
            sums: whether each part makes summands of the result, as large as the weights. Then
                parts are fewer, and none where adding up would take a good part of the time.
        """
        if self.parted or self.first:
            return [self]
        work = self.macs
        if sums:
            if self.kind != Type.F32:
                return [self]
            of_each = self.macs // math.prod(self.weight_dims)
            work = min(work, of_each * _PER_SUMMAND)
            if self.macs in _HALVED and of_each >= _HALVED_FROM:
                work = max(work, 2 * LEAST)
        sizes = evenly(self.batch, work)
        if len(sizes) == 1 or divides():
            return [self]
        return [replace(self, batch=n, parted=True) for n in sizes]

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


def _divided(
    shape: ConvShape, make: Callable[[ConvShape], Primitive],
    plain: Callable[[ConvShape], list[Desc]], outputs: Sequence[int], sums: bool = False,
) -> Call:  # fmt: skip
    """The call of a primitive, in parts of the batch where it can be divided.

    Args:
        shape: of the whole.
        make: the primitive for a shape.
        plain: the caller's layout of each argument for a shape.
        outputs: which of the arguments are written.
        sums: whether those are sums over the batch.
    """
    shapes = shape.parts(sums)
    if len(shapes) == 1:
        return Call(make(shape), plain(shape), outputs)
    made, laid = {s.batch: make(s) for s in shapes}, {s.batch: plain(s) for s in shapes}
    first, ours = made[shapes[0].batch], laid[shapes[0].batch]
    whole = enumerate(zip(ours, plain(shape), strict=True))
    images = {i: a.size // a.dims[0] for i, (a, b) in whole if a.dims != b.dims}
    if not all(_alike(first, made[n], laid[n], images) for n in made):
        return Call(make(shape), plain(shape), outputs)
    starts = itertools.accumulate((s.batch for s in shapes), initial=0)
    parts = [
        Part(made[s.batch], tuple(images.get(i, 0) * start for i in range(len(ours))))
        for s, start in zip(shapes, starts, strict=False)
    ]
    summed = {i: first.args[i][1].size for i in outputs} if sums else None
    return Call(Parts(parts, summed), ours, outputs)


def _alike(
    first: Primitive, other: Primitive, plain: Sequence[Desc], images: Container[int]
) -> bool:
    """Whether a part takes images as they are, and all else in the layouts of the first part."""
    return all(
        desc.same(plain[i] if i in images else first.args[i][1])
        for i, (_, desc) in enumerate(other.args)
    )


def forward(
    shape: ConvShape, weights: Desc, bias: bool = False,
    post_ops: Sequence[tuple[Any, ...]] = (), extra: Sequence[tuple[int, Desc]] = (),
    sums: int = 0,
) -> Call:  # fmt: skip
    """Over (x, weights[, bias], y, *extra).

    With `sums` the result is of that element type, and the weights are of theirs.
    """
    vector = [dense((shape.outputs,))] * bias
    result = shape.dst(sums)

    def part(value: Any, shape: ConvShape) -> Any:
        return shape.dst(sums) if isinstance(value, Desc) and value.same(result) else value

    def plain(shape: ConvShape) -> list[Desc]:
        more = [part(desc, shape) for _, desc in extra]
        return [shape.src(), weights, *vector, shape.dst(sums), *more]

    def make(shape: ConvShape) -> Primitive:
        chain = [tuple(part(value, shape) for value in op) for op in post_ops]
        plan = Plan(
            "convolution_forward", Prop.INFERENCE, Alg.CONV_DIRECT, shape.src_wanted(),
            any_layout(shape.weight_dims, weights.kind if sums else shape.kind),
            vector[0] if bias else None, shape.dst_wanted(sums), *shape.geometry,
            Attributes(chain) if chain else None, count=shape.threads,
        )  # fmt: skip
        args = [(Arg.SRC, plan.desc(Query.SRC)), (Arg.WEIGHTS, plan.desc(Query.WEIGHTS))]
        args += [(Arg.BIAS, v) for v in vector]
        args.append((Arg.DST, plan.desc(Query.DST)))
        return Primitive(plan, [*args, *((role, part(desc, shape)) for role, desc in extra)])

    return _divided(shape, make, plain, [3 if bias else 2])


def _hint(shape: ConvShape) -> Plan:
    """Backward primitives are described beside the forward one."""
    return Plan(
        "convolution_forward", Prop.TRAINING, Alg.CONV_DIRECT, shape.src_wanted(),
        any_layout(shape.weight_dims, shape.kind), None, shape.dst_wanted(), *shape.geometry,
        None, count=shape.threads,
    )  # fmt: skip


def backward_data(shape: ConvShape, weights: Desc) -> Call:
    """Over (dy, weights, dx)."""

    def make(shape: ConvShape) -> Primitive:
        plan = Plan(
            "convolution_backward_data", Alg.CONV_DIRECT, shape.src_wanted(),
            any_layout(shape.weight_dims, shape.kind), shape.dst_wanted(), *shape.geometry,
            _hint(shape), None, count=shape.threads,
        )  # fmt: skip
        args = [
            (Arg.DIFF_DST, plan.desc(Query.DIFF_DST)), (Arg.WEIGHTS, plan.desc(Query.WEIGHTS)),
            (Arg.DIFF_SRC, plan.desc(Query.DIFF_SRC)),
        ]  # fmt: skip
        return Primitive(plan, args)

    return _divided(shape, make, lambda s: [s.dst(), weights, s.src()], [2])


def backward_weights(shape: ConvShape, weights: Desc, bias: bool = False) -> Call:
    """Over (x, dy, dw[, db])."""
    vector = [dense((shape.outputs,))] * bias

    def make(shape: ConvShape) -> Primitive:
        plan = Plan(
            "convolution_backward_weights", Alg.CONV_DIRECT, shape.src_wanted(),
            any_layout(shape.weight_dims, shape.kind), vector[0] if bias else None,
            shape.dst_wanted(), *shape.geometry, _hint(shape), None, count=shape.threads,
        )  # fmt: skip
        args = [
            (Arg.SRC, plan.desc(Query.SRC)), (Arg.DIFF_DST, plan.desc(Query.DIFF_DST)),
            (Arg.DIFF_WEIGHTS, plan.desc(Query.DIFF_WEIGHTS)),
        ]  # fmt: skip
        return Primitive(plan, [*args, *((Arg.DIFF_BIAS, v) for v in vector)])

    def plain(shape: ConvShape) -> list[Desc]:
        return [shape.src(), shape.dst(), weights, *vector]

    return _divided(shape, make, plain, [2, 3] if bias else [2], sums=True)
