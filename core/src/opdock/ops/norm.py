"""Batch normalization: the FusedBatchNorm ops and the unfused public functions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from opdock import dtypes, shapes
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.registry import Formatted, OpSpec, Shape, ShapeSig, Traits, define_op
from opdock.ops.support import array_util
from opdock.ops.support.nn_util import as_type, emit, renamed
from opdock.ops.support.norm_grad import (
    Channels,
    batch_norm_grad_grad,
    frozen_batch_norm_grad_grad,
)
from opdock.windows import Format

__all__ = ["batch_norm_with_global_normalization", "batch_normalization", "fused_batch_norm"]

MIN_EPSILON = 1.001e-5
"""cuDNN refuses less, so TF raises smaller values to this on every device."""

# exponential_avg_factor came after 1.15; nodes written by later versions carry it.
_ATTRS = (
    "epsilon: float = 0.0001, exponential_avg_factor: float = 1.0, "
    "data_format: {'NHWC', 'NCHW'} = 'NHWC', is_training: bool = true"
)
_GRAD_ATTRS = (
    "epsilon: float = 0.0001, data_format: {'NHWC', 'NCHW'} = 'NHWC', is_training: bool = true"
)
_T1 = "T: {float}"
_TU = "T: {half, bfloat16, float}, U: {float}"


def _signature(u: str, reserves: int) -> str:
    spaces = ", ".join(f"reserve_space_{i + 1}: {u}" for i in range(reserves))
    return (
        f"x: T, scale: {u}, offset: {u}, mean: {u}, variance: {u} -> "
        f"y: T, batch_mean: {u}, batch_variance: {u}, {spaces}"
    )


def _grad_signature(u: str, scale: str, reserves: int) -> str:
    spaces = ", ".join(f"reserve_space_{i + 1}: {u}" for i in range(reserves))
    return (
        f"y_backprop: T, x: T, scale: {scale}, {spaces} -> "
        f"x_backprop: T, scale_backprop: {u}, offset_backprop: {u}, "
        f"reserve_space_{reserves + 1}: {u}, reserve_space_{reserves + 2}: {u}"
    )


fused_batch_norm_op = define_op("FusedBatchNorm", _signature("T", 2), f"{_T1}, {_ATTRS}")
fused_batch_norm_v2_op = define_op("FusedBatchNormV2", _signature("U", 2), f"{_TU}, {_ATTRS}")
fused_batch_norm_v3_op = define_op("FusedBatchNormV3", _signature("U", 3), f"{_TU}, {_ATTRS}")
for _op in (fused_batch_norm_op, fused_batch_norm_v2_op, fused_batch_norm_v3_op):
    _op.declare(Traits(layout=Formatted((0,))))
fused_batch_norm_grad_op = define_op(
    "FusedBatchNormGrad", _grad_signature("T", "T", 2), f"{_T1}, {_GRAD_ATTRS}"
)
fused_batch_norm_grad_v2_op = define_op(
    "FusedBatchNormGradV2", _grad_signature("U", "float", 2), f"{_TU}, {_GRAD_ATTRS}"
)
fused_batch_norm_grad_v3_op = define_op(
    "FusedBatchNormGradV3", _grad_signature("U", "float", 3), f"{_TU}, {_GRAD_ATTRS}"
)
for _op in (fused_batch_norm_grad_op, fused_batch_norm_grad_v2_op, fused_batch_norm_grad_v3_op):
    _op.declare(Traits(layout=Formatted((0, 1))))

# Deprecated by TF since 2015; graphs of then have them.
_OLD_ATTRS = "T: numbertype, variance_epsilon: float, scale_after_normalization: bool"
batch_norm_op = define_op(
    "BatchNormWithGlobalNormalization",
    "t: T, m: T, v: T, beta: T, gamma: T -> result: T", _OLD_ATTRS,
)  # fmt: skip
batch_norm_grad_op = define_op(
    "BatchNormWithGlobalNormalizationGrad",
    "t: T, m: T, v: T, gamma: T, backprop: T -> dx: T, dm: T, dv: T, db: T, dg: T", _OLD_ATTRS,
)  # fmt: skip

FORWARD = (fused_batch_norm_op, fused_batch_norm_v2_op, fused_batch_norm_v3_op)
BACKWARD = (fused_batch_norm_grad_op, fused_batch_norm_grad_v2_op, fused_batch_norm_grad_v3_op)


# ---------------------------------------------------------------- shapes
def _fused_shape(sig: ShapeSig) -> list[Shape]:
    x = shapes.with_rank(sig.shapes[0], 4)
    axis = Format(sig.attrs["data_format"], 4).channel
    channels = x[axis]
    for i in range(1, 3 if sig.attrs["is_training"] else 5):
        (length,) = shapes.with_rank(sig.shapes[i], 1)
        channels = shapes.merge_dim(channels, length)
    y = (*x[:axis], channels, *x[axis + 1 :])
    out: list[Shape] = [y, *[(channels,)] * 4]
    return [*out, None] if sig.n_outputs == 6 else out


def _fused_grad_shape(sig: ShapeSig) -> list[Shape]:
    y = shapes.with_rank(sig.shapes[0], 4)
    x = shapes.with_rank(sig.shapes[1], 4)
    axis = Format(sig.attrs["data_format"], 4).channel
    channels = shapes.merge_dim(y[axis], x[axis])
    for i in range(2, 5):
        (length,) = shapes.with_rank(sig.shapes[i], 1)
        channels = shapes.merge_dim(channels, length)
    dx = (*y[:axis], channels, *y[axis + 1 :])
    return [dx, (channels,), (channels,), (0,), (0,)]


@batch_norm_op.shape
def _batch_norm_shape(sig: ShapeSig) -> Shape:
    return _of_channels(shapes.with_rank(sig.shapes[0], 4), sig.shapes[1:])


@batch_norm_grad_op.shape
def _batch_norm_grad_shape(sig: ShapeSig) -> list[Shape]:
    t = shapes.with_rank(sig.shapes[0], 4)
    dx = _of_channels(shapes.with_rank(shapes.merge(t, sig.shapes[4]), 4), sig.shapes[1:4])
    return [dx, *[dx[3:]] * 4]


def _of_channels(images: tuple[Any, ...], vectors: Iterable[Shape]) -> tuple[Any, ...]:
    """The shape of images that have as many channels as each of some vectors."""
    *rest, channels = images
    for vector in vectors:
        channels = shapes.merge_dim(channels, shapes.with_rank(vector, 1)[0])
    return (*rest, channels)


for _op in FORWARD:
    _op.shape(_fused_shape)
for _op in BACKWARD:
    _op.shape(_fused_grad_shape)


# ---------------------------------------------------------------- gradients
def _fused_grad(backward: OpSpec) -> Any:
    def gradient(op: Operation, grad_y: Tensor, *unused: Any) -> list[Any]:
        x, scale = op.inputs[:2]
        training = op.attrs["is_training"]
        # Frozen statistics are inputs, so the reserves of the forward op hold nothing new.
        reserves = list(op.outputs[3:]) if training else list(op.inputs[3:5])
        if not training and len(op.outputs) == 6:
            reserves.append(op.outputs[5])
        dx, dscale, doffset, *_ = backward(
            grad_y, x, scale, *reserves, epsilon=op.attrs["epsilon"],
            data_format=op.attrs["data_format"], is_training=training,
        )  # fmt: skip
        return [dx, dscale, doffset, None, None]

    return gradient


def _fused_grad_grad(op: Operation, *grads: Any) -> list[Any]:
    second = batch_norm_grad_grad if op.attrs["is_training"] else frozen_batch_norm_grad_grad
    return [*second(op, *grads[:3]), *[None] * (len(op.inputs) - 3)]


for _op, _back in zip(FORWARD, BACKWARD, strict=True):
    _op.gradient(_fused_grad(_back))
    _back.gradient(_fused_grad_grad)


array_util.no_gradient(batch_norm_grad_op)


@batch_norm_op.gradient
def _batch_norm_gradient(op: Operation, grad: Tensor) -> list[Tensor]:
    t, m, v, _, gamma = op.inputs
    dx, dm, dv, db, dg = batch_norm_grad_op(t, m, v, gamma, grad, **op.attrs)
    return [dx, dm, dv, db, dg]


# ---------------------------------------------------------------- decompositions
def _fused_parts(sig: Any, x: Any, scale: Any, offset: Any, mean: Any, variance: Any) -> Any:
    of, wide = Channels(sig.attrs["data_format"]), as_type(x, dtypes.float32)
    batch = used = of.spread(mean), of.spread(variance)
    if sig.attrs["is_training"]:
        used_mean = of.mean(wide)
        used = used_mean, of.mean(emit("Square", wide - used_mean))
        count, factor = of.count(wide), float(sig.attrs["exponential_avg_factor"])
        rest = max(count - 1, 1.0) if isinstance(count, float) else emit("Maximum", count - 1, 1.0)
        made = used_mean, used[1] * (count / rest)
        if factor != 1.0:
            made = tuple(o * (1 - factor) + n * factor for o, n in zip(batch, made, strict=True))
        batch = made
    y = batch_normalization(wide, *used, of.spread(offset), of.spread(scale), sig.attrs["epsilon"])
    out = [as_type(y, x.dtype), *map(of.flat, (*batch, *used))]
    return [*out, convert_to_tensor(0.0)] if sig.op == "FusedBatchNormV3" else out


def _fused_grad_parts(
    sig: Any, grad: Tensor, x: Tensor, scale: Any, mean: Any, variance: Any, *unused: Any
) -> Any:
    of = Channels(sig.attrs["data_format"])
    dy, wide = (as_type(t, dtypes.float32) for t in (grad, x))
    inverse = emit("Rsqrt", of.spread(variance) + sig.attrs["epsilon"])
    total, mean = of.sum(dy), of.spread(mean)
    count, centred, training = of.count(wide), wide - mean, sig.attrs["is_training"]
    if not (isinstance(count, float) and count):
        # Sums of nothing are zero, whatever its deviation is.
        dscale = of.sum(dy * (centred * inverse))
    elif training:
        dscale = of.sum(dy * centred) * inverse
    else:
        dscale = (of.sum(dy * wide) - mean * total) * inverse
    factor = inverse * of.spread(scale)  # in the order of the op itself: one product serves both
    if training:
        # What is one number a channel is multiplied out before it meets the images. No part of
        # these waits for one sum before the other.
        along, offset = inverse * dscale * (factor / count), total * (factor / count)
        dx = dy * factor - centred * along - offset
    else:
        dx = dy * factor
    nothing = emit("Fill", [0], 0.0)
    return [as_type(dx, x.dtype), of.flat(dscale), of.flat(total), nothing, nothing]


@batch_norm_op.decomposition
def _batch_norm_parts(sig: Any, t: Any, m: Any, v: Any, beta: Any, gamma: Any) -> Tensor:
    inverse = _inverse_deviation(sig, v)
    scale = inverse * gamma if sig.attrs["scale_after_normalization"] else inverse
    return (t - m) * scale + beta  # type: ignore[no-any-return]


@batch_norm_grad_op.decomposition
def _batch_norm_grad_parts(sig: Any, t: Any, m: Any, v: Any, gamma: Any, grad: Any) -> list[Any]:
    inverse = _inverse_deviation(sig, v)
    scaled = sig.attrs["scale_after_normalization"]
    scale = inverse * gamma if scaled else inverse
    db = emit("Sum", grad, [0, 1, 2])
    along = emit("Sum", grad * (t - m), [0, 1, 2])
    dv = along * scale * emit("Square", inverse) * -0.5
    dg = along * inverse if scaled else emit("ZerosLike", gamma)
    return [grad * scale, -db * scale, dv, db, dg]


def _inverse_deviation(sig: Any, variance: Any) -> Any:
    return emit("Rsqrt", variance + sig.attrs["variance_epsilon"])


for _op in FORWARD:
    _op.decomposition(_fused_parts)
for _op in BACKWARD:
    _op.decomposition(_fused_grad_parts)


# ---------------------------------------------------------------- public functions
@extensible
def fused_batch_norm(
    x: Any, scale: Any, offset: Any, mean: Any = None, variance: Any = None,
    epsilon: float = 0.001, data_format: str = "NHWC", is_training: bool = True,
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Batch normalization of images in one op.

    Args:
        x: a 4-D tensor, float32, float16 or bfloat16.
        scale: a float32 vector, one entry per channel.
        offset: a float32 vector, one entry per channel.
        mean: the population mean, when not training.
        variance: the population variance, when not training.
        epsilon: added to the variance; raised to 1.001e-5 when smaller.
        data_format: "NHWC" or "NCHW".
        is_training: whether to normalize by the batch's own statistics.
        name: a name for the operation.

    Returns:
        `(y, batch_mean, batch_var)`; when training, `batch_var` is the unbiased variance.

    Raises:
        ValueError: population statistics are given when training, or missing when not.
    """
    if is_training and (mean is not None or variance is not None):
        raise ValueError("Both 'mean' and 'variance' must be None if is_training is True.")
    if not is_training and (mean is None or variance is None):
        raise ValueError("Both 'mean' and 'variance' must be given if is_training is False.")
    x = convert_to_tensor(x, name="input")
    scale = convert_to_tensor(scale, name="scale")
    offset = convert_to_tensor(offset, name="offset")
    if is_training:
        mean = convert_to_tensor([], dtypes.float32, name="Const")
        variance = convert_to_tensor([], dtypes.float32, name="Const")
    result = fused_batch_norm_v3_op(
        x, scale, offset, mean, variance, epsilon=max(epsilon, MIN_EPSILON),
        data_format=data_format, is_training=is_training, name=name,
    )  # fmt: skip
    return result[0], result[1], result[2]


