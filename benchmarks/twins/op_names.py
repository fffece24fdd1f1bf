"""Op types whose function has one name in `torch` and in `jax.numpy`, and what both ask for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

SHARED: Final = {
    "Abs": "abs", "Acos": "acos", "Acosh": "acosh", "Add": "add", "AddV2": "add",
    "Asin": "asin", "Asinh": "asinh", "Atan": "atan", "Atan2": "atan2", "Atanh": "atanh",
    "Ceil": "ceil", "Cos": "cos", "Cosh": "cosh", "Div": "divide", "Equal": "equal",
    "Exp": "exp", "Expm1": "expm1", "Floor": "floor", "FloorDiv": "floor_divide",
    "FloorMod": "remainder", "Greater": "greater", "GreaterEqual": "greater_equal",
    "IsFinite": "isfinite", "IsInf": "isinf", "IsNan": "isnan", "Less": "less",
    "LessEqual": "less_equal", "Log": "log", "Log1p": "log1p", "LogicalAnd": "logical_and",
    "LogicalNot": "logical_not", "LogicalOr": "logical_or", "Maximum": "maximum",
    "Minimum": "minimum", "Mod": "fmod", "Mul": "multiply", "Neg": "negative",
    "NotEqual": "not_equal", "OnesLike": "ones_like", "Pow": "pow", "RealDiv": "divide",
    "Reciprocal": "reciprocal", "Rint": "round", "Select": "where", "SelectV2": "where",
    "Sign": "sign", "Sin": "sin", "Sinh": "sinh", "Sqrt": "sqrt", "Square": "square",
    "Sub": "subtract", "Tan": "tan", "Tanh": "tanh", "ZerosLike": "zeros_like",
}  # fmt: skip
"""The names of both libraries."""

REDUCTIONS: Final = {
    "All": "all", "Any": "any", "Max": "amax", "Mean": "mean", "Min": "amin", "Sum": "sum",
}  # fmt: skip
"""The names of both libraries for functions of an array and its axes."""

COMMON: Final = frozenset({*SHARED, *REDUCTIONS}) | {
    "AddN", "ArgMax", "ArgMin", "AvgPool", "BatchMatMul", "BatchMatMulV2", "BiasAdd",
    "BroadcastTo", "Cholesky", "ConcatV2", "Conv2D", "Cumprod", "Cumsum", "Digamma", "Elu",
    "Erf", "Erfc", "Erfinv", "ExpandDims", "FFT", "FFT2D", "GatherNd", "GatherV2", "IFFT",
    "Igamma", "Igammac", "Inv", "InvertPermutation", "L2Loss", "Lgamma", "LogSoftmax", "MatMul",
    "MatrixDeterminant", "MatrixInverse", "MatrixSolve", "MaxPool", "Pack", "Pad", "Prod",
    "Relu", "Relu6", "Reshape", "ReverseV2", "Rsqrt", "Selu", "Sigmoid", "Softmax", "Softplus",
    "Softsign", "SparseSoftmaxCrossEntropyWithLogits", "SquaredDifference", "Tile", "TopKV2",
    "Transpose", "UnsortedSegmentMax", "UnsortedSegmentSum", "Zeta",
}  # fmt: skip
"""Ops that are measured on devices: those of which a user of JAX, too, has a function."""


def axes(value: Any, rank: int) -> tuple[int, ...]:
    """Axes as numbers from 0 on, each once."""
    found = [int(value)] if getattr(value, "ndim", 0) == 0 else [int(a) for a in value]
    return tuple(sorted({a % rank for a in found}))


def plain(attrs: Mapping[str, Any]) -> bool:
    """Whether windows have NHWC's order and SAME's or VALID's padding, without dilation."""
    stretched = any(d != 1 for d in attrs.get("dilations") or ())
    usual = attrs.get("data_format", "NHWC") == "NHWC" and attrs["padding"] in ("SAME", "VALID")
    return usual and not stretched
