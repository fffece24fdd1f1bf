"""Random tensors: uniform, normal, truncated normal, shuffles and crops.

All are Philox4x32-10 by specification: the same seeds give the same bits on every device, and the
bits that TensorFlow gives.
"""

from __future__ import annotations

from typing import Any

from opdock import dtypes, shapes
from opdock.docstrings import explained
from opdock.dtypes import DType
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.graph.nodes.seeds import get_seed
from opdock.ops.registry import ShapeSig, Traits, define_op
from opdock.ops.support import array_util, common_shapes
from opdock.shapes import Dimension, Shape

__all__ = ["random_crop", "random_normal", "random_shuffle", "random_uniform", "truncated_normal"]

_SEEDS = "seed: int = 0, seed2: int = 0, "
_FLOAT_ATTRS = _SEEDS + "dtype: {half, bfloat16, float, double}, T: {int32, int64}"
_UNIFORM_TYPES = frozenset({
    dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64,
})  # fmt: skip


# ---------------------------------------------------------------- ops
random_uniform_op = define_op(
    "RandomUniform", "shape: T -> output: dtype", _FLOAT_ATTRS, stateful=True
).not_differentiable()
random_uniform_int_op = define_op(
    "RandomUniformInt", "shape: T, minval: Tout, maxval: Tout -> output: Tout",
    _SEEDS + "Tout: {int32, int64}, T: {int32, int64}", stateful=True,
).not_differentiable()  # fmt: skip
random_standard_normal_op = define_op(
    "RandomStandardNormal", "shape: T -> output: dtype", _FLOAT_ATTRS, stateful=True
).not_differentiable()
truncated_normal_op = define_op(
    "TruncatedNormal", "shape: T -> output: dtype", _FLOAT_ATTRS, stateful=True
).not_differentiable()
random_shuffle_op = define_op(
    "RandomShuffle", "value: T -> output: T", _SEEDS + "T: type", stateful=True
)
for _op in (
    random_uniform_op,
    random_uniform_int_op,
    random_standard_normal_op,
    truncated_normal_op,
    random_shuffle_op,
):
    _op.declare(Traits(random=True))


@random_uniform_op.shape
@random_uniform_int_op.shape
@random_standard_normal_op.shape
@truncated_normal_op.shape
def drawn_shape(sig: ShapeSig) -> Shape:
    """The shape that input 0 asks for; bounds, where the op has any, must be scalars."""
    shapes.with_rank(sig.shapes[0], 1)
    if sig.op == "RandomUniformInt":
        for bound in sig.shapes[1:]:
            shapes.with_rank(bound, 0)
    dims = array_util.const_ints(sig, 0)
    if dims is not None and any(d < 0 for d in dims):
        raise ValueError(f"Dimensions must be >= 0, got {dims}")
    return sig.const_shape(0)


random_shuffle_op.shape(common_shapes.unchanged)
array_util.no_gradient(random_shuffle_op)


# ---------------------------------------------------------------- public functions
def shape_tensor(shape: Any) -> Tensor:
    """The argument ``shape`` of a random function as a 1-D integer tensor named "shape"."""
    dtype = None
    if isinstance(shape, (list, tuple)):
        if not shape:
            dtype = dtypes.int32
        shape = [d.value if isinstance(d, Dimension) else d for d in shape]
    return convert_to_tensor(shape, dtype, "shape")


_WORDS = {
    "shape": "a 1-D integer tensor, list or `TensorShape`: the shape of the output.",
    "dtype": "float16, bfloat16, float32 or float64.",
    "seed": "op seed; see `tf.set_random_seed`.",
    "name": "a name for the operation.",
    "returns": "A tensor of type `dtype`.",
    "mean": "tensor of type `dtype` that broadcasts with `shape`.",
}
"""What the functions here take."""


