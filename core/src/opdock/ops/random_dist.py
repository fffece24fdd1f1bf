"""Samples of given distributions: categorical, gamma, Poisson and truncated normal."""

from __future__ import annotations

from typing import Any

import numpy as np

from opdock import dtypes, shapes
from opdock.docstrings import explained
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import control_dependencies, name_scope
from opdock.graph.nodes.seeds import get_seed
from opdock.ops.random import shape_tensor
from opdock.ops.registry import ShapeSig, Traits, define_op
from opdock.ops.support import array_util
from opdock.shapes import Shape

__all__ = ["multinomial", "random_gamma", "random_poisson"]

_SEEDS = "seed: int = 0, seed2: int = 0, "
_S = "S: {int32, int64}, "


# ---------------------------------------------------------------- ops
multinomial_op = define_op(
    "Multinomial", "logits: T, num_samples: int32 -> output: output_dtype",
    _SEEDS + "T: realnumbertype, output_dtype: {int32, int64} = DT_INT64", stateful=True,
).not_differentiable()  # fmt: skip
random_gamma_op = define_op(
    "RandomGamma", "shape: S, alpha: T -> output: T",
    _SEEDS + _S + "T: {half, float, double}", stateful=True,
)  # fmt: skip
random_gamma_grad_op = define_op(
    "RandomGammaGrad", "alpha: T, sample: T -> output: T", "T: {float, double}"
)
random_poisson_op = define_op(
    "RandomPoissonV2", "shape: S, rate: R -> output: dtype",
    _SEEDS + _S + "R: {half, float, double, int32, int64} = DT_DOUBLE, "
    "dtype: {half, float, double, int32, int64} = DT_INT64", stateful=True,
)  # fmt: skip
parameterized_truncated_normal_op = define_op(
    "ParameterizedTruncatedNormal",
    "shape: T, means: dtype, stdevs: dtype, minvals: dtype, maxvals: dtype -> output: dtype",
    _SEEDS + "dtype: {half, bfloat16, float, double}, T: {int32, int64}", stateful=True,
).not_differentiable()  # fmt: skip
for _op in (
    multinomial_op, random_gamma_op, random_poisson_op, parameterized_truncated_normal_op,
):  # fmt: skip
    _op.declare(Traits(random=True))
array_util.no_gradient(random_gamma_grad_op)
array_util.no_gradient(random_poisson_op)


@multinomial_op.shape
def categorical_shape(sig: ShapeSig) -> Shape:
    """One row of samples per row of logits."""
    rows = shapes.with_rank(sig.shapes[0], 2)[0]
    count = array_util.const_int(sig, 1)
    if count is not None and count < 0:
        raise ValueError(
            f"Dimension size, given by scalar input 1, must be non-negative but is {count}"
        )
    return (rows, count)


@random_gamma_op.shape
@random_poisson_op.shape
def _per_parameter_shape(sig: ShapeSig) -> Shape:
    shapes.with_rank(sig.shapes[0], 1)
    outer, inner = sig.const_shape(0), sig.shapes[1]
    return None if outer is None or inner is None else outer + inner


@parameterized_truncated_normal_op.shape
def _truncated_normal_shape(sig: ShapeSig) -> Shape:
    shapes.with_rank(sig.shapes[0], 1)
    for parameter in sig.shapes[1:]:
        shapes.with_rank_at_most(parameter, 1)
    return sig.const_shape(0)


@random_gamma_grad_op.shape
def _gamma_grad_shape(sig: ShapeSig) -> Shape:
    return shapes.broadcast(sig.shapes[0], sig.shapes[1])


@random_gamma_op.gradient
def _random_gamma_gradient(op: Operation, grad: Tensor) -> list[Tensor | None]:
    from opdock.ops.array import reshape
    from opdock.ops.array import shape as shape_of
    from opdock.ops.fill import ones, range
    from opdock.ops.joining import concat
    from opdock.ops.reduce import reduce_sum

    with control_dependencies([grad]):
        counts: Any = shape_of(op.inputs[0])
        leading = counts[0]
        alpha = op.inputs[1]
        # A unit dimension per sample dimension lets alpha broadcast against the samples.
        wide = reshape(alpha, concat([ones([leading], dtypes.int32), shape_of(alpha)], 0))
        partial = random_gamma_grad_op(wide, op.outputs[0])
        return [None, reduce_sum(grad * partial, axis=range(leading))]


# ---------------------------------------------------------------- public functions
_WORDS = {
    "logits": "2-D tensor ``[batch_size, num_classes]`` of unnormalized log-probabilities.",
    "num_samples": "scalar int32: how many independent samples per row.",
    "seed": "op seed; see `tf.set_random_seed`.",
    "name": "a name for the operation.",
    "returns": "A tensor ``[batch_size, num_samples]`` of class indices.",
}
"""What the functions here take."""


