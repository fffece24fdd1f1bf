"""Training for quantization: floats rounded to what quantized integers can stand for.

The gradient passes straight through the rounding, and stops outside of the range.
"""

from __future__ import annotations

from typing import Any

from opdock import shapes
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.ops.quantize import range_shape
from opdock.ops.registry import OpSpec, Shape, ShapeSig, define_op
from opdock.ops.support.common_shapes import unchanged

__all__ = [
    "fake_quant_with_min_max_args", "fake_quant_with_min_max_args_gradient",
    "fake_quant_with_min_max_vars", "fake_quant_with_min_max_vars_gradient",
    "fake_quant_with_min_max_vars_per_channel", "fake_quant_with_min_max_vars_per_channel_gradient",
]  # fmt: skip

_BITS = "num_bits: int = 8, narrow_range: bool = false"
_ARGS = f"min: float = -6.0, max: float = 6.0, {_BITS}"
_INPUTS = "inputs: float, min: float, max: float"
_BACKPROPS = "backprops_wrt_input: float, backprop_wrt_min: float, backprop_wrt_max: float"
_FLOATS = "T: {bfloat16, half, float, double}"

fake_quant_args_op = define_op("FakeQuantWithMinMaxArgs", "inputs: float -> outputs: float", _ARGS)
fake_quant_args_gradient_op = define_op(
    "FakeQuantWithMinMaxArgsGradient", "gradients: float, inputs: float -> backprops: float", _ARGS
).not_differentiable()


def _with_vars(suffix: str) -> tuple[OpSpec, OpSpec]:
    name = f"FakeQuantWithMinMaxVars{suffix}"
    backward = define_op(f"{name}Gradient", f"gradients: float, {_INPUTS} -> {_BACKPROPS}", _BITS)
    return define_op(name, f"{_INPUTS} -> outputs: float", _BITS), backward.not_differentiable()


fake_quant_vars_op, fake_quant_vars_gradient_op = _with_vars("")
fake_quant_per_channel_op, fake_quant_per_channel_gradient_op = _with_vars("PerChannel")

quantize_and_dequantize_op = define_op(
    "QuantizeAndDequantize", "input: T -> output: T",
    "signed_input: bool = true, num_bits: int = 8, range_given: bool = false, "
    f"input_min: float = 0, input_max: float = 0, {_FLOATS}",
)  # fmt: skip
# narrow_range and axis came after 1.15; at their defaults they change nothing.
quantize_and_dequantize_v2_op = define_op(
    "QuantizeAndDequantizeV2", "input: T, input_min: T, input_max: T -> output: T",
    f"signed_input: bool = true, num_bits: int = 8, range_given: bool = false, {_FLOATS}, "
    "round_mode: {'HALF_TO_EVEN', 'HALF_UP'} = 'HALF_TO_EVEN', narrow_range: bool = false, "
    "axis: int = -1",
)  # fmt: skip
quantize_and_dequantize_v3_op = define_op(
    "QuantizeAndDequantizeV3",
    "input: T, input_min: T, input_max: T, num_bits: int32 -> output: T",
    f"signed_input: bool = true, range_given: bool = true, {_FLOATS}, "
    "narrow_range: bool = false, axis: int = -1",
)  # fmt: skip


# ---------------------------------------------------------------- shapes
fake_quant_args_op.shape(unchanged)
quantize_and_dequantize_op.shape(unchanged)


@quantize_and_dequantize_v2_op.shape
@quantize_and_dequantize_v3_op.shape
@fake_quant_vars_op.shape
def _ranged_shape(sig: ShapeSig) -> Shape:
    range_shape(sig)
    return sig.shapes[0]


@fake_quant_args_gradient_op.shape
def _args_gradient_shape(sig: ShapeSig) -> Shape:
    return shapes.merge(sig.shapes[0], sig.shapes[1])


@fake_quant_vars_gradient_op.shape
def _vars_gradient_shape(sig: ShapeSig) -> list[Shape]:
    for shape in sig.shapes[2:]:
        shapes.with_rank(shape, 0)
    return [shapes.merge(sig.shapes[0], sig.shapes[1]), (), ()]


