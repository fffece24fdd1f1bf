"""Arithmetic on quantized tensors: products, sums, concatenation.

Each tensor argument comes with the real numbers that its lowest and highest integer stand for, and
each result comes with its own.
"""

from __future__ import annotations

from typing import Any

from opdock.graph.nodes.dispatch import extensible
from opdock.ops.array import reshape_op
from opdock.ops.bias import bias_add_op
from opdock.ops.joining import concat_op
from opdock.ops.linalg import matmul_op
from opdock.ops.quantize import TYPES, check_scalars
from opdock.ops.registry import OpSpec, Shape, ShapeSig, define_op
from opdock.ops.support.array_util import no_gradient
from opdock.ops.support.common_shapes import broadcast2

__all__ = ["quantized_concat"]

_OUT = f"{TYPES} = DT_QINT32"


def _binary(name: str) -> OpSpec:
    return define_op(
        name,
        "x: T1, y: T2, min_x: float, max_x: float, min_y: float, max_y: float -> "
        "z: Toutput, min_z: float, max_z: float",
        f"T1: {TYPES}, T2: {TYPES}, Toutput: {_OUT}",
    )  # fmt: skip


quantized_matmul_op = define_op(
    "QuantizedMatMul",
    "a: T1, b: T2, min_a: float, max_a: float, min_b: float, max_b: float -> "
    "out: Toutput, min_out: float, max_out: float",
    f"T1: {TYPES}, T2: {TYPES}, Toutput: {_OUT}, transpose_a: bool = false, "
    f"transpose_b: bool = false, Tactivation: {TYPES} = DT_QUINT8",
)  # fmt: skip
quantized_bias_add_op = define_op(
    "QuantizedBiasAdd",
    "input: T1, bias: T2, min_input: float, max_input: float, min_bias: float, "
    "max_bias: float -> output: out_type, min_out: float, max_out: float",
    f"T1: {TYPES}, T2: {TYPES}, out_type: {TYPES}",
)  # fmt: skip
quantized_add_op = _binary("QuantizedAdd")
quantized_mul_op = _binary("QuantizedMul")
quantized_reshape_op = define_op(
    "QuantizedReshape",
    "tensor: T, shape: Tshape, input_min: float, input_max: float -> "
    "output: T, output_min: float, output_max: float",
    "T: type, Tshape: {int32, int64} = DT_INT32",
)  # fmt: skip
quantized_concat_op = define_op(
    "QuantizedConcat",
    "concat_dim: int32, values: N * T, input_mins: N * float, input_maxes: N * float -> "
    "output: T, output_min: float, output_max: float",
    "N: int >= 2, T: type",
)  # fmt: skip

for _op in (
    quantized_matmul_op, quantized_bias_add_op, quantized_add_op, quantized_mul_op,
    quantized_reshape_op, quantized_concat_op,
):  # fmt: skip
    no_gradient(_op)


# ---------------------------------------------------------------- shapes
def shape_as(spec: OpSpec, sig: ShapeSig, count: int, **attrs: Any) -> list[Shape]:
    """The shapes of a result and of its range's ends.

    Args:
        spec: the op that does the same to plain tensors.
        sig: the node.
        count: how many of its inputs that op takes.
        **attrs: attributes that only that op has.
    """
    assert spec.shape_fn is not None
    plain = ShapeSig(
        sig.spec, sig.name, sig.shapes[:count], sig.dtypes[:count], {**sig.attrs, **attrs}, 1,
        sig.const,
    )  # fmt: skip
    return [spec.shape_fn(plain), (), ()]


@quantized_matmul_op.shape
def _matmul_shape(sig: ShapeSig) -> list[Shape]:
    check_scalars(sig, 2)
    return shape_as(matmul_op, sig, 2)


@quantized_bias_add_op.shape
def _bias_add_shape(sig: ShapeSig) -> list[Shape]:
    check_scalars(sig, 2)
    return shape_as(bias_add_op, sig, 2)


@quantized_add_op.shape
@quantized_mul_op.shape
def _binary_shape(sig: ShapeSig) -> list[Shape]:
    check_scalars(sig, 2)
    return [broadcast2(sig), (), ()]


@quantized_reshape_op.shape
def _reshape_shape(sig: ShapeSig) -> list[Shape]:
    check_scalars(sig, 2)
    assert reshape_op.shape_fn is not None
    # The node itself: of a shape that is not known, some entries may be.
    return [reshape_op.shape_fn(sig), (), ()]


@quantized_concat_op.shape
def _concat_shape(sig: ShapeSig) -> list[Shape]:
    count = 1 + sig.attrs["N"]
    check_scalars(sig, count)
    return shape_as(concat_op, sig, count)


# ---------------------------------------------------------------- public functions
@extensible
def quantized_concat(
    concat_dim: Any, values: Any, input_mins: Any, input_maxes: Any, name: str | None = None
) -> Any:
    """Joins quantized tensors along one dimension, brought to one range.

    Args:
        concat_dim: the dimension, an int32 scalar.
        values: tensors of one quantized type, equal in all other dimensions.
        input_mins: for each, the number that its lowest integer stands for.
        input_maxes: for each, the number that its highest integer stands for.
        name: a name for the operation.

    Returns:
        `(output, output_min, output_max)`; the range holds all those of the inputs.

    Raises:
        ValueError: the shapes do not fit (`InvalidArgumentError` at run time).
    """
    return quantized_concat_op(concat_dim, values, input_mins, input_maxes, name=name)
