"""Layers of quantized networks: convolution, pooling, activations, normalization.

Each tensor argument comes with the real numbers that its lowest and highest integer stand for, and
each result comes with its own.
"""

from __future__ import annotations

from typing import Any

from opdock import dtypes, shapes
from opdock.graph.nodes.dispatch import extensible
from opdock.ops.conv import conv2d_op
from opdock.ops.pool import avg_pool_op, max_pool_op
from opdock.ops.quantize import TYPES, check_scalars
from opdock.ops.quantized import shape_as
from opdock.ops.registry import OpSpec, Shape, ShapeSig, define_op
from opdock.ops.support.array_util import no_gradient

__all__ = ["quantized_avg_pool", "quantized_conv2d", "quantized_max_pool", "quantized_relu_x"]

_PADDING = "padding: {'SAME', 'VALID'}"
_NORM_INPUTS = ", ".join(
    f"{name}: Tinput, {name}_min: float, {name}_max: float"
    for name in ("t", "m", "v", "beta", "gamma")
)


def _activation(name: str, limit: str = "") -> OpSpec:
    return define_op(
        name,
        f"features: Tinput, {limit}min_features: float, max_features: float -> "
        "activations: out_type, min_activations: float, max_activations: float",
        f"Tinput: {TYPES}, out_type: {TYPES} = DT_QUINT8",
    )  # fmt: skip


def _pool(name: str) -> OpSpec:
    return define_op(
        name,
        "input: T, min_input: float, max_input: float -> "
        "output: T, min_output: float, max_output: float",
        f"T: {TYPES}, ksize: list(int), strides: list(int), {_PADDING}",
    )  # fmt: skip


quantized_conv2d_op = define_op(
    "QuantizedConv2D",
    "input: Tinput, filter: Tfilter, min_input: float, max_input: float, min_filter: float, "
    "max_filter: float -> output: out_type, min_output: float, max_output: float",
    f"Tinput: {TYPES}, Tfilter: {TYPES}, out_type: {TYPES} = DT_QINT32, strides: list(int), "
    f"{_PADDING}, dilations: list(int) = [1, 1, 1, 1]",
)  # fmt: skip
quantized_relu_op = _activation("QuantizedRelu")
quantized_relu6_op = _activation("QuantizedRelu6")
quantized_relu_x_op = _activation("QuantizedReluX", "max_value: float, ")
quantized_max_pool_op = _pool("QuantizedMaxPool")
quantized_avg_pool_op = _pool("QuantizedAvgPool")
quantized_batch_norm_op = define_op(
    "QuantizedBatchNormWithGlobalNormalization",
    f"{_NORM_INPUTS} -> result: out_type, result_min: float, result_max: float",
    f"Tinput: {TYPES}, out_type: {TYPES}, variance_epsilon: float, "
    "scale_after_normalization: bool",
)  # fmt: skip
quantized_instance_norm_op = define_op(
    "QuantizedInstanceNorm",
    "x: T, x_min: float, x_max: float -> y: T, y_min: float, y_max: float",
    f"T: {TYPES}, output_range_given: bool = false, given_y_min: float = 0, "
    "given_y_max: float = 0, variance_epsilon: float = 1e-05, min_separation: float = 0.001",
)  # fmt: skip

for _op in (
    quantized_conv2d_op, quantized_relu_op, quantized_relu6_op, quantized_relu_x_op,
    quantized_max_pool_op, quantized_avg_pool_op, quantized_batch_norm_op,
    quantized_instance_norm_op,
):  # fmt: skip
    no_gradient(_op)


# ---------------------------------------------------------------- shapes
@quantized_conv2d_op.shape
def _conv2d_shape(sig: ShapeSig) -> list[Shape]:
    check_scalars(sig, 2)
    return shape_as(conv2d_op, sig, 2, data_format="NHWC")


@quantized_relu_op.shape
@quantized_relu6_op.shape
@quantized_relu_x_op.shape
def _activation_shape(sig: ShapeSig) -> list[Shape]:
    check_scalars(sig, 1)
    return [sig.shapes[0], (), ()]


@quantized_max_pool_op.shape
def _max_pool_shape(sig: ShapeSig) -> list[Shape]:
    check_scalars(sig, 1)
    return shape_as(max_pool_op, sig, 1, data_format="NHWC")


@quantized_avg_pool_op.shape
def _avg_pool_shape(sig: ShapeSig) -> list[Shape]:
    check_scalars(sig, 1)
    return shape_as(avg_pool_op, sig, 1, data_format="NHWC")