def _channels(data: Shape, ends: list[Shape]) -> tuple[Shape, Shape]:
    """The shapes of the data and of the ends of its channels' ranges."""
    data = shapes.with_rank_at_least(data, 1)
    channels = None if data is None else data[-1]
    for end in ends:
        channels = shapes.merge_dim(channels, shapes.with_rank(end, 1)[0])
    return None if data is None else (*data[:-1], channels), (channels,)


@fake_quant_per_channel_op.shape
def _per_channel_shape(sig: ShapeSig) -> Shape:
    data, _ = _channels(sig.shapes[0], sig.shapes[1:])
    return data


@fake_quant_per_channel_gradient_op.shape
def _per_channel_gradient_shape(sig: ShapeSig) -> list[Shape]:
    data, ends = _channels(shapes.merge(sig.shapes[0], sig.shapes[1]), sig.shapes[2:])
    return [data, ends, ends]


# ---------------------------------------------------------------- gradients
@fake_quant_args_op.gradient
def _args_grad(op: Operation, grad: Tensor) -> Tensor:
    attrs = {name: op.attrs[name] for name in ("min", "max", "num_bits", "narrow_range")}
    return fake_quant_args_gradient_op(grad, op.inputs[0], **attrs)  # type: ignore[no-any-return]


def _vars_grad(backward: OpSpec) -> Any:
    def gradient(op: Operation, grad: Tensor) -> list[Tensor]:
        attrs = {name: op.attrs[name] for name in ("num_bits", "narrow_range")}
        return list(backward(grad, *op.inputs, **attrs))

    return gradient


fake_quant_vars_op.gradient(_vars_grad(fake_quant_vars_gradient_op))
fake_quant_per_channel_op.gradient(_vars_grad(fake_quant_per_channel_gradient_op))


@quantize_and_dequantize_op.gradient
@quantize_and_dequantize_v2_op.gradient
@quantize_and_dequantize_v3_op.gradient
def _straight_through(op: Operation, grad: Tensor) -> list[Any]:
    return [grad] + [None] * (len(op.inputs) - 1)


# ---------------------------------------------------------------- public functions
def _fake_quant(
    op: OpSpec, tensors: tuple[Any, ...], num_bits: int, narrow_range: bool, name: str | None,
    **ends: float,
) -> Tensor | Any:  # fmt: skip
    """A tensor, or of gradients by the ends a tuple; `ends` are those that are attributes."""
    return op(*tensors, **ends, num_bits=num_bits, narrow_range=narrow_range, name=name)


