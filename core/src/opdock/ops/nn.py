"""Activations: the Relu family, Elu, Selu, Softplus, Softsign, and what is built from them."""

from __future__ import annotations

from typing import Any

import numpy as np

from opdock import dtypes
from opdock.docstrings import explained
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.registry import Elementwise, Traits, define_op
from opdock.ops.support import common_shapes
from opdock.ops.support.nn_util import emit, zeros_like

__all__ = ["crelu", "elu", "leaky_relu", "relu", "relu6", "selu", "softplus", "softsign", "swish"]

_FLOATS = "T: {half, bfloat16, float, double}"

SELU_SCALE = 1.0507009873554804934193349852946
SELU_SCALE_ALPHA = 1.7580993408473768599402175208123


# ---------------------------------------------------------------- Relu, Relu6, LeakyRelu
relu_op = define_op(
    "Relu", "features: T -> activations: T", "T: {realnumbertype, qint8}", expr="max(features, 0)"
)
# A slope of 0 is a factor, as TensorFlow's is: infinity times it is nan. A mask that is cast and
# multiplied says the same, but XLA makes a selection of that, which gives 0.
relu_grad_op = define_op(
    "ReluGrad", "gradients: T, features: T -> backprops: T", "T: realnumbertype",
    expr="where(features > 0, gradients, gradients * 0)",
)  # fmt: skip
relu6_op = define_op(
    "Relu6", "features: T -> activations: T", "T: realnumbertype",
    expr="min(max(features, 0), 6)",
)  # fmt: skip
relu6_grad_op = define_op(
    "Relu6Grad", "gradients: T, features: T -> backprops: T", "T: realnumbertype",
    expr="where((features > 0) & (features < 6), gradients, gradients * 0)",
)  # fmt: skip
leaky_relu_op = define_op(
    "LeakyRelu", "features: T -> activations: T",
    "alpha: float = 0.2, T: {half, bfloat16, float, double} = DT_FLOAT",
    expr="where(features > 0, features, cast(alpha, T) * features)",
)  # fmt: skip
leaky_relu_grad_op = define_op(
    "LeakyReluGrad", "gradients: T, features: T -> backprops: T",
    "alpha: float = 0.2, T: {half, bfloat16, float, double} = DT_FLOAT",
    expr="where(features > 0, gradients, cast(alpha, T) * gradients)",
)  # fmt: skip

# ---------------------------------------------------------------- Elu, Selu, Softplus, Softsign
elu_op = define_op(
    "Elu", "features: T -> activations: T", _FLOATS,
    expr="where(features < 0, expm1(features), features)",
)  # fmt: skip
elu_grad_op = define_op(
    "EluGrad", "gradients: T, outputs: T -> backprops: T", _FLOATS,
    expr="where(outputs < 0, (outputs + 1) * gradients, gradients)",
)  # fmt: skip
selu_op = define_op(
    "Selu",
    "features: T -> activations: T",
    _FLOATS,
    expr=f"where(features < 0, {SELU_SCALE_ALPHA!r} * expm1(features), {SELU_SCALE!r} * features)",
)
for _op in (elu_op, selu_op):
    _op.declare(Traits(layout=Elementwise()))
selu_grad_op = define_op(
    "SeluGrad", "gradients: T, outputs: T -> backprops: T", _FLOATS,
    expr=f"where(outputs < 0, gradients * (outputs + {SELU_SCALE_ALPHA!r}), "
    f"gradients * {SELU_SCALE!r})",
)  # fmt: skip
softplus_op = define_op(
    "Softplus", "features: T -> activations: T", _FLOATS,
    expr="max(features, 0) + log1p(exp(-abs(features)))",
)  # fmt: skip
softplus_grad_op = define_op(
    "SoftplusGrad", "gradients: T, features: T -> backprops: T", _FLOATS,
    expr="gradients / (exp(-features) + 1)",
)  # fmt: skip
softsign_op = define_op(
    "Softsign", "features: T -> activations: T", _FLOATS, expr="features / (abs(features) + 1)"
)
softsign_grad_op = define_op(
    "SoftsignGrad", "gradients: T, features: T -> backprops: T", _FLOATS,
    expr="gradients / ((abs(features) + 1) * (abs(features) + 1))",
)  # fmt: skip

for _op in (
    relu_op, relu6_op, leaky_relu_op, elu_op, selu_op, softplus_op, softsign_op,
):  # fmt: skip
    _op.shape(common_shapes.unchanged)
