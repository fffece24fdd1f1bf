"""Relaxed: rewrites that are exact on paper and change the last bits, for those who ask for them.

`ConfigProto.graph_options.rewrite_options.arithmetic_optimization = AGGRESSIVE` asks for them, or
`OPDOCK_RELAXED_MATH=1`.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from opdock.compiler.ir.block import Array, Node, Value
from opdock.compiler.rules.algebra import merged_reduction
from opdock.compiler.rules.rewrite import Rule, Rules, Site, constant, keeps, known, uniform

_CONVOLUTIONS: Final = ("Conv2D", "DepthwiseConv2dNative")


def _pow(node: Node, site: Site) -> Value | None:
    """Roots and cubes; a root has no sign of zero and no -inf, which a power has."""
    x, exponent, dtype = node.inputs[0], uniform(node.inputs[1]), node.out_dtypes[0]
    if exponent is None or not dtype.is_floating or not keeps(node, x):
        return None
    for value, op in ((0.5, "Sqrt"), (-0.5, "Rsqrt")):
        if exponent == value:
            return site.make(op, [x], {"T": dtype})
    if exponent == 3:
        square = site.make("Square", [x], {"T": dtype}, suffix="/square")
        return site.make("Mul", [square, x], {"T": dtype})
    return None


def _divide(node: Node, site: Site) -> Value | None:
    """Multiplication by a rounded inverse."""
    x, divisor, dtype = node.inputs[0], constant(node.inputs[1]), node.out_dtypes[0]
    if divisor is None or not dtype.is_floating or not divisor.all():
        return None
    with np.errstate(all="ignore"):
        inverse = (1 / divisor.astype(np.float64)).astype(dtype.np)
    if not np.isfinite(inverse.astype(np.float64)).all():
        return None
    factor = site.const(inverse, dtype, "/inverse")
    return site.make("Mul", [x, factor], {"T": dtype}, shape=node.out_shapes[0])


def _undone(inner_op: str) -> Rule:
    def rule(node: Node, site: Site) -> Value | None:
        inner = site.source(node.inputs[0], inner_op)
        return None if inner is None else inner.inputs[0]

    return rule


def _minus_itself(node: Node, site: Site) -> Value | None:
    """Nothing is left, unless x is not finite."""
    shape = known(node.out_shapes[0])
    a, b = node.inputs
    if a != b or shape is None or a.dtype._is_ref_dtype or int(np.prod(shape)) > 1024:
        return None
    return site.const(np.zeros(shape), node.out_dtypes[0], "")


def _reduce(node: Node, site: Site) -> Value | None:
    """A sum of sums, a mean of means of equally many."""
    inner = site.source(node.inputs[0], node.op)
    if inner is None or inner.attrs["keep_dims"] != node.attrs["keep_dims"]:
        return None
    if node.op == "Mean" and not node.out_dtypes[0].is_floating:
        return None
    return merged_reduction(node, site, inner)


def _scaled(node: Node, site: Site) -> Value | None:
    """A product with constant weights, times a constant: the weights take the factor."""
    for i in (0, 1):
        factor = constant(node.inputs[i])
        product = site.source(node.inputs[1 - i], "MatMul", *_CONVOLUTIONS)
        if product is None or factor is None or not keeps(node, node.inputs[1 - i]):
            continue
        per_output = _per_channel(factor, product)
        if per_output is not None:
            return _with_weights(node, site, product, per_output)
    return None


def _per_channel(factor: Array, product: Node) -> Array | None:
    """The factor of each output channel, or None if it varies otherwise."""
    if factor.dtype.kind != "f":
        return None
    if factor.size == 1:
        return factor.reshape(1)
    rank = len(product.out_shapes[0] or ())
    where = 1 if product.attrs.get("data_format") == "NCHW" else rank - 1
    shape = (1,) * (rank - factor.ndim) + factor.shape
    if factor.ndim > rank or any(d != 1 for a, d in enumerate(shape) if a != where):
        return None
    return factor.reshape(-1)


def _with_weights(node: Node, site: Site, product: Node, factor: Array) -> Value | None:
    weights = constant(product.inputs[1])
    if weights is None or weights.dtype.kind != "f":
        return None
    if product.op == "MatMul" and product.attrs["transpose_b"]:
        factor = factor.reshape(-1, 1)
    elif product.op == "DepthwiseConv2dNative" and factor.size > 1:
        factor = factor.reshape(weights.shape[2:])
    scaled = site.const(weights * factor, product.out_dtypes[0], "/weights")
    inputs = [product.inputs[0], scaled]
    return site.make(product.op, inputs, dict(product.attrs), shape=node.out_shapes[0])


def normalized(node: Node, site: Site) -> Value | None:
    """Batch norm of a frozen graph: the weights take the scale, and a bias is left."""
    product = site.source(node.inputs[0], *_CONVOLUTIONS)
    parts = [constant(v) for v in node.inputs[1:]]
    if product is None or node.attrs["is_training"] or any(p is None for p in parts):
        return None
    if node.attrs["data_format"] != product.attrs["data_format"]:
        return None
    if constant(product.inputs[1]) is None:
        return None
    scale, offset, mean, variance = (np.asarray(p, np.float64) for p in parts)
    factor = scale / np.sqrt(variance + node.attrs["epsilon"])
    folded = _with_weights(node, site, product, factor)
    if folded is None:
        return None
    folded.node.name += "/conv"
    dtype = node.out_dtypes[0]
    bias = site.const(offset - mean * factor, dtype, "/bias")
    attrs: dict[str, Any] = {"T": dtype, "data_format": node.attrs["data_format"]}
    return site.make("BiasAdd", [folded, bias], attrs, shape=node.out_shapes[0])


RULES: Final[Rules] = {
    "Pow": (_pow,),
    "Div": (_divide,),
    "RealDiv": (_divide,),
    "Log": (_undone("Exp"),),
    "Sub": (_minus_itself,),
    "Sum": (_reduce,),
    "Mean": (_reduce,),
    "Mul": (_scaled,),
    "FusedBatchNorm": (normalized,),
    "FusedBatchNormV2": (normalized,),
    "FusedBatchNormV3": (normalized,),
}
