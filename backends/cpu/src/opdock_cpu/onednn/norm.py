"""Batch and local response normalization primitives."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from opdock.plugin import errors
from opdock_cpu.onednn.declarations import Alg, Arg, Flag, Prop, Query
from opdock_cpu.onednn.memory import activations, aligned, dense
from opdock_cpu.onednn.parts import Parts, over_batch
from opdock_cpu.onednn.primitive import Plan, Primitive

__all__ = ["batch_norm", "batch_norm_gradient", "has_lrn_gradient", "lrn", "lrn_gradient"]

_SHARED_FROM: Final = 30_000
_ELEMENT: Final = 50
"""An element takes as long as so many multiply-adds of a product."""


_SCALED: Final = 10
"""The same where the statistics of a batch norm are given."""
_ALONE: Final = 1
"""Threads of a batch norm that gathers sums: oneDNN's would meet several times a call, at barriers
that spin, where one that the system does not run has the others burn their time slices. And the
sums, so every bit, would depend on how many there are."""


def _threads(dims: Sequence[int]) -> int | None:
    return 1 if math.prod(dims) < _SHARED_FROM else None


def batch_norm(
    dims: Sequence[int], first: bool, epsilon: float, training: bool, relu: bool = False
) -> Primitive | Parts:
    """Over (x, scale, shift, mean, variance, y); the statistics are results when training."""
    flags = Flag.SCALE | Flag.SHIFT | (0 if training else Flag.GLOBAL_STATS)
    flags |= Flag.RELU if relu else 0
    # Only the inference form has the activation without a workspace.
    prop = Prop.TRAINING if training else Prop.INFERENCE
    vector = dense((dims[1],))

    def make(batch: int, threads: int | None) -> Primitive:
        data = activations((batch, *dims[1:]), first)
        plan = Plan(
            "batch_normalization_forward", prop, data, data, epsilon, flags, None, count=threads
        )
        args = [
            (Arg.SRC, data), (Arg.SCALE, vector), (Arg.SHIFT, vector), (Arg.MEAN, vector),
            (Arg.VARIANCE, vector), (Arg.DST, data),
        ]  # fmt: skip
        return Primitive(plan, args)

    if training:
        return make(dims[0], _ALONE)
    return over_batch(dims[0], math.prod(dims) * _SCALED, make, batches=(0, 5))


def batch_norm_gradient(
    dims: Sequence[int], first: bool, epsilon: float, training: bool
) -> Primitive:
    """Over (dy, x, scale, mean, variance, dx, dscale, dshift)."""
    data, vector = activations(dims, first), dense((dims[1],))
    flags = Flag.SCALE | Flag.SHIFT | (0 if training else Flag.GLOBAL_STATS)
    hint = Plan(
        "batch_normalization_forward", Prop.TRAINING, data, data, epsilon, flags, None,
        count=_ALONE,
    )  # fmt: skip
    plan = Plan(
        "batch_normalization_backward", Prop.BACKWARD, data, data, data, epsilon, flags, hint,
        None, count=_ALONE,  # the gradients of scale and shift are sums
    )  # fmt: skip
    args = [
        (Arg.DIFF_DST, data), (Arg.SRC, data), (Arg.SCALE, vector), (Arg.MEAN, vector),
        (Arg.VARIANCE, vector), (Arg.DIFF_SRC, data), (Arg.DIFF_SCALE, vector),
        (Arg.DIFF_SHIFT, vector),
    ]  # fmt: skip
    return Primitive(plan, args)


def lrn(dims: Sequence[int], size: int, alpha: float, beta: float, k: float) -> Primitive | Parts:
    """Over (x, y), channels last: x times (k + alpha/size * sum of squares) to the -beta."""

    def make(batch: int, threads: int | None) -> Primitive:
        data = activations((batch, *dims[1:]), False)
        plan = Plan(
            "lrn_forward", Prop.INFERENCE, Alg.LRN_ACROSS, data, data, size, alpha, beta, k, None,
            count=threads,
        )  # fmt: skip
        return Primitive(plan, [(Arg.SRC, data), (Arg.DST, data)])

    return over_batch(dims[0], math.prod(dims) * _ELEMENT, make)


def _lrn_plans(dims: Sequence[int], *parameters: Any) -> tuple[Plan, Plan]:
    """The forward pass that takes notes, and the gradient that reads them."""
    data = activations(dims, False)
    form, count = (Alg.LRN_ACROSS, data, data), _threads(dims)
    forward = Plan("lrn_forward", Prop.TRAINING, *form, *parameters, None, count=count)
    back = Plan("lrn_backward", *form, data, *parameters, forward, None, count=count)
    return forward, back


@functools.lru_cache(256)
def has_lrn_gradient(dims: tuple[int, ...], size: int, alpha: float, beta: float, k: float) -> bool:
    """Whether there is a fast implementation for these sizes, and a right one.

    oneDNN 3.2 crashes for a window of one, and reads past the last channels where these do not
    fill its vectors: for wide windows always, else where few elements follow.
    """
    if size == 1 or dims[1] % 16:
        return False
    try:
        return "ref" not in _lrn_plans(dims, size, alpha, beta, k)[1].implementation
    except errors.UnimplementedError:
        return False


def lrn_gradient(
    dims: Sequence[int], size: int, alpha: float, beta: float, k: float
) -> Callable[[Any, Any, Any], None]:
    """Over (x, dy, dx), channels last.

    The gradient reads what the forward pass noted of its sums, so that pass runs again first: the
    two take a tenth of the time that the plain formula takes.
    """
    data = activations(dims, False)
    plan, gradient = _lrn_plans(dims, size, alpha, beta, k)
    notes = plan.desc(Query.WORKSPACE)
    workspace = [(Arg.WORKSPACE, notes)] if notes.size else []
    again = Primitive(plan, [(Arg.SRC, data), (Arg.DST, data), *workspace]).run
    back = Primitive(
        gradient,
        [(Arg.SRC, data), (Arg.DIFF_DST, data), (Arg.DIFF_SRC, data), *workspace],
    ).run

    def run(x: Any, dy: Any, dx: Any) -> None:
        noted = [aligned(notes.size)] if workspace else []
        again(x, np.empty_like(x), *noted)
        back(x, dy, dx, *noted)

    return run