for _op in (
    relu_grad_op, relu6_grad_op, leaky_relu_grad_op, elu_grad_op, selu_grad_op, softplus_grad_op,
    softsign_grad_op,
):  # fmt: skip
    _op.shape(common_shapes.merge_all)


# ---------------------------------------------------------------- gradients
@relu_op.gradient
def _relu_grad(op: Operation, grad: Tensor) -> Tensor:
    return relu_grad_op(grad, op.outputs[0])  # type: ignore[no-any-return]


@relu_grad_op.gradient
def _relu_grad_grad(op: Operation, grad: Tensor) -> list[Tensor]:
    x = op.inputs[1]
    return [relu_grad_op(grad, x), zeros_like(x)]


@relu6_op.gradient
def _relu6_grad(op: Operation, grad: Tensor) -> Tensor:
    return relu6_grad_op(grad, op.outputs[0])  # type: ignore[no-any-return]


@relu6_grad_op.gradient
def _relu6_grad_grad(op: Operation, grad: Tensor) -> list[Tensor]:
    x = op.inputs[1]
    return [relu6_grad_op(grad, x), zeros_like(x)]


@leaky_relu_op.gradient
def _leaky_relu_grad(op: Operation, grad: Tensor) -> Tensor:
    return leaky_relu_grad_op(grad, op.inputs[0], alpha=op.attrs["alpha"])  # type: ignore[no-any-return]


@leaky_relu_grad_op.gradient
def _leaky_relu_grad_grad(op: Operation, grad: Tensor) -> list[Tensor]:
    x = op.inputs[1]
    return [leaky_relu_grad_op(grad, x, alpha=op.attrs["alpha"]), zeros_like(x)]


@elu_op.gradient
def _elu_grad(op: Operation, grad: Tensor) -> Tensor:
    return elu_grad_op(grad, op.outputs[0])  # type: ignore[no-any-return]


def _where_negative(x: Tensor, value: Tensor) -> Tensor:
    negative = emit("Less", x, convert_to_tensor(0, x.dtype))
    return emit("Select", negative, value, zeros_like(x))  # type: ignore[no-any-return]


@elu_grad_op.gradient
def _elu_grad_grad(op: Operation, grad: Tensor) -> list[Tensor]:
    dy, outputs = op.inputs
    return [elu_grad_op(grad, outputs), _where_negative(outputs, emit("Mul", grad, dy))]


@selu_op.gradient
def _selu_grad(op: Operation, grad: Tensor) -> Tensor:
    return selu_grad_op(grad, op.outputs[0])  # type: ignore[no-any-return]


@selu_grad_op.gradient
def _selu_grad_grad(op: Operation, grad: Tensor) -> list[Tensor]:
    dy, outputs = op.inputs
    return [selu_grad_op(grad, outputs), _where_negative(outputs, emit("Mul", grad, dy))]


@softplus_op.gradient
def _softplus_grad(op: Operation, grad: Tensor) -> Tensor:
    return softplus_grad_op(grad, op.inputs[0])  # type: ignore[no-any-return]


@softplus_grad_op.gradient
def _softplus_grad_grad(op: Operation, grad: Tensor) -> list[Tensor]:
    # d/dx of dy * sigmoid(x) is dy * sigmoid(x) * sigmoid(-x): softplus_grad twice.
    dy, x = op.inputs
    second = softplus_grad_op(softplus_grad_op(emit("Mul", grad, dy), x), emit("Neg", x))
    return [softplus_grad_op(grad, x), second]


@softsign_op.gradient
def _softsign_grad(op: Operation, grad: Tensor) -> Tensor:
    return softsign_grad_op(grad, op.inputs[0])  # type: ignore[no-any-return]


@softsign_grad_op.gradient
def _softsign_grad_grad(op: Operation, grad: Tensor) -> list[Tensor]:
    # d/dx of dy / (1 + |x|)**2 is -2 dy sign(x) / (1 + |x|)**3.
    dy, x = op.inputs
    one = convert_to_tensor(1, x.dtype)
    slope = emit("Mul", convert_to_tensor(-2, x.dtype), emit("Sign", x))
    bend = emit("RealDiv", slope, emit("Add", emit("Abs", x), one))
    second = softsign_grad_op(emit("Mul", emit("Mul", grad, dy), bend), x)
    return [softsign_grad_op(grad, x), second]


