"""Random tensors whose generator's state is a variable: `tf.random.experimental.Generator`'s ops.

The state is a Philox counter of two int64 and a key; every draw leaves it behind what it took.
"""

from __future__ import annotations

from typing import Final

from opdock import shapes
from opdock.ops.registry import OpSpec, ShapeSig, define_op
from opdock.ops.support.common_shapes import no_outputs
from opdock.shapes import Shape

__all__: list[str] = []

PHILOX: Final = 1
"""The algorithm's number; TF knows a second one, for which it has no kernel either."""


def _stateful(name: str, default: str) -> OpSpec:
    return define_op(
        name, "resource: resource, algorithm: int64, shape: shape_dtype -> output: dtype",
        f"dtype: type = {default}, shape_dtype: type = DT_INT64", stateful=True,
    ).not_differentiable()  # fmt: skip


stateful_uniform_op = _stateful("StatefulUniform", "DT_FLOAT")
stateful_normal_op = _stateful("StatefulStandardNormalV2", "DT_FLOAT")
stateful_truncated_normal_op = _stateful("StatefulTruncatedNormal", "DT_FLOAT")
stateful_full_int_op = _stateful("StatefulUniformFullInt", "DT_UINT64")
stateful_uniform_int_op = define_op(
    "StatefulUniformInt",
    "resource: resource, algorithm: int64, shape: shape_dtype, minval: dtype, maxval: dtype "
    "-> output: dtype",
    "dtype: type = DT_INT64, shape_dtype: type = DT_INT64", stateful=True,
).not_differentiable()  # fmt: skip
stateful_binomial_op = define_op(
    "StatefulRandomBinomial",
    "resource: resource, algorithm: int64, shape: S, counts: T, probs: T -> output: dtype",
    "S: {int32, int64}, T: {half, float, double, int32, int64} = DT_DOUBLE, "
    "dtype: {half, float, double, int32, int64} = DT_INT64", stateful=True,
).not_differentiable()  # fmt: skip
rng_skip_op = define_op(
    "RngSkip", "resource: resource, algorithm: int64, delta: int64 ->", stateful=True
).not_differentiable()
non_deterministic_ints_op = define_op(
    "NonDeterministicInts", "shape: shape_dtype -> output: dtype",
    "dtype: type = DT_INT64, shape_dtype: type = DT_INT64", stateful=True,
).not_differentiable()  # fmt: skip


@stateful_uniform_op.shape
@stateful_normal_op.shape
@stateful_truncated_normal_op.shape
@stateful_full_int_op.shape
@stateful_uniform_int_op.shape
def _drawn_shape(sig: ShapeSig) -> Shape:
    shapes.with_rank(sig.shapes[1], 0)
    shapes.with_rank(sig.shapes[2], 1)
    for bound in sig.shapes[3:]:
        shapes.with_rank(bound, 0)
    return sig.const_shape(2)


@stateful_binomial_op.shape
def _binomial_shape(sig: ShapeSig) -> Shape:
    shapes.with_rank(sig.shapes[1], 0)
    shapes.with_rank_at_most(sig.shapes[3], 1)
    shapes.with_rank_at_most(sig.shapes[4], 1)
    return sig.const_shape(2)


@rng_skip_op.shape
def _skip_shape(sig: ShapeSig) -> list[Shape]:
    shapes.with_rank(sig.shapes[1], 0)
    shapes.with_rank(sig.shapes[2], 0)
    return no_outputs(sig)


@non_deterministic_ints_op.shape
def _chance_shape(sig: ShapeSig) -> Shape:
    shapes.with_rank(sig.shapes[0], 1)
    return sig.const_shape(0)