@quantized_batch_norm_op.shape
def _batch_norm_shape(sig: ShapeSig) -> list[Shape]:
    *space, channels = shapes.with_rank(sig.shapes[0], 4)
    for i in range(3, 15, 3):
        (length,) = shapes.with_rank(sig.shapes[i], 1)
        channels = shapes.merge_dim(channels, length)
    for i in set(range(15)) - set(range(0, 15, 3)):
        shapes.with_rank(sig.shapes[i], 0)
    return [(*space, channels), (), ()]


@quantized_instance_norm_op.shape
def _instance_norm_shape(sig: ShapeSig) -> list[Shape]:
    check_scalars(sig, 1)
    return [shapes.with_rank(sig.shapes[0], 4), (), ()]


# ---------------------------------------------------------------- public functions
@extensible
def quantized_conv2d(
    input: Any, filter: Any, min_input: Any, max_input: Any, min_filter: Any, max_filter: Any,
    strides: Any, padding: str, out_type: Any = dtypes.qint32, dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
) -> Any:  # fmt: skip
    """Convolution of quantized images, its sums as 32-bit integers.

    Args:
        input: a quint8 tensor [batch, height, width, channels].
        filter: a quint8 or qint8 tensor [height, width, channels, outputs].
        min_input: the number that the lowest integer of `input` stands for, a float32 scalar.
        max_input: the number that its highest integer stands for.
        min_filter: the number that the lowest integer of `filter` stands for.
        max_filter: the number that its highest integer stands for.
        strides: four integers, the first and the last of which are 1.
        padding: "SAME" (with the integer that stands for 0) or "VALID".
        out_type: qint32.
        dilations: four integers.
        name: a name for the operation.

    Returns:
        `(output, min_output, max_output)`.

    Raises:
        ValueError: the shapes do not fit (`InvalidArgumentError` at run time).
    """
    return quantized_conv2d_op(
        input, filter, min_input, max_input, min_filter, max_filter, strides=strides,
        padding=padding, out_type=out_type, dilations=list(dilations), name=name,
    )  # fmt: skip


@extensible
def quantized_max_pool(
    input: Any, min_input: Any, max_input: Any, ksize: Any, strides: Any, padding: str,
    name: str | None = None,
) -> Any:  # fmt: skip
    """The maximum of each window of quantized images.

    Args:
        input: a quint8 or qint8 tensor [batch, height, width, channels].
        min_input: the number that the lowest integer stands for, a float32 scalar.
        max_input: the number that the highest integer stands for.
        ksize: four integers, the window's size in each dimension.
        strides: four integers, the window's steps.
        padding: "SAME" or "VALID".
        name: a name for the operation.

    Returns:
        `(output, min_output, max_output)`, the range that of the input.

    Raises:
        ValueError: the shapes do not fit (`InvalidArgumentError` at run time).
    """
    return quantized_max_pool_op(
        input, min_input, max_input, ksize=ksize, strides=strides, padding=padding, name=name
    )


@extensible
def quantized_avg_pool(
    input: Any, min_input: Any, max_input: Any, ksize: Any, strides: Any, padding: str,
    name: str | None = None,
) -> Any:  # fmt: skip
    """The mean of each window of quantized images, rounded towards zero.

    Args and results are those of `quantized_max_pool`.

    Args:
        input: quantized images in NHWC.
        min_input: what the lowest integer stands for.
        max_input: what the highest integer stands for.
        ksize: the window's size in each dimension.
        strides: its steps.
        padding: "SAME" or "VALID".
        name: a name for the operation.
    """
    return quantized_avg_pool_op(
        input, min_input, max_input, ksize=ksize, strides=strides, padding=padding, name=name
    )


@extensible
def quantized_relu_x(
    features: Any, max_value: Any, min_features: Any, max_features: Any,
    out_type: Any = dtypes.quint8, name: str | None = None,
) -> Any:  # fmt: skip
    """`min(max(features, 0), max_value)` of a quantized tensor.

    Args:
        features: a quint8 or qint32 tensor.
        max_value: the upper limit, a float32 scalar.
        min_features: the number that the lowest integer stands for, a float32 scalar.
        max_features: the number that the highest integer stands for.
        out_type: the type of `features`.
        name: a name for the operation.

    Returns:
        `(activations, min_activations, max_activations)`, the range that of the input.

    Raises:
        ValueError: the shapes do not fit (`InvalidArgumentError` at run time).
    """
    return quantized_relu_x_op(
        features, max_value, min_features, max_features, out_type=out_type, name=name
    )