@extensible
def fake_quant_with_min_max_args(
    inputs: Any, min: float = -6, max: float = 6, num_bits: int = 8, narrow_range: bool = False,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Rounds numbers to those that quantized integers over a fixed range stand for.

    Args:
        inputs: a float32 tensor.
        min: the lower end of the range; moved a little, so that 0 is one of the numbers.
        max: the upper end of the range.
        num_bits: the integers' width, 2 to 16.
        narrow_range: leaves out the lowest integer.
        name: a name for the operation.

    Returns:
        A tensor like `inputs`; numbers outside of the range become its ends.

    Raises:
        InvalidArgumentError: at run time, an empty range or a wrong width.
    """
    return _fake_quant(
        fake_quant_args_op, (inputs,), num_bits, narrow_range, name, min=min, max=max
    )


@extensible
def fake_quant_with_min_max_args_gradient(
    gradients: Any, inputs: Any, min: float = -6, max: float = 6, num_bits: int = 8,
    narrow_range: bool = False, name: str | None = None,
) -> Tensor:  # fmt: skip
    """The gradient of `fake_quant_with_min_max_args`: that of the result inside of the range.

    Args:
        gradients: the gradient of the result.
        inputs: a float32 tensor.
        min: the lower end of the range.
        max: the upper end of the range.
        num_bits: the integers' width, 2 to 16.
        narrow_range: leaves out the lowest integer.
        name: a name for the operation.
    """
    return _fake_quant(
        fake_quant_args_gradient_op, (gradients, inputs), num_bits, narrow_range, name,
        min=min, max=max,
    )  # fmt: skip


@extensible
def fake_quant_with_min_max_vars(
    inputs: Any, min: Any, max: Any, num_bits: int = 8, narrow_range: bool = False,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """As `fake_quant_with_min_max_args`, the ends of the range float32 scalars to be trained.

    Args:
        inputs: a float32 tensor.
        min: the lower end of the range.
        max: the upper end of the range.
        num_bits: the integers' width, 2 to 16.
        narrow_range: leaves out the lowest integer.
        name: a name for the operation.
    """
    return _fake_quant(fake_quant_vars_op, (inputs, min, max), num_bits, narrow_range, name)


@extensible
def fake_quant_with_min_max_vars_gradient(
    gradients: Any, inputs: Any, min: Any, max: Any, num_bits: int = 8, narrow_range: bool = False,
    name: str | None = None,
) -> Any:  # fmt: skip
    """The gradients of `fake_quant_with_min_max_vars`.

    Args:
        gradients: the gradient of the result.
        inputs: a float32 tensor.
        min: the lower end of the range.
        max: the upper end of the range.
        num_bits: the integers' width, 2 to 16.
        narrow_range: leaves out the lowest integer.
        name: a name for the operation.

    Returns:
        `(backprops_wrt_input, backprop_wrt_min, backprop_wrt_max)`: the gradient inside of the
        range, and its sums below and above.
    """
    tensors = gradients, inputs, min, max
    return _fake_quant(fake_quant_vars_gradient_op, tensors, num_bits, narrow_range, name)


@extensible
def fake_quant_with_min_max_vars_per_channel(
    inputs: Any, min: Any, max: Any, num_bits: int = 8, narrow_range: bool = False,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """As `fake_quant_with_min_max_vars`, with a range for each entry of the last dimension.

    Args:
        inputs: a float32 tensor.
        min: the lower end of the range.
        max: the upper end of the range.
        num_bits: the integers' width, 2 to 16.
        narrow_range: leaves out the lowest integer.
        name: a name for the operation.
    """
    return _fake_quant(fake_quant_per_channel_op, (inputs, min, max), num_bits, narrow_range, name)


@extensible
def fake_quant_with_min_max_vars_per_channel_gradient(
    gradients: Any, inputs: Any, min: Any, max: Any, num_bits: int = 8, narrow_range: bool = False,
    name: str | None = None,
) -> Any:  # fmt: skip
    """The gradients of `fake_quant_with_min_max_vars_per_channel`; those of the ends are vectors.

    Args:
        gradients: the gradient of the result.
        inputs: a float32 tensor.
        min: the lower end of the range.
        max: the upper end of the range.
        num_bits: the integers' width, 2 to 16.
        narrow_range: leaves out the lowest integer.
        name: a name for the operation.

    Returns:
        `(backprops_wrt_input, backprop_wrt_min, backprop_wrt_max)`.
    """
    tensors = gradients, inputs, min, max
    return _fake_quant(fake_quant_per_channel_gradient_op, tensors, num_bits, narrow_range, name)


@extensible
def quantize_and_dequantize(
    input: Any, input_min: Any, input_max: Any, signed_input: bool = True, num_bits: int = 8,
    range_given: bool = False, round_mode: str = "HALF_TO_EVEN", name: str | None = None,
    narrow_range: bool = False, axis: int | None = None,
) -> Tensor:  # fmt: skip
    """Rounds numbers to multiples of a scale under which 0 stays 0; the gradient passes through.

    Args:
        input: a tensor of a floating type.
        input_min: the lower end of the range, used when `range_given`; with an `axis`, a vector.
        input_max: the upper end of the range.
        signed_input: whether the integers are signed.
        num_bits: the integers' width.
        range_given: whether the range is given, else it is that of `input`.
        round_mode: "HALF_TO_EVEN" or "HALF_UP".
        name: a name for the operation.
        narrow_range: leaves out the lowest signed integer.
        axis: a dimension whose entries have a range each.

    Returns:
        A tensor like `input`.

    Raises:
        ValueError: the shapes do not fit (`InvalidArgumentError` at run time).
    """
    input = convert_to_tensor(input, name="input")
    return quantize_and_dequantize_v2_op(  # type: ignore[no-any-return]
        input, convert_to_tensor(input_min, input.dtype), convert_to_tensor(input_max, input.dtype),
        signed_input=signed_input, num_bits=num_bits, range_given=range_given,
        round_mode=round_mode, narrow_range=narrow_range, axis=-1 if axis is None else axis,
        name=name,
    )  # fmt: skip
