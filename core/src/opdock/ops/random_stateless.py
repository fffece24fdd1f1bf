"""Random tensors that are pure functions of their seed tensor (`tf.random.stateless_*`)."""

from __future__ import annotations

from typing import Any

from opdock import dtypes, shapes
from opdock.docstrings import explained
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.random import shape_tensor
from opdock.ops.registry import OpSpec, ShapeSig, define_op
from opdock.ops.support import array_util
from opdock.shapes import Shape

__all__: list[str] = []  # TF 1.15 has these names in tf.random only.

_INDEX = "T: {int32, int64} = DT_INT32, Tseed: {int32, int64} = DT_INT64"
_FLOAT_ATTRS = "dtype: {half, bfloat16, float, double} = DT_FLOAT, " + _INDEX


# ---------------------------------------------------------------- ops
def _float_op(name: str) -> OpSpec:
    return define_op(name, "shape: T, seed: Tseed -> output: dtype", _FLOAT_ATTRS)


stateless_uniform_op = _float_op("StatelessRandomUniform").not_differentiable()
stateless_normal_op = _float_op("StatelessRandomNormal").not_differentiable()
stateless_truncated_normal_op = _float_op("StatelessTruncatedNormal").not_differentiable()
stateless_uniform_int_op = define_op(
    "StatelessRandomUniformInt",
    "shape: T, seed: Tseed, minval: dtype, maxval: dtype -> output: dtype",
    "dtype: {int32, int64}, T: {int32, int64}, Tseed: {int32, int64} = DT_INT64",
).not_differentiable()
stateless_multinomial_op = define_op(
    "StatelessMultinomial",
    "logits: T, num_samples: int32, seed: Tseed -> output: output_dtype",
    "T: realnumbertype, Tseed: {int32, int64} = DT_INT64, output_dtype: {int32, int64} = DT_INT64",
).not_differentiable()


@stateless_uniform_op.shape
@stateless_normal_op.shape
@stateless_truncated_normal_op.shape
@stateless_uniform_int_op.shape
def _drawn_shape(sig: ShapeSig) -> Shape:
    shapes.with_rank(sig.shapes[0], 1)
    _seed_shape(sig.shapes[1])
    for bound in sig.shapes[2:]:
        shapes.with_rank(bound, 0)
    dims = array_util.const_ints(sig, 0)
    if dims is not None and any(d < 0 for d in dims):
        raise ValueError(f"Dimensions must be >= 0, got {dims}")
    return sig.const_shape(0)


@stateless_multinomial_op.shape
def _categorical_shape(sig: ShapeSig) -> Shape:
    rows = shapes.with_rank(sig.shapes[0], 2)[0]
    _seed_shape(sig.shapes[2])
    return (rows, array_util.const_int(sig, 1))


def _seed_shape(shape: Shape) -> None:
    array_util.with_dim(shapes.with_rank(shape, 1)[0], 2)


# ---------------------------------------------------------------- public functions
_WORDS = {
    "shape": "1-D integer tensor: the shape of the output.",
    "seed": "integer tensor of shape [2].",
    "dtype": "float16, bfloat16, float32 or float64.",
    "name": "a name for the operation.",
    "returns": "A tensor of type `dtype`.",
    "mean": "tensor of type `dtype` that broadcasts with `shape`.",
    "logits": "2-D tensor ``[batch_size, num_classes]`` of unnormalized log-probabilities.",
    "num_samples": "scalar int32: how many independent samples per row.",
}
"""What the functions here take."""


@extensible
@explained(
    _WORDS,
    minval="scalar of type `dtype`: the lower bound, included.",
    maxval="scalar of type `dtype`: the upper bound, excluded; required for integers.",
    dtype="float16, bfloat16, float32, float64, int32 or int64.",
    raises="ValueError: another `dtype`, or an integer one without `maxval`.",
)
def stateless_random_uniform(
    shape: Any,
    seed: Any,
    minval: Any = 0,
    maxval: Any = None,
    dtype: Any = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """Values spread evenly over ``[minval, maxval)``, a function of `seed` alone."""
    from opdock.ops.composed.math import add

    dtype = dtypes.as_dtype(dtype)
    if not (dtype.is_floating or dtype in (dtypes.int32, dtypes.int64)):
        raise ValueError(f"Invalid dtype {dtype!r}")
    if maxval is None:
        if dtype.is_integer:
            raise ValueError(f"Must specify maxval for integer dtype {dtype!r}")
        maxval = 1
    with name_scope(name, "stateless_random_uniform", [shape, seed, minval, maxval]) as scope:
        dims = shape_tensor(shape)
        low: Any = convert_to_tensor(minval, dtype, "min")
        high: Any = convert_to_tensor(maxval, dtype, "max")
        if dtype.is_integer:
            out: Tensor = stateless_uniform_int_op(dims, seed, low, high, name=scope)
            return out
        unit = stateless_uniform_op(dims, seed, dtype=dtype)
        return add(unit * (high - low), low, name=scope)


@extensible
@explained(_WORDS, stddev="tensor of type `dtype` that broadcasts with `shape`.")
def stateless_random_normal(
    shape: Any,
    seed: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """Values of a normal distribution, a function of `seed` alone."""
    op, scope = stateless_normal_op, "stateless_random_normal"
    return _normal(op, scope, shape, seed, mean, stddev, dtype, name)


@extensible
@explained(_WORDS, stddev="tensor of type `dtype`: the deviation before truncation.")
def stateless_truncated_normal(
    shape: Any,
    seed: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """Values of a normal distribution cut at two deviations, a function of `seed` alone."""
    op, scope = stateless_truncated_normal_op, "stateless_truncated_normal"
    return _normal(op, scope, shape, seed, mean, stddev, dtype, name)


def _normal(
    op: OpSpec, default: str, shape: Any, seed: Any, mean: Any, stddev: Any, dtype: Any, name: Any
) -> Tensor:
    from opdock.ops.composed.math import add

    dtype = dtypes.as_dtype(dtype)
    with name_scope(name, default, [shape, seed, mean, stddev]) as scope:
        dims = shape_tensor(shape)
        mean = convert_to_tensor(mean, dtype, "mean")
        stddev = convert_to_tensor(stddev, dtype, "stddev")
        return add(op(dims, seed, dtype=dtype) * stddev, mean, name=scope)


@extensible
@explained(
    _WORDS,
    output_dtype="int32 or int64.",
    returns="A tensor ``[batch_size, num_samples]`` of class indices.",
)
def stateless_multinomial(
    logits: Any,
    num_samples: Any,
    seed: Any,
    output_dtype: Any = dtypes.int64,
    name: str | None = None,
) -> Tensor:
    """Samples of categorical distributions, a function of `seed` alone."""
    with name_scope(name, "stateless_multinomial", [logits, seed]):
        return _categorical(logits, num_samples, seed, output_dtype)


@extensible
@explained(
    _WORDS,
    dtype="int32 or int64.",
    returns="A tensor ``[batch_size, num_samples]`` of class indices.",
)
def stateless_categorical(
    logits: Any,
    num_samples: Any,
    seed: Any,
    dtype: Any = dtypes.int64,
    name: str | None = None,
) -> Tensor:
    """Samples of categorical distributions, a function of `seed` alone."""
    with name_scope(name, "stateless_categorical", [logits, seed]):
        return _categorical(logits, num_samples, seed, dtype)


def _categorical(logits: Any, num_samples: Any, seed: Any, dtype: Any) -> Tensor:
    logits = convert_to_tensor(logits, name="logits")
    out: Tensor = stateless_multinomial_op(logits, num_samples, seed, output_dtype=dtype)
    return out
