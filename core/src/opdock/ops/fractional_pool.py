"""Pools over windows of slightly different sizes, so that an image shrinks by any ratio."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from opdock import dtypes, shapes
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Operation
from opdock.graph.nodes.seeds import get_seed
from opdock.ops.registry import ShapeSig, Traits, define_op
from opdock.ops.support.nn_util import emit
from opdock.shapes import Shape

__all__ = [
    "fractional_avg_pool", "fractional_avg_pool_v2", "fractional_max_pool",
    "fractional_max_pool_v2",
]  # fmt: skip

_SEQUENCES = "row_pooling_sequence: int64, col_pooling_sequence: int64"
_TYPES = "T: {float, double, int32, int64}"
_POOL = (
    "pooling_ratio: list(float) >= 4, pseudo_random: bool = false, overlapping: bool = false, "
    f"deterministic: bool = false, seed: int = 0, seed2: int = 0, {_TYPES}"
)
_OVERLAP = f"overlapping: bool = false, {_TYPES}"

fractional_max_pool_op = define_op(
    "FractionalMaxPool", f"value: T -> output: T, {_SEQUENCES}", _POOL
)
fractional_avg_pool_op = define_op(
    "FractionalAvgPool", f"value: T -> output: T, {_SEQUENCES}", _POOL
)
fractional_max_pool_grad_op = define_op(
    "FractionalMaxPoolGrad",
    f"orig_input: T, orig_output: T, out_backprop: T, {_SEQUENCES} -> output: T", _OVERLAP,
).not_differentiable()  # fmt: skip
fractional_avg_pool_grad_op = define_op(
    "FractionalAvgPoolGrad",
    f"orig_input_tensor_shape: int64, out_backprop: T, {_SEQUENCES} -> output: T", _OVERLAP,
).not_differentiable()  # fmt: skip
for _op in (fractional_max_pool_op, fractional_avg_pool_op):
    # Without seeds the windows differ from step to step.
    _op.declare(Traits(fold=False, merge=False))


@fractional_max_pool_op.shape
@fractional_avg_pool_op.shape
def _pooled(sig: ShapeSig) -> list[Shape]:
    data = shapes.with_rank(sig.shapes[0], 4)
    ratio = sig.attrs["pooling_ratio"]
    if len(ratio) != 4:
        raise ValueError("pooling_ratio field must specify 4 dimensions")
    out = [None if d is None else math.floor(d / r) for d, r in zip(data, ratio, strict=True)]
    for i, size in enumerate(out):
        if size is not None and size < 0:
            raise ValueError(f"Size computed for dim {i} is negative: {size}")
    # TensorFlow says of the sequences that they are as long as the output; they have one more.
    return [tuple(out), (None,), (None,)]


@fractional_max_pool_grad_op.shape
def _like_input(sig: ShapeSig) -> Shape:
    return shapes.with_rank(sig.shapes[0], 4)


@fractional_avg_pool_grad_op.shape
def _given(sig: ShapeSig) -> Shape:
    return shapes.with_rank(sig.const_shape(0), 4)


@fractional_max_pool_op.gradient
def _max_gradient(op: Operation, grad: Any, *_: Any) -> Any:
    return fractional_max_pool_grad_op(
        op.inputs[0], op.outputs[0], grad, op.outputs[1], op.outputs[2],
        overlapping=op.attrs["overlapping"],
    )  # fmt: skip


@fractional_avg_pool_op.gradient
def _avg_gradient(op: Operation, grad: Any, *_: Any) -> Any:
    shape = emit("Shape", op.inputs[0], out_type=dtypes.int64)
    return fractional_avg_pool_grad_op(
        shape, grad, op.outputs[1], op.outputs[2], overlapping=op.attrs["overlapping"]
    )


@extensible
def fractional_max_pool(
    value: Any, pooling_ratio: Any, pseudo_random: bool = False, overlapping: bool = False,
    deterministic: bool = False, seed: int = 0, seed2: int = 0, name: str | None = None,
) -> Any:  # fmt: skip
    """The largest values of windows that divide rows and columns at random places.

    Args:
        value: [batch, height, width, channels].
        pooling_ratio: by what each dimension shrinks; 1.0 for batch and channels.
        pseudo_random: whether windows of both sizes take turns as evenly as they can.
        overlapping: whether a window has the first row and column of the next one as well.
        deterministic: whether the seeds, which are zero otherwise, decide.
        seed, seed2: where windows begin in every step, if `deterministic`.
        name: a name for the operation.

    Returns:
        The pooled tensor, and where windows begin, in rows and in columns.

    Raises:
        ValueError: there are not four ratios.
        UnimplementedError: when run, the batch or the channels would shrink.
        InvalidArgumentError: when run, there are seeds and `deterministic` is not set.
    """
    return fractional_max_pool_op(
        value, pooling_ratio=pooling_ratio, pseudo_random=pseudo_random, overlapping=overlapping,
        deterministic=deterministic, seed=seed, seed2=seed2, name=name,
    )  # fmt: skip


@extensible
def fractional_avg_pool(
    value: Any, pooling_ratio: Any, pseudo_random: bool = False, overlapping: bool = False,
    deterministic: bool = False, seed: int = 0, seed2: int = 0, name: str | None = None,
) -> Any:  # fmt: skip
    """The means of such windows; see `fractional_max_pool`.

    Args:
        value: images in NHWC.
        pooling_ratio: by how much each dimension shrinks, four numbers.
        pseudo_random: whether the regions' sizes follow a pseudorandom sequence.
        overlapping: whether regions share a border.
        deterministic: whether every step takes the same regions.
        seed: the seed of the regions.
        seed2: a second seed.
        name: a name for the operation.
    """
    return fractional_avg_pool_op(
        value, pooling_ratio=pooling_ratio, pseudo_random=pseudo_random, overlapping=overlapping,
        deterministic=deterministic, seed=seed, seed2=seed2, name=name,
    )  # fmt: skip


def _seeds(seed: int) -> dict[str, Any]:
    if seed == 0:
        return {}
    first, second = get_seed(seed)
    return {"deterministic": True, "seed": first, "seed2": second}


def fractional_max_pool_v2(
    value: Any, pooling_ratio: Any, pseudo_random: bool = False, overlapping: bool = False,
    seed: int = 0, name: str | None = None,
) -> Any:  # fmt: skip
    """`fractional_max_pool` with one seed, and one ratio for height and width if only one is given.

    Raises:
        ValueError: there are neither 1, 2 nor 4 ratios.
    """
    ratio = list(pooling_ratio) if isinstance(pooling_ratio, Sequence) else [pooling_ratio]
    if len(ratio) not in (1, 2, 4):
        raise ValueError(f"pooling_ratio should be of length 1, 2 or 4 but was {len(ratio)}")
    if len(ratio) < 4:
        ratio = [1.0, *(ratio * 2)[:2], 1.0]
    return fractional_max_pool(value, ratio, pseudo_random, overlapping, name=name, **_seeds(seed))


def fractional_avg_pool_v2(
    value: Any, pooling_ratio: Any, pseudo_random: bool = False, overlapping: bool = False,
    seed: int = 0, name: str | None = None,
) -> Any:  # fmt: skip
    """`fractional_avg_pool` with one seed."""
    return fractional_avg_pool(
        value, pooling_ratio, pseudo_random, overlapping, name=name, **_seeds(seed)
    )
