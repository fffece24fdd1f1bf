"""Batch and local response normalization primitives."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from opdock_cpu.onednn.declarations import Alg, Arg, Flag, Prop
from opdock_cpu.onednn.memory import activations, dense
from opdock_cpu.onednn.primitive import Plan, Primitive

__all__ = ["batch_norm", "batch_norm_gradient", "lrn"]

_SHARED_FROM: Final = 30_000


def _threads(dims: Sequence[int]) -> int | None:
    return 1 if math.prod(dims) < _SHARED_FROM else None


def _batch_norm_plan(
    dims: Sequence[int], first: bool, epsilon: float, training: bool, relu: bool
) -> Plan:
    data = activations(dims, first)
    flags = Flag.SCALE | Flag.SHIFT | (0 if training else Flag.GLOBAL_STATS)
    # Only the inference form has the activation without a workspace.
    prop = Prop.TRAINING if training else Prop.INFERENCE
    return Plan(
        "batch_normalization_forward", prop, data, data, epsilon,
        flags | (Flag.RELU if relu else 0), None,
    )  # fmt: skip


def batch_norm(
    dims: Sequence[int], first: bool, epsilon: float, training: bool, relu: bool = False
) -> Primitive:
    """Over (x, scale, shift, mean, variance, y); the statistics are results when training."""
    data, vector = activations(dims, first), dense((dims[1],))
    plan = _batch_norm_plan(dims, first, epsilon, training, relu)
    args = [
        (Arg.SRC, data), (Arg.SCALE, vector), (Arg.SHIFT, vector), (Arg.MEAN, vector),
        (Arg.VARIANCE, vector), (Arg.DST, data),
    ]  # fmt: skip
    return Primitive(plan, args, _threads(dims))


def batch_norm_gradient(
    dims: Sequence[int], first: bool, epsilon: float, training: bool
) -> Primitive:
    """Over (dy, x, scale, mean, variance, dx, dscale, dshift)."""
    data, vector = activations(dims, first), dense((dims[1],))
    flags = Flag.SCALE | Flag.SHIFT | (0 if training else Flag.GLOBAL_STATS)
    hint = Plan("batch_normalization_forward", Prop.TRAINING, data, data, epsilon, flags, None)
    plan = Plan(
        "batch_normalization_backward", Prop.BACKWARD, data, data, data, epsilon, flags, hint, None
    )
    args = [
        (Arg.DIFF_DST, data), (Arg.SRC, data), (Arg.SCALE, vector), (Arg.MEAN, vector),
        (Arg.VARIANCE, vector), (Arg.DIFF_SRC, data), (Arg.DIFF_SCALE, vector),
        (Arg.DIFF_SHIFT, vector),
    ]  # fmt: skip
    return Primitive(plan, args, _threads(dims))


def lrn(dims: Sequence[int], size: int, alpha: float, beta: float, k: float) -> Primitive:
    """Over (x, y), channels last: x times (k + alpha/size * sum of squares) to the -beta."""
    data = activations(dims, False)
    plan = Plan(
        "lrn_forward", Prop.INFERENCE, Alg.LRN_ACROSS, data, data, size, alpha, beta, k, None
    )
    return Primitive(plan, [(Arg.SRC, data), (Arg.DST, data)], _threads(dims))
