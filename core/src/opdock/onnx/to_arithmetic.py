"""Rules to ONNX: what goes element by element, products, sums along axes, types."""

from __future__ import annotations

from typing import Final

import numpy as np

from opdock import dtypes
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.onnx.exporting import Exporter, exports
from opdock.onnx.library import NoRuleError, code_of

_SAME: Final = {
    "Abs": "Abs", "Acos": "Acos", "Acosh": "Acosh", "Add": "Add", "AddV2": "Add", "Asin": "Asin",
    "Asinh": "Asinh", "Atan": "Atan", "Atanh": "Atanh", "Ceil": "Ceil", "Cos": "Cos",
    "Cosh": "Cosh", "Elu": "Elu", "Equal": "Equal", "Erf": "Erf", "Exp": "Exp", "Floor": "Floor",
    "Greater": "Greater", "GreaterEqual": "GreaterOrEqual", "Identity": "Identity",
    "IsNan": "IsNaN", "Less": "Less", "LessEqual": "LessOrEqual", "Log": "Log",
    "LogicalAnd": "And", "LogicalNot": "Not", "LogicalOr": "Or", "Maximum": "Max",
    "Minimum": "Min", "Mul": "Mul", "Neg": "Neg", "Pow": "Pow", "RealDiv": "Div",
    "Reciprocal": "Reciprocal", "Relu": "Relu", "Round": "Round", "Select": "Where",
    "SelectV2": "Where", "Sigmoid": "Sigmoid", "Sign": "Sign", "Sin": "Sin", "Sinh": "Sinh",
    "Softplus": "Softplus", "Softsign": "Softsign", "Sqrt": "Sqrt", "StopGradient": "Identity",
    "Sub": "Sub", "Tan": "Tan", "Tanh": "Tanh", "PreventGradient": "Identity",
    "PlaceholderWithDefault": "Identity", "CheckNumerics": "Identity",
}  # fmt: skip


@exports(*_SAME)
def _same(to: Exporter, op: Operation) -> None:
    if op.type == "Select" and op.inputs[0].get_shape().ndims != op.inputs[1].get_shape().ndims:
        raise NoRuleError("its condition has another rank than what it chooses from")
    to.emit(_SAME[op.type], *op.inputs, out=op.outputs[0])


@exports("Const")
def _constant(to: Exporter, op: Operation) -> None:
    to.keep(op.outputs[0], to.known(op.outputs[0], "value"))


@exports("Div")
def _divide(to: Exporter, op: Operation) -> None:
    if not op.inputs[0].dtype.is_floating:
        raise NoRuleError("it divides integers")
    to.emit("Div", *op.inputs, out=op.outputs[0])


@exports("NotEqual")
def _differ(to: Exporter, op: Operation) -> None:
    to.emit("Not", to.emit("Equal", *op.inputs), out=op.outputs[0])


@exports("Square", "SquaredDifference", "Rsqrt")
def _two_steps(to: Exporter, op: Operation) -> None:
    x = op.inputs[0]
    if op.type == "Rsqrt":
        to.emit("Reciprocal", to.emit("Sqrt", x), out=op.outputs[0])
        return
    factor = to.name(x) if op.type == "Square" else to.emit("Sub", *op.inputs)
    to.emit("Mul", factor, factor, out=op.outputs[0])


@exports("Relu6", "ClipByValue")
def _clip(to: Exporter, op: Operation) -> None:
    if op.type == "Relu6":
        kind = op.inputs[0].dtype.np
        ends = [to.constant(0, kind), to.constant(6, kind)]
    else:
        if any(t.get_shape().ndims != 0 for t in op.inputs[1:]):
            raise NoRuleError("its ends are no scalars")
        ends = [to.name(t) for t in op.inputs[1:]]
    to.emit("Clip", op.inputs[0], *ends, out=op.outputs[0])


@exports("LeakyRelu")
def _leaky(to: Exporter, op: Operation) -> None:
    to.emit("LeakyRelu", op.inputs[0], out=op.outputs[0], alpha=float(op.attrs["alpha"]))


@exports("Selu")
def _selu(to: Exporter, op: Operation) -> None:
    to.emit(
        "Selu", op.inputs[0], out=op.outputs[0], alpha=1.6732632423543772, gamma=1.0507009873554805
    )


@exports("Softmax", "LogSoftmax")
def _softmax(to: Exporter, op: Operation) -> None:
    to.emit(op.type, op.inputs[0], out=op.outputs[0], axis=-1)


@exports("AddN")
def _add_all(to: Exporter, op: Operation) -> None:
    to.emit("Sum", *op.inputs, out=op.outputs[0])


@exports("Cast")
def _cast(to: Exporter, op: Operation) -> None:
    to.emit("Cast", op.inputs[0], out=op.outputs[0], to=code_of(op.outputs[0].dtype))


@exports("ArgMax", "ArgMin")
def _arg(to: Exporter, op: Operation) -> None:
    axis = int(to.known(op.inputs[1], "axis"))
    out, op_type = op.outputs[0], op.type
    if out.dtype is dtypes.int64:
        to.emit(op_type, op.inputs[0], out=out, axis=axis, keepdims=0)
        return
    found = to.emit(op_type, op.inputs[0], axis=axis, keepdims=0)
    to.emit("Cast", found, out=out, to=code_of(out.dtype))


# ---------------------------------------------------------------- along axes
_REDUCED: Final = {
    "Max": "ReduceMax", "Mean": "ReduceMean", "Min": "ReduceMin", "Prod": "ReduceProd",
}  # fmt: skip


@exports("Sum", *_REDUCED)
def _reduce(to: Exporter, op: Operation) -> None:
    axes = [int(a) for a in np.ravel(to.known(op.inputs[1], "axis"))]
    x, out, keep = op.inputs[0], op.outputs[0], int(op.attrs["keep_dims"])
    if not axes:
        to.emit("Identity", x, out=out)
    elif op.type == "Sum":
        to.emit("ReduceSum", x, to.constant(axes, np.int64), out=out, keepdims=keep)
    else:
        to.emit(_REDUCED[op.type], x, out=out, axes=axes, keepdims=keep)


# ---------------------------------------------------------------- products
@exports("MatMul", "BatchMatMul", "BatchMatMulV2")
def _product(to: Exporter, op: Operation) -> None:
    turns = ("transpose_a", "transpose_b") if op.type == "MatMul" else ("adj_x", "adj_y")
    factors = [_turned(to, t, op.attrs[k]) for t, k in zip(op.inputs, turns, strict=True)]
    to.emit("MatMul", *factors, out=op.outputs[0])


def _turned(to: Exporter, tensor: Tensor, turn: bool) -> str:
    if not turn:
        return to.name(tensor)
    rank = tensor.get_shape().ndims
    if rank is None or tensor.dtype.is_complex:
        raise NoRuleError("a factor is transposed whose rank is not known")
    order = [*range(rank - 2), rank - 1, rank - 2]
    return to.emit("Transpose", tensor, perm=order)
