"""Patterns of ops that run as one: a product, its bias and its activation; a norm and its relu.

The bias and the activation are one pass in place over each block of the product, while it is hot.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from opdock.plugin import DType, FusionPattern, KernelTable, NodeSig, P, dtypes
from opdock_ckernels.families.conv import Finish, convolution
from opdock_ckernels.families.depthwise import depthwise_convolution
from opdock_ckernels.families.linalg import product
from opdock_ckernels.families.norm import normalization
from opdock_ckernels.pointwise import formula
from opdock_ckernels.protocols import Array

__all__ = ["patterns", "table"]

table = KernelTable()
_TYPES = frozenset({dtypes.float32, dtypes.float64})

# Op -> its scalar expression over v; "" is a bias without an activation behind it.
_ACTIVATIONS: Final = {
    "": "v",
    "Relu": "max(v, 0)",
    "Relu6": "min(max(v, 0), 6)",
    "LeakyRelu": "where(v > 0, v, alpha * v)",
    "Elu": "where(v < 0, expm1(v), v)",
    "Sigmoid": "1 / (1 + exp(-v))",
    "Tanh": "tanh(v)",
}
_ADD: Final = "BiasAdd|BiasAddV1|AddV2|Add"


def _epilogue(sig: NodeSig, dtype: DType, activation: str) -> Callable[[Array, Array], None]:
    """Adds a bias to the last dimension and applies an activation, in place."""
    text = _ACTIVATIONS[activation].replace("v", "(x + b)")
    numbers = {"alpha": float(sig.attrs["alpha"])} if activation == "LeakyRelu" else {}
    program = formula(sig.device, text, {"x": dtype, "b": dtype}, dtype, **numbers)

    def finish(rows: Array, bias: Array) -> None:
        program(rows, bias, into=rows)

    return finish


def _inner(sig: NodeSig, name: str, op: str) -> NodeSig:
    """The signature of the matched node that computes the product."""
    return NodeSig(
        op, sig.name, sig.attrs[name], sig.in_shapes, sig.in_dtypes, sig.out_shapes,
        sig.out_dtypes, device=sig.device, resources=sig.resources,
    )  # fmt: skip


Maker = Callable[[NodeSig, Finish], Callable[..., Array]]


def _binder(op: str, make: Maker, activation: str) -> Callable[[NodeSig], Callable[..., Array]]:
    def bind(sig: NodeSig) -> Callable[..., Array]:
        finish = _epilogue(sig, sig.in_dtypes[0], activation)
        return make(_inner(sig, "product", op), finish)

    bind.__qualname__ = f"fused {op} {activation}".strip()
    return bind


def _suits(nodes: Mapping[str, NodeSig]) -> bool | str:
    """Whether what is added is a vector along the product's last logical dimension."""
    product_, bias = nodes["product"], nodes["bias"]
    out, vector = product_.out_shapes[0], bias.in_shapes[1]
    if out is None or vector is None or len(vector) != 1:
        return "what is added is no vector"
    first = product_.attrs.get("data_format", "NHWC") == "NCHW"
    channel = out[1 if first else -1]
    if None in (channel, vector[0]) or channel != vector[0]:
        return "the vector is not as long as there are channels"
    if bias.op == "BiasAdd" and len(out) == 4:
        same = bias.attrs.get("data_format", "NHWC") == ("NCHW" if first else "NHWC")
        return same or "bias and product have different data formats"
    return not first or "what is added runs along the width"


def _product_patterns() -> list[FusionPattern]:
    found = []
    makers: dict[str, tuple[str, Maker]] = {
        "conv": ("Conv2D", convolution),
        "depthwise": ("DepthwiseConv2dNative", depthwise_convolution),
        "matmul": ("MatMul", product),
    }
    for short, (op, make) in makers.items():
        for activation in _ACTIVATIONS:
            private = f"ckernels>{op}Bias{activation}"
            table.binder(private, T=_TYPES)(_binder(op, make, activation))
            biased = P(_ADD, P(op, "x", "w", name="product"), "b", name="bias")
            found.append(
                FusionPattern(
                    name="_".join(filter(None, (short, "bias", activation.lower()))),
                    pattern=P(activation, biased) if activation else biased,
                    op=private,
                    when=_suits,
                    benefit=4 if activation else 3,
                )
            )
    return found


def _norm_pattern(name: str, ops: str, results: int, private: str) -> FusionPattern:
    norm = P(ops, "x", "scale", "offset", "mean", "variance", name="norm")
    outputs = (("", 0), *(("norm", i) for i in range(1, results)))
    return FusionPattern(name=name, pattern=P("Relu", norm), op=private, benefit=3, outputs=outputs)


@table.binder("ckernels>FusedBatchNormRelu", T=frozenset({dtypes.float32}))
def norm_relu(sig: NodeSig) -> Callable[..., Any]:
    """The normalization with negative results set to zero in the same pass."""
    return normalization(_inner(sig, "norm", "FusedBatchNorm"), relu=True)


@table.binder("ckernels>FusedBatchNormV3Relu", T=frozenset({dtypes.float32}))
def norm_v3_relu(sig: NodeSig) -> Callable[..., Any]:
    """As `norm_relu`, for the version with six results."""
    return normalization(_inner(sig, "norm", "FusedBatchNormV3"), relu=True)


patterns: Final = (
    *_product_patterns(),
    _norm_pattern("norm_relu", "FusedBatchNorm|FusedBatchNormV2", 5, "ckernels>FusedBatchNormRelu"),
    _norm_pattern("norm_v3_relu", "FusedBatchNormV3", 6, "ckernels>FusedBatchNormV3Relu"),
)
"""What the backends of these kernels declare in their `BackendSpec`."""
