"""Adding a bias along the channel dimension, and the layers made of it."""

from __future__ import annotations

from typing import Any

from opdock import shapes
from opdock.docstrings import explained
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.nn import relu
from opdock.ops.registry import Fails, Formatted, Shape, ShapeSig, Traits, define_op
from opdock.ops.support.nn_util import emit

__all__ = ["bias_add", "bias_add_v1", "relu_layer", "xw_plus_b"]

_FORMAT = "data_format: {'NHWC', 'NCHW'} = 'NHWC'"

bias_add_op = define_op("BiasAdd", "value: T, bias: T -> output: T", f"T: numbertype, {_FORMAT}")
bias_add_op.declare(Traits(fails=Fails.BY_SHAPE, layout=Formatted((0,), leads=False)))
bias_add_v1_op = define_op("BiasAddV1", "value: T, bias: T -> output: T", "T: numbertype")
bias_add_grad_op = define_op(
    "BiasAddGrad", "out_backprop: T -> output: T", f"T: numbertype, {_FORMAT}"
)
bias_add_grad_op.declare(Traits(fails=Fails.BY_SHAPE, layout=Formatted((0,), (), (), leads=False)))


def _channels_first(attrs: dict[str, Any]) -> bool:
    return attrs.get("data_format") == "NCHW"


@bias_add_op.shape
@bias_add_v1_op.shape
def _bias_add_shape(sig: ShapeSig) -> Shape:
    first = _channels_first(sig.attrs)
    value = shapes.with_rank_at_least(sig.shapes[0], 3 if first else 2)
    (bias,) = shapes.with_rank(sig.shapes[1], 1)
    if value is None:
        return None
    axis = 1 if first else len(value) - 1
    channels = shapes.merge_dim(value[axis], bias)
    return (*value[:axis], channels, *value[axis + 1 :])


@bias_add_grad_op.shape
def _bias_add_grad_shape(sig: ShapeSig) -> Shape:
    first = _channels_first(sig.attrs)
    value = shapes.with_rank_at_least(sig.shapes[0], 3 if first else 2)
    return (None,) if value is None else (value[1 if first else -1],)


# ---------------------------------------------------------------- gradients
@bias_add_op.gradient
def _bias_add_grad(op: Operation, grad: Tensor) -> list[Tensor]:
    return [grad, bias_add_grad_op(grad, data_format=op.attrs["data_format"])]


@bias_add_v1_op.gradient
def _bias_add_v1_grad(op: Operation, grad: Tensor) -> list[Tensor]:
    axes = emit("Range", 0, emit("Sub", emit("Rank", grad), 1), 1)
    return [grad, emit("Sum", grad, axes)]


@bias_add_grad_op.gradient
def _bias_add_grad_grad(op: Operation, grad: Tensor) -> Tensor:
    # The bias gradient is a sum, so its own gradient spreads back over what was summed.
    source = op.inputs[0]
    if _channels_first(op.attrs):
        grad = _beside_channels(grad, source)
    return emit("BroadcastTo", grad, emit("Shape", source))  # type: ignore[no-any-return]


def _beside_channels(bias: Tensor, value: Tensor) -> Tensor:
    """`bias` reshaped to [channels, 1, ...] so that it lines up with dimension 1 of `value`."""
    static = value.raw_shape
    if static is not None:
        target: Any = [-1] + [1] * (len(static) - 2)
    else:
        trailing = emit("Sub", emit("Rank", value), 2)
        ones = emit("Fill", emit("Reshape", trailing, [1]), 1)
        target = emit("ConcatV2", [convert_to_tensor([-1]), ones], 0)
    return emit("Reshape", bias, target)  # type: ignore[no-any-return]


# ---------------------------------------------------------------- decompositions
@bias_add_op.decomposition
@bias_add_v1_op.decomposition
def _bias_add_parts(sig: Any, value: Tensor, bias: Tensor) -> Tensor:
    if _channels_first(sig.attrs):
        bias = _beside_channels(bias, value)
    return emit("AddV2", value, bias)  # type: ignore[no-any-return]