@extensible
@explained(
    _WORDS,
    minval="scalar of type `dtype`: the lower bound, included.",
    maxval="scalar of type `dtype`: the upper bound, excluded; 1 for floating types, required "
    "for integers.  Integers are drawn modulo ``maxval - minval``.",
    dtype="float16, bfloat16, float32, float64, int32 or int64.",
    raises="ValueError: another `dtype`, or an integer one without `maxval`.",
)
def random_uniform(
    shape: Any,
    minval: Any = 0,
    maxval: Any = None,
    dtype: Any = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Values spread evenly over ``[minval, maxval)``."""
    dtype = dtypes.as_dtype(dtype)
    if dtype not in _UNIFORM_TYPES:
        raise ValueError(f"Invalid dtype {dtype!r}")
    if maxval is None:
        if dtype.is_integer:
            raise ValueError(f"Must specify maxval for integer dtype {dtype!r}")
        maxval = 1
    with name_scope(name, "random_uniform", [shape, minval, maxval]) as scope:
        dims = shape_tensor(shape)
        low: Any = convert_to_tensor(minval, dtype, "min")
        high: Any = convert_to_tensor(maxval, dtype, "max")
        seed1, seed2 = get_seed(seed)
        if dtype.is_integer:
            out: Tensor = random_uniform_int_op(
                dims, low, high, seed=seed1, seed2=seed2, name=scope
            )
            return out
        unit = random_uniform_op(dims, dtype=dtype, seed=seed1, seed2=seed2)
        return _add(unit * (high - low), low, scope)


@extensible
@explained(_WORDS, stddev="tensor of type `dtype` that broadcasts with `shape`.")
def random_normal(
    shape: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Values of a normal distribution."""
    op = random_standard_normal_op
    return _normal(op, "random_normal", shape, mean, stddev, dtype, seed, name)


@extensible
@explained(_WORDS, stddev="tensor of type `dtype`: the deviation before truncation.")
def truncated_normal(
    shape: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Values of a normal distribution, redrawn while more than two deviations from the mean."""
    op = truncated_normal_op
    return _normal(op, "truncated_normal", shape, mean, stddev, dtype, seed, name)


def _normal(
    op: Any, default: str, shape: Any, mean: Any, stddev: Any, dtype: Any, seed: Any, name: Any
) -> Tensor:
    dtype = dtypes.as_dtype(dtype)
    with name_scope(name, default, [shape, mean, stddev]) as scope:
        dims = shape_tensor(shape)
        mean = convert_to_tensor(mean, dtype, "mean")
        stddev = convert_to_tensor(stddev, dtype, "stddev")
        seed1, seed2 = get_seed(seed)
        unit = op(dims, dtype=dtype, seed=seed1, seed2=seed2)
        return _add(unit * stddev, mean, scope)


@extensible
@explained(_WORDS, value="a tensor.", returns="A tensor of the shape and type of `value`.")
def random_shuffle(value: Any, seed: int | None = None, name: str | None = None) -> Tensor:
    """The slices of a tensor along its first dimension in random order."""
    seed1, seed2 = get_seed(seed)
    out: Tensor = random_shuffle_op(value, seed=seed1, seed2=seed2, name=name)
    return out


@extensible
@explained(
    _WORDS,
    value="the tensor to crop.",
    size="1-D tensor with one entry per dimension of `value`.",
    returns="A tensor of shape `size` and the type of `value`.",
    raises="InvalidArgumentError: when run, if `value` is smaller than `size` somewhere.",
)
def random_crop(value: Any, size: Any, seed: int | None = None, name: str | None = None) -> Tensor:
    """A slice of the given size at a random place."""
    from opdock.ops.array import shape as shape_of
    from opdock.ops.check import Assert
    from opdock.ops.compare import greater_equal
    from opdock.ops.control import with_dependencies
    from opdock.ops.reduce import reduce_all
    from opdock.ops.slicing import slice as take

    with name_scope(name, "random_crop", [value, size]) as scope:
        value = convert_to_tensor(value, name="value")
        size = convert_to_tensor(size, dtypes.int32, "size")
        whole = shape_of(value)
        check = Assert(
            reduce_all(greater_equal(whole, size)),
            ["Need value.shape >= size, got ", whole, size],
            summarize=1000,
        )
        whole = with_dependencies([check], whole)
        limit = whole - size + 1
        kind: DType = size.dtype
        start = random_uniform(shape_of(limit), dtype=kind, maxval=kind.max, seed=seed) % limit
        return take(value, start, size, name=scope)


def _add(x: Tensor, y: Tensor, scope: str) -> Tensor:
    from opdock.ops.composed.math import add

    return add(x, y, name=scope)
