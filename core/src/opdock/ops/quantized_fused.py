"""Layers of 8-bit networks in one op each: product, bias, sum, relu and the way back to 8 bits.

Graphs that Intel's tools have quantized are made of these. Their integers are symmetric: 0 stands
for 0, and the highest integer for the larger end of the range, without its sign. A range of weights
may have an end for each output channel. TensorFlow has no functions for them but `tf.raw_ops`.
"""

from __future__ import annotations

from opdock import shapes
from opdock.ops.bias import bias_add_op
from opdock.ops.conv import conv2d_op
from opdock.ops.depthwise import depthwise_op
from opdock.ops.linalg import matmul_op
from opdock.ops.quantize import TYPES, check_scalars
from opdock.ops.quantized import shape_as
from opdock.ops.registry import Cost, Fails, OpSpec, Shape, ShapeSig, Traits, define_op
from opdock.ops.support.array_util import no_gradient

_WINDOWS = (
    "strides: list(int), padding: {'SAME', 'VALID'}, dilations: list(int) = [1, 1, 1, 1]"
)  # fmt: skip
_PADDED = f"{_WINDOWS}, padding_list: list(int) = []"
_MATRICES = (
    "transpose_a: bool = false, transpose_b: bool = false, "
    "input_quant_mode: {'MIN_FIRST', 'SCALED'} = 'MIN_FIRST'"
)


def _define(
    name: str, factors: tuple[str, str], types: tuple[str, str], result: tuple[str, str, str],
    attrs: str, any_bias: bool = False,
) -> OpSpec:  # fmt: skip
    """An op whose name says what it does after the product.

    Args:
        name: its type.
        factors: the names of the inputs that are multiplied.
        types: the names of their types.
        result: the names of the output, of its type and the suffix of its range's ends.
        attrs: further attributes.
        any_bias: whether the bias of an op without requantization may be integers.
    """
    narrowed, summed = "AndRequantize" in name, "Sum" in name
    inputs = [f"{f}: {t}" for f, t in zip(factors, types, strict=True)]
    attributes = [f"{t}: {TYPES}" for t in types]
    if "WithBias" in name:
        wide = narrowed or any_bias
        inputs.append("bias: Tbias" if wide else "bias: float")
        attributes += ["Tbias: {float, qint32}"] if wide else []
    inputs += [f"{end}_{f}: float" for f in factors for end in ("min", "max")]
    if narrowed:
        inputs += ["min_freezed_output: float", "max_freezed_output: float"]
    if summed and narrowed:
        inputs += ["summand: Tsummand", "min_summand: float", "max_summand: float"]
        attributes.append(f"Tsummand: {TYPES}")
    elif summed:
        inputs.append("summand: float")
    default = "DT_QINT32" if not narrowed else "DT_QUINT8" if "Relu" in name else "DT_QINT8"
    out, kind, suffix = result
    return define_op(
        name,
        f"{', '.join(inputs)} -> {out}: {kind}, min_{suffix}: float, max_{suffix}: float",
        f"{', '.join(attributes)}, {kind}: {TYPES} = {default}, {attrs}",
    )  # fmt: skip


def _layer(name: str, attrs: str) -> OpSpec:
    return _define(
        name, ("input", "filter"), ("Tinput", "Tfilter"), ("output", "out_type", "output"), attrs
    )


_convolutions = [
    _layer(f"QuantizedConv2D{what}", _PADDED)
    for what in (
        "AndRequantize", "WithBias", "WithBiasAndRequantize", "AndRelu", "AndReluAndRequantize",
        "WithBiasAndRelu", "WithBiasAndReluAndRequantize", "WithBiasSumAndRelu",
        "WithBiasSumAndReluAndRequantize", "WithBiasSignedSumAndReluAndRequantize",
    )
] + [_layer("QuantizedConv2DPerChannel", _WINDOWS)]  # fmt: skip
_depthwise = [
    _layer(f"QuantizedDepthwiseConv2D{what}", _WINDOWS)
    for what in ("", "WithBias", "WithBiasAndRelu", "WithBiasAndReluAndRequantize")
]
_products = [
    _define(
        f"QuantizedMatMulWithBias{what}", ("a", "b"), ("T1", "T2"), ("out", "Toutput", "out"),
        _MATRICES, any_bias=what == "",
    )
    for what in ("", "AndRelu", "AndReluAndRequantize")
]  # fmt: skip
requantize_op = define_op(
    "RequantizePerChannel",
    "input: T, input_min: float, input_max: float, requested_output_min: float, "
    "requested_output_max: float -> output: out_type, output_min: float, output_max: float",
    f"T: {TYPES} = DT_QINT32, out_type: {TYPES} = DT_QUINT8",
)  # fmt: skip
range_op = define_op(
    "RequantizationRangePerChannel",
    "input: T, input_min: float, input_max: float -> output_min: float, output_max: float",
    f"T: {TYPES} = DT_QINT32, clip_value_max: float",
)  # fmt: skip

for _op in (*_convolutions, *_depthwise, *_products):
    _op.declare(Traits(cost=Cost.PRODUCT, fails=Fails.BY_SHAPE))
for _op in (*_convolutions, *_depthwise, *_products, requantize_op, range_op):
    no_gradient(_op)


# ---------------------------------------------------------------- shapes
def _layer_shape(sig: ShapeSig, plain: OpSpec) -> list[Shape]:
    """Of the result, and of the ends of its range: those of the weights' range, or scalars."""
    biased, narrowed = "WithBias" in sig.spec.name, "AndRequantize" in sig.spec.name
    first = 3 if biased else 2
    for shape in sig.shapes[first : first + 2]:
        shapes.with_rank(shape, 0)
    ends = [shapes.with_rank_at_most(s, 1) for s in sig.shapes[first + 2 : first + 4]]
    if narrowed:
        for shape in sig.shapes[first + 4 : first + 6]:
            shapes.with_rank(shape, 0)
        ends = [(), ()]
    (result, *_) = shape_as(plain, sig, 2, data_format="NHWC")
    return [_with_bias(sig, result) if biased else result, *ends]


def _with_bias(sig: ShapeSig, result: Shape) -> Shape:
    assert bias_add_op.shape_fn is not None
    both = [result, sig.shapes[2]]
    attrs = {**sig.attrs, "data_format": "NHWC"}
    made: Shape = bias_add_op.shape_fn(
        ShapeSig(sig.spec, sig.name, both, sig.dtypes[:2], attrs, 1, sig.const)
    )
    return made


def _convolution_shape(sig: ShapeSig) -> list[Shape]:
    return _layer_shape(sig, conv2d_op)


def _depthwise_shape(sig: ShapeSig) -> list[Shape]:
    return _layer_shape(sig, depthwise_op)


def _product_shape(sig: ShapeSig) -> list[Shape]:
    check_scalars(sig, 3)
    (result, *_) = shape_as(matmul_op, sig, 2)
    return [_with_bias(sig, result), (), ()]


for _spec, _shape in (
    *((op, _convolution_shape) for op in _convolutions),
    *((op, _depthwise_shape) for op in _depthwise), *((op, _product_shape) for op in _products),
):  # fmt: skip
    _spec.shape(_shape)


def _channels(sig: ShapeSig) -> None:
    for shape in sig.shapes[1:3]:
        shapes.with_rank(shape, 1)


@requantize_op.shape
def _requantize_shape(sig: ShapeSig) -> list[Shape]:
    _channels(sig)
    check_scalars(sig, 3)
    return [sig.shapes[0], (), ()]


@range_op.shape
def _range_shape(sig: ShapeSig) -> list[Shape]:
    _channels(sig)
    return [(), ()]