@bias_add_grad_op.decomposition
def _bias_add_grad_parts(sig: Any, out_backprop: Tensor) -> Tensor:
    rank = shapes.with_rank_at_least(out_backprop.raw_shape, 2)
    if rank is None:
        raise NotImplementedError("BiasAddGrad of unknown rank has no decomposition")
    channel = 1 if _channels_first(sig.attrs) else len(rank) - 1
    axes = [a for a in range(len(rank)) if a != channel]
    return emit("Sum", out_backprop, axes)  # type: ignore[no-any-return]


# ---------------------------------------------------------------- public functions
_WORDS = {
    "bias": "a 1-D tensor with one entry per channel, of the type of `value`.",
    "name": "a name for the operation.",
    "returns": "A tensor like `value`.",
    "x": "a 2-D tensor [batch, in_units].",
    "weights": "a 2-D tensor [in_units, out_units].",
    "biases": "a 1-D tensor [out_units].",
}
"""What the functions here take."""


@extensible
@explained(
    _WORDS,
    value='a tensor of rank 2 or more (3 or more for "NC..." formats) of a number type.',
    data_format='"N...C" (default) when channels are last, "NC..." when they are second.',
    raises="ValueError: the format is neither, or `bias` does not have one entry per channel.",
)
def bias_add(
    value: Any, bias: Any, data_format: str | None = None, name: str | None = None
) -> Tensor:
    """Adds a 1-D `bias` to the channels of `value`."""
    with name_scope(name, "BiasAdd", [value, bias]) as scope:
        if data_format is not None:
            if data_format.startswith("NC"):
                data_format = "NCHW"
            elif data_format.startswith("N") and data_format.endswith("C"):
                data_format = "NHWC"
            else:
                raise ValueError("data_format must be of the form `N...C` or `NC...`")
        value = convert_to_tensor(value, name="input")
        bias = convert_to_tensor(bias, dtype=value.dtype, name="bias")
        return bias_add_op(value, bias, data_format=data_format or "NHWC", name=scope)  # type: ignore[no-any-return]


@explained(_WORDS, value="a tensor of rank 2 or more of a number type.")
def bias_add_v1(value: Any, bias: Any, name: str | None = None) -> Tensor:
    """`bias_add` for channels last, as graphs before data formats have it."""
    with name_scope(name, "BiasAddV1", [value, bias]) as scope:
        value = convert_to_tensor(value, name="input")
        bias = convert_to_tensor(bias, dtype=value.dtype, name="bias")
        return bias_add_v1_op(value, bias, name=scope)  # type: ignore[no-any-return]


@extensible
@explained(
    _WORDS,
    name='a name for the operation, "xw_plus_b" by default.',
    returns="A 2-D tensor [batch, out_units].",
)
def xw_plus_b(x: Any, weights: Any, biases: Any, name: str | None = None) -> Tensor:
    """`matmul(x, weights) + biases`."""
    with name_scope(name, "xw_plus_b", [x, weights, biases]) as scope:
        x = convert_to_tensor(x, name="x")
        weights = convert_to_tensor(weights, name="weights")
        biases = convert_to_tensor(biases, name="biases")
        return bias_add(emit("MatMul", x, weights), biases, name=scope)


@extensible
@explained(
    _WORDS,
    name='a name for the operation, "relu_layer" by default.',
    returns="A 2-D tensor [batch, out_units].",
)
def relu_layer(x: Any, weights: Any, biases: Any, name: str | None = None) -> Tensor:
    """`relu(matmul(x, weights) + biases)`."""
    with name_scope(name, "relu_layer", [x, weights, biases]) as scope:
        x = convert_to_tensor(x, name="x")
        weights = convert_to_tensor(weights, name="weights")
        biases = convert_to_tensor(biases, name="biases")
        return relu(bias_add(emit("MatMul", x, weights), biases), name=scope)
