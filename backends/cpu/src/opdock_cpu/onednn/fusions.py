"""Which nodes oneDNN computes at once: products with bias, sum and activation."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

from opdock.plugin import FusionPattern, NodeSig, P, dtypes
from opdock_cpu.onednn.epilogue import ACTIVATIONS
from opdock_cpu.onednn.library import reason

__all__ = ["FUSED_CONV", "FUSED_MATMUL", "WORTH", "op_name", "patterns"]

WORTH: Final = 200_000
"""Multiply-adds from which oneDNN wins over BLAS: a call costs 2 us, one through NumPy 0.4."""

_NORM: Final = "FusedBatchNormV3|FusedBatchNormV2|FusedBatchNorm"
_ADD: Final = "AddV2|Add"

_DEPTHWISE: Final = ("", "Relu", "Relu6")

FUSED_CONV: Final = (
    *(
        ("Conv2D", kind, residual, activation)
        for kind in ("Bias", "Norm")
        for residual in (True, False)
        for activation in ACTIVATIONS
    ),
    # What networks of depthwise convolutions consist of.
    *(
        ("DepthwiseConv2dNative", kind, False, activation)
        for kind in ("Bias", "Norm")
        for activation in _DEPTHWISE
    ),
)
"""(convolution, what follows it, whether a sum follows, activation) of each fused op."""

FUSED_MATMUL: Final = tuple(ACTIVATIONS)
"""The activations behind matrix product and bias."""


def op_name(*parts: Any) -> str:
    """The private op type of a fused op."""
    words = ["Add" if p is True else p for p in parts if p]
    return "opdock_cpu>" + "".join(words)


def _simple_name(*parts: Any) -> str:
    return "onednn_" + "_".join(("add" if p is True else str(p)).lower() for p in parts if p)


def _usable(nodes: Mapping[str, NodeSig]) -> str:
    why = reason()
    if why:
        return why
    first = next(iter(nodes.values()))
    if any(t != dtypes.float32 for t in (first.out_dtypes[0], first.in_dtypes[0])):
        return "it computes float32 only"
    return ""


def _same_format(nodes: Mapping[str, NodeSig]) -> str:
    formats = {n.attrs["data_format"] for k, n in nodes.items() if k in ("conv", "bias", "norm")}
    if len(formats) > 1:
        return f"the data formats differ: {', '.join(sorted(formats))}"
    return ""


def _when_conv(nodes: Mapping[str, NodeSig]) -> bool | str:
    return _usable(nodes) or _same_format(nodes) or _residual(nodes) or True


def _residual(nodes: Mapping[str, NodeSig]) -> str:
    add = nodes.get("add")
    if add is None:
        return ""
    if nodes["conv"].attrs["data_format"] != "NHWC":
        return "sums are fused for channels last only"
    if add.in_shapes[0] != add.in_shapes[1] or add.in_shapes[0] is None:
        return "the sum broadcasts"
    return ""


def _conv_patterns() -> Iterator[FusionPattern]:
    for conv, kind, residual, activation in FUSED_CONV:
        inner = P(conv, "x", "w", name="conv")
        if kind == "Bias":
            inner = P("BiasAdd", inner, "b", name="bias")
        else:
            inner = P(
                _NORM,
                inner,
                "scale",
                "offset",
                "mean",
                "variance",
                name="norm",
                is_training=False,
            )
        if residual:
            inner = P(_ADD, inner, "r", name="add")
        if activation:
            inner = P(activation, inner)
        yield FusionPattern(
            name=_simple_name(conv, kind, residual, activation),
            pattern=inner,
            op=op_name(conv, kind, residual, activation),
            when=_when_conv,
            benefit=10 + 2 * residual + bool(activation),
        )


def _matmul_patterns() -> Iterator[FusionPattern]:
    for activation in FUSED_MATMUL:
        inner = P("BiasAdd", P("MatMul", "a", "b", name="matmul"), "bias", name="bias")
        yield FusionPattern(
            name=_simple_name("MatMul", "Bias", activation),
            pattern=P(activation, inner) if activation else inner,
            op=op_name("MatMul", "Bias", activation),
            when=lambda nodes: _usable(nodes) or True,
            benefit=10 + bool(activation),
        )


def _when_added(nodes: Mapping[str, NodeSig]) -> bool | str:
    why = _usable({"matmul": nodes["matmul"]})
    if why:
        return why
    product, total = nodes["matmul"].out_shapes[0], nodes["add"].out_shapes[0]
    if any(s is None or None in s or s != product for s in (total, *nodes["add"].in_shapes)):
        return "the sum broadcasts, or may"
    rows = nodes["matmul"].in_shapes[0]
    count = 1 if rows is None or rows[0] is None else rows[0]
    if math.prod(n or 1 for n in product or ()) * count < WORTH:
        return "it is a small product"
    return True


def _gradient_patterns() -> Iterator[FusionPattern]:
    # The gradient of weights that are used several times, in the turns of a loop above all: what a
    # product adds up in registers it adds to what is there. Other sums are clusters' matter.
    yield FusionPattern(
        name="onednn_matmul_added",
        pattern=P(
            _ADD, P("MatMul", "a", "b", name="matmul", transpose_a=True), "total", name="add"
        ),
        op=op_name("MatMul", True),
        when=_when_added,
        benefit=10,
    )
    # Channels first only. Measured with channels last: oneDNN takes a fifth longer for both than
    # for the filter alone with 64 channels, three times as long with few. There the bias's gradient
    # is one pass over memory, and none where the same pass makes what it sums up.
    yield FusionPattern(
        name="onednn_conv2d_filter_and_bias_gradient",
        pattern=P("Conv2DBackpropFilter", "x", "sizes", "g", name="conv", data_format="NCHW"),
        also=(P("BiasAddGrad", "g", name="bias", data_format="NCHW"),),
        outputs=(("conv", 0), ("bias", 0)),
        op=op_name("Conv2DFilterAndBiasGrad"),
        when=lambda nodes: _usable(nodes) or True,
        benefit=5,
    )


patterns: Final = (
    () if reason() else (*_conv_patterns(), *_matmul_patterns(), *_gradient_patterns())
)
"""All patterns, none without oneDNN; the kernels of their ops stand in `kernels.fused`."""