# ---------------------------------------------------------------- decompositions
@leaky_relu_op.decomposition
def _leaky_relu_parts(sig: Any, features: Tensor) -> Tensor:
    alpha = convert_to_tensor(sig.attrs["alpha"], features.dtype)
    zero = convert_to_tensor(0, features.dtype)
    kept = emit("Maximum", features, zero)
    return emit("Add", kept, emit("Mul", alpha, emit("Minimum", features, zero)))  # type: ignore[no-any-return]


@leaky_relu_grad_op.decomposition
def _leaky_relu_grad_parts(sig: Any, gradients: Tensor, features: Tensor) -> Tensor:
    alpha = convert_to_tensor(sig.attrs["alpha"], features.dtype)
    positive = emit("Greater", features, convert_to_tensor(0, features.dtype))
    return emit("Select", positive, gradients, emit("Mul", alpha, gradients))  # type: ignore[no-any-return]


# ---------------------------------------------------------------- public functions
_WORDS = {
    "features": "a tensor of a floating type.",
    "name": "a name for the operation.",
    "returns": "A tensor of the same type and shape.",
}
"""What the functions here take."""


@extensible
@explained(_WORDS, features="a tensor of a real number type.")
def relu(features: Any, name: str | None = None) -> Tensor:
    """Rectified linear: `max(features, 0)`."""
    return relu_op(features, name=name)  # type: ignore[no-any-return]


@extensible
@explained(_WORDS, features="a tensor of a real number type.")
def relu6(features: Any, name: str | None = None) -> Tensor:
    """Rectified linear capped at 6: `min(max(features, 0), 6)`."""
    return relu6_op(features, name=name)  # type: ignore[no-any-return]


@extensible
@explained(
    _WORDS,
    features="a tensor of a floating type; integers are cast to float32.",
    alpha="the slope below zero.",
    returns="The activations, of the shape of `features`.",
)
def leaky_relu(features: Any, alpha: Any = 0.2, name: str | None = None) -> Tensor:
    """Rectified linear that lets `alpha` times the negative part through."""
    with name_scope(name, "LeakyRelu", [features, alpha]) as scope:
        features = convert_to_tensor(features, name="features")
        if features.dtype.is_integer:
            features = emit("Cast", features, DstT=dtypes.float32, name="ToFloat")
        if isinstance(alpha, np.ndarray):
            alpha = alpha.item()
        if isinstance(alpha, Tensor):  # as before TF 1.13; the op's alpha is an attribute
            return emit("Maximum", alpha * features, features, name=scope)  # type: ignore[no-any-return]
        return leaky_relu_op(features, alpha=alpha, name=scope)  # type: ignore[no-any-return]


@extensible
@explained(_WORDS)
def elu(features: Any, name: str | None = None) -> Tensor:
    """Exponential linear: `exp(features) - 1` below zero, `features` above."""
    return elu_op(features, name=name)  # type: ignore[no-any-return]


@extensible
@explained(_WORDS)
def selu(features: Any, name: str | None = None) -> Tensor:
    """Scaled exponential linear: keeps activations near mean 0 and variance 1.

    `scale * alpha * (exp(features) - 1)` below zero, `scale * features` above.
    """
    return selu_op(features, name=name)  # type: ignore[no-any-return]


@extensible
@explained(_WORDS)
def softplus(features: Any, name: str | None = None) -> Tensor:
    """`log(exp(features) + 1)`, computed without overflow."""
    return softplus_op(features, name=name)  # type: ignore[no-any-return]


@extensible
@explained(_WORDS)
def softsign(features: Any, name: str | None = None) -> Tensor:
    """`features / (abs(features) + 1)`."""
    return softsign_op(features, name=name)  # type: ignore[no-any-return]


@extensible
@explained(_WORDS)
def swish(features: Any) -> Tensor:
    """`features * sigmoid(features)`."""
    features = convert_to_tensor(features, name="features")
    return emit("Mul", features, emit("Sigmoid", features), name="mul")  # type: ignore[no-any-return]


@extensible
@explained(
    _WORDS,
    features="a tensor of a real number type.",
    axis="the axis to concatenate along; it doubles.",
    returns="A tensor of the same type, twice as large along `axis`.",
)
def crelu(features: Any, name: str | None = None, axis: int = -1) -> Tensor:
    """Concatenated Relu: the Relu of `features` beside the Relu of `-features`."""
    with name_scope(name, "CRelu", [features]) as scope:
        features = convert_to_tensor(features, name="features")
        # The scope's own name is the concatenation's in TF.
        both = emit("ConcatV2", [features, emit("Neg", features)], axis, name=scope)
        return relu_op(both)  # type: ignore[no-any-return]