@extensible
def batch_normalization(
    x: Any, mean: Any, variance: Any, offset: Any, scale: Any, variance_epsilon: Any,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """`scale * (x - mean) / sqrt(variance + variance_epsilon) + offset`.

    Args:
        x: a floating-point tensor.
        mean: a tensor that broadcasts against `x`.
        variance: a tensor that broadcasts against `x`.
        offset: a tensor that broadcasts against `x`, or None.
        scale: a tensor that broadcasts against `x`, or None.
        variance_epsilon: a small number that keeps the division finite.
        name: a name for the operation.

    Returns:
        A tensor like `x`.
    """
    with name_scope(name, "batchnorm", [x, mean, variance, scale, offset]):
        inv = emit("Rsqrt", variance + variance_epsilon)
        if scale is not None:
            inv *= scale
        x = convert_to_tensor(x)
        # Tools that fold batch norms know the ops by names, which come of the order.
        scaled = x * as_type(inv, x.dtype)
        shift = offset - mean * inv if offset is not None else -mean * inv
        return scaled + as_type(shift, x.dtype)  # type: ignore[no-any-return]


@extensible
def batch_norm_with_global_normalization(
    t: Any = None, m: Any = None, v: Any = None, beta: Any = None, gamma: Any = None,
    variance_epsilon: Any = None, scale_after_normalization: Any = None, name: str | None = None,
    input: Any = None, mean: Any = None, variance: Any = None,
) -> Tensor:  # fmt: skip
    """Batch normalization of images by given statistics; use `batch_normalization` instead.

    Args:
        t: a 4-D tensor.
        m: the mean, one entry per channel.
        v: the variance, one entry per channel.
        beta: the offset, one entry per channel.
        gamma: the scale, one entry per channel; used when `scale_after_normalization` is true.
        variance_epsilon: a small number that keeps the division finite.
        scale_after_normalization: whether to multiply by `gamma`.
        name: a name for the operation.
        input: an alias of `t`.
        mean: an alias of `m`.
        variance: an alias of `v`.

    Returns:
        The normalized `t`.
    """
    t = renamed("input", input, "t", t)
    m = renamed("mean", mean, "m", m)
    v = renamed("variance", variance, "v", v)
    scale = gamma if scale_after_normalization else None
    return batch_normalization(t, m, v, beta, scale, variance_epsilon, name)
