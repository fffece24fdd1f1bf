"""Rules from ONNX: what goes element by element, products, sums along axes, types."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from opdock import dtypes
from opdock.graph.nodes.operation import Tensor
from opdock.onnx.importing import Importer, Node, imports
from opdock.onnx.library import NoRuleError, dtype_of

_SAME: Final = {
    "Abs": "Abs", "Acos": "Acos", "Acosh": "Acosh", "Add": "AddV2", "And": "LogicalAnd",
    "Asin": "Asin", "Asinh": "Asinh", "Atan": "Atan", "Atanh": "Atanh", "Ceil": "Ceil",
    "Cos": "Cos", "Cosh": "Cosh", "Dropout": "Identity", "Equal": "Equal", "Erf": "Erf",
    "Exp": "Exp", "Floor": "Floor", "Greater": "Greater", "GreaterOrEqual": "GreaterEqual",
    "Identity": "Identity", "IsNaN": "IsNan", "Less": "Less", "LessOrEqual": "LessEqual",
    "Log": "Log", "Mul": "Mul", "Neg": "Neg", "Not": "LogicalNot", "Or": "LogicalOr",
    "Pow": "Pow", "Reciprocal": "Reciprocal", "Relu": "Relu", "Round": "Round",
    "Sigmoid": "Sigmoid", "Sign": "Sign", "Sin": "Sin", "Sinh": "Sinh", "Softplus": "Softplus",
    "Softsign": "Softsign", "Sqrt": "Sqrt", "Sub": "Sub", "Tan": "Tan", "Tanh": "Tanh",
    "Where": "SelectV2",
}  # fmt: skip
_MOST: Final = {"Dropout": 1}
"""Inputs beyond these say nothing in inference."""


@imports(*_SAME)
def _same(graph: Importer, node: Node) -> Any:
    if node.op == "Dropout" and (node.outputs > 1 or node.known(2, "mode", False)):
        raise NoRuleError("it is in training, or its mask is taken")
    inputs = [node.tensor(i) for i in range(_MOST.get(node.op, len(node.inputs)))]
    return graph.emit(_SAME[node.op], *inputs)


@imports("Constant")
def _constant(graph: Importer, node: Node) -> Any:
    kinds = {"value_float": np.float32, "value_floats": np.float32, "value_int": np.int64,
             "value_ints": np.int64}  # fmt: skip
    if "value" in node.attrs:
        return graph.constant(node.attrs["value"])
    for name, kind in kinds.items():
        if name in node.attrs:
            return graph.constant(np.array(node.attrs[name], kind))
    raise NoRuleError("its value is of a kind that is not read")


@imports("Div")
def _divide(graph: Importer, node: Node) -> Any:
    a, b = node.tensor(0), node.tensor(1)
    op = "RealDiv" if a.dtype.is_floating else "Div"
    return graph.emit(op, a, b)


@imports("Max", "Min", "Sum")
def _several(graph: Importer, node: Node) -> Any:
    op = {"Max": "Maximum", "Min": "Minimum", "Sum": "AddV2"}[node.op]
    out = node.tensor(0)
    for i in range(1, len(node.inputs)):
        out = graph.emit(op, out, node.tensor(i))
    return out


@imports("Clip")
def _clip(graph: Importer, node: Node) -> Any:
    x, ends = node.tensor(0), [node.optional(1), node.optional(2)]
    for i, name in enumerate(("min", "max")):
        if ends[i] is None and name in node.attrs:
            ends[i] = graph.constant(node.attrs[name], x.dtype.np)
    known = [None if e is None else node.known(i + 1, "end") for i, e in enumerate(ends)]
    if known == [0, 6]:
        return graph.emit("Relu6", x)
    for op, end in zip(("Maximum", "Minimum"), ends, strict=True):
        x = x if end is None else graph.emit(op, x, end)
    return x


@imports("Elu", "Selu", "LeakyRelu", "PRelu", "HardSigmoid")
def _activation(graph: Importer, node: Node) -> Any:
    x, attrs = node.tensor(0), node.attrs
    if node.op == "LeakyRelu":
        return graph.emit("LeakyRelu", x, alpha=attrs.get("alpha", 0.01))
    if node.op == "PRelu":
        below = graph.emit("Mul", graph.emit("Minimum", x, _like(graph, x, 0)), node.tensor(1))
        return graph.emit("AddV2", graph.emit("Relu", x), below)
    if node.op == "HardSigmoid":
        line = graph.emit("Mul", x, _like(graph, x, attrs.get("alpha", 0.2)))
        line = graph.emit("AddV2", line, _like(graph, x, attrs.get("beta", 0.5)))
        line = graph.emit("Maximum", line, _like(graph, x, 0))
        return graph.emit("Minimum", line, _like(graph, x, 1))
    usual = {"Elu": {"alpha": 1.0}, "Selu": {"alpha": 1.67326, "gamma": 1.0507}}[node.op]
    if any(abs(attrs.get(k, v) - v) > 1e-4 for k, v in usual.items()):
        raise NoRuleError("its factors are not the usual ones")
    return graph.emit(node.op, x)


def _like(graph: Importer, x: Tensor, value: float) -> Tensor:
    return graph.constant(value, x.dtype.np)


@imports("Softmax", "LogSoftmax")
def _softmax(graph: Importer, node: Node) -> Any:
    rank, last = node.rank(), node.version >= 13
    axis = node.attrs.get("axis", -1 if last else 1) % rank
    if axis != rank - 1:
        raise NoRuleError("it goes along another axis than the last")
    return graph.emit(node.op, node.tensor(0))


@imports("Cast")
def _cast(graph: Importer, node: Node) -> Any:
    return graph.emit("Cast", node.tensor(0), DstT=dtype_of(node.attrs["to"]))


@imports("ArgMax", "ArgMin")
def _arg(graph: Importer, node: Node) -> Any:
    if node.attrs.get("select_last_index"):
        raise NoRuleError("it wants the last of equal elements")
    axis = graph.constant(node.attrs.get("axis", 0), np.int32)
    found: Tensor = graph.emit(node.op, node.tensor(0), axis, output_type=dtypes.int64)
    if not node.attrs.get("keepdims", 1):
        return found
    return graph.emit("ExpandDims", found, axis)


# ---------------------------------------------------------------- along axes
_REDUCED: Final = {
    "ReduceMax": "Max", "ReduceMean": "Mean", "ReduceMin": "Min", "ReduceProd": "Prod",
    "ReduceSum": "Sum",
}  # fmt: skip


@imports(*_REDUCED)
def _reduce(graph: Importer, node: Node) -> Any:
    axes = node.attrs.get("axes", node.known(1, "axes"))
    if axes is None or len(axes) == 0:
        if node.attrs.get("noop_with_empty_axes"):
            return node.tensor(0)
        axes = range(node.rank())
    keep = bool(node.attrs.get("keepdims", 1))
    axes = graph.constant(np.array(list(axes), np.int32))
    return graph.emit(_REDUCED[node.op], node.tensor(0), axes, keep_dims=keep)


# ---------------------------------------------------------------- products
@imports("MatMul")
def _product(graph: Importer, node: Node) -> Any:
    ranks = node.rank(0), node.rank(1)
    if min(ranks) < 2:
        raise NoRuleError("a factor is a vector")
    op = "MatMul" if ranks == (2, 2) else "BatchMatMulV2"
    return graph.emit(op, node.tensor(0), node.tensor(1))


@imports("Gemm")
def _gemm(graph: Importer, node: Node) -> Any:
    attrs: dict[str, Any] = node.attrs
    out: Tensor = graph.emit(
        "MatMul", node.tensor(0), node.tensor(1), transpose_a=bool(attrs.get("transA", 0)),
        transpose_b=bool(attrs.get("transB", 0)),
    )  # fmt: skip
    if attrs.get("alpha", 1.0) != 1.0:
        out = graph.emit("Mul", out, _like(graph, out, attrs["alpha"]))
    summand = node.optional(2)
    if summand is None:
        return out
    if attrs.get("beta", 1.0) != 1.0:
        summand = graph.emit("Mul", summand, _like(graph, out, attrs["beta"]))
    return graph.emit("AddV2", out, summand)