@extensible
@explained(_WORDS, output_dtype="int32 or int64 (the default).")
def multinomial(
    logits: Any,
    num_samples: Any,
    seed: int | None = None,
    name: str | None = None,
    output_dtype: Any = None,
) -> Tensor:
    """Samples of categorical distributions."""
    with name_scope(name, "multinomial", [logits]):
        return _categorical(logits, num_samples, output_dtype, seed)


@extensible
@explained(_WORDS, dtype="int32 or int64 (the default).")
def categorical(
    logits: Any,
    num_samples: Any,
    dtype: Any = None,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Samples of categorical distributions (`tf.random.categorical`)."""
    with name_scope(name, "categorical", [logits]):
        return _categorical(logits, num_samples, dtype, seed)


def _categorical(logits: Any, num_samples: Any, dtype: Any, seed: int | None) -> Tensor:
    logits = convert_to_tensor(logits, name="logits")
    seed1, seed2 = get_seed(seed)
    out: Tensor = multinomial_op(
        logits, num_samples, seed=seed1, seed2=seed2, output_dtype=dtype or dtypes.int64
    )
    return out


@extensible
@explained(
    _WORDS,
    shape="1-D integer tensor: how many samples per pair of parameters.",
    alpha="tensor of type `dtype`: the shape parameters.",
    beta="tensor of type `dtype` that broadcasts with `alpha`: the inverse scales; 1 by default.",
    dtype="float16, float32 or float64.",
    returns="A tensor of shape ``shape + broadcast(alpha, beta)``.",
)
def random_gamma(
    shape: Any,
    alpha: Any,
    beta: Any = None,
    dtype: Any = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Samples of gamma distributions; the gradient flows to `alpha` and `beta`."""
    from opdock.ops.composed.math import maximum
    from opdock.ops.fill import zeros_like

    dtype = dtypes.as_dtype(dtype)
    with name_scope(name, "random_gamma", [shape, alpha, beta]):
        shape = convert_to_tensor(shape, dtypes.int32, "shape")
        alpha = convert_to_tensor(alpha, dtype, "alpha")
        beta = convert_to_tensor(1 if beta is None else beta, dtype, "beta")
        alpha = alpha + zeros_like(beta)
        seed1, seed2 = get_seed(seed)
        drawn = random_gamma_op(shape, alpha, seed=seed1, seed2=seed2)
        # Small shape parameters underflow; a sample of exactly zero would break its logarithm.
        tiny = np.finfo(dtype.as_numpy_dtype).tiny
        return maximum(tiny, drawn / beta)


@extensible
@explained(
    _WORDS,
    lam="tensor of rates.",
    shape="1-D integer tensor: how many samples per rate.",
    dtype="float16, float32, float64, int32 or int64.",
    returns="A tensor of shape ``shape + lam.shape`` and type `dtype`.",
)
def random_poisson(
    lam: Any,
    shape: Any,
    dtype: Any = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Samples of Poisson distributions."""
    with name_scope(name, "random_poisson", [lam, shape]):
        shape = convert_to_tensor(shape, dtypes.int32, "shape")
        seed1, seed2 = get_seed(seed)
        out: Tensor = random_poisson_op(shape, lam, dtype=dtype, seed=seed1, seed2=seed2)
        return out


@explained(
    _WORDS,
    shape="1-D integer tensor: the shape of the output, with a batch to each of its first indices.",
    means="scalar, or vector of `shape[0]` elements: the means before the cut.",
    stddevs="the same: the standard deviations before the cut.",
    minvals="the same: the lower bounds.",
    maxvals="the same: the upper bounds.",
    dtype="float16, bfloat16, float32 or float64.",
    returns="A tensor of type `dtype` and the given shape.",
)
def parameterized_truncated_normal(
    shape: Any,
    means: Any = 0.0,
    stddevs: Any = 1.0,
    minvals: Any = -2.0,
    maxvals: Any = 2.0,
    dtype: Any = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Normal values between bounds; `tensorflow.python` alone has the name."""
    parameters = {"means": means, "stddevs": stddevs, "minvals": minvals, "maxvals": maxvals}
    with name_scope(name, "parameterized_truncated_normal", [shape, *parameters.values()]) as scope:
        given = [convert_to_tensor(v, dtype, n) for n, v in parameters.items()]
        seed1, seed2 = get_seed(seed)
        out: Tensor = parameterized_truncated_normal_op(
            shape_tensor(shape), *given, seed=seed1, seed2=seed2, name=scope
        )
        return out
