"""Numbers to quantized integers and back: QuantizeV2, Dequantize, and changes of range.

A quantized tensor comes with the two real numbers that its lowest and its highest integer stand
for. The attributes `narrow_range`, `axis`, `ensure_minimum_range` and `dtype` came after TF 1.15;
at their defaults they change nothing.
"""

from __future__ import annotations

from typing import Any, Final

from opdock import shapes
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Tensor
from opdock.ops.registry import Shape, ShapeSig, define_op
from opdock.ops.support.array_util import no_gradient

__all__ = ["dequantize", "quantize", "quantize_v2"]

TYPES: Final = "{qint8, quint8, qint32, qint16, quint16}"
"""The quantized types, as definitions spell them."""

_MODE = "mode: {'MIN_COMBINED', 'MIN_FIRST', 'SCALED'} = 'MIN_COMBINED'"
_RANGE = "input_min: float, input_max: float"
_RESULT = "output: out_type, output_min: float, output_max: float"

quantize_v2_op = define_op(
    "QuantizeV2",
    "input: float, min_range: float, max_range: float -> "
    "output: T, output_min: float, output_max: float",
    f"T: {TYPES}, {_MODE}, "
    "round_mode: {'HALF_AWAY_FROM_ZERO', 'HALF_TO_EVEN'} = 'HALF_AWAY_FROM_ZERO', "
    "narrow_range: bool = false, axis: int = -1, ensure_minimum_range: float = 0.01",
)  # fmt: skip
dequantize_op = define_op(
    "Dequantize", "input: T, min_range: float, max_range: float -> output: dtype",
    f"T: {TYPES}, {_MODE}, narrow_range: bool = false, axis: int = -1, "
    "dtype: {bfloat16, float} = DT_FLOAT",
)  # fmt: skip
requantize_op = define_op(
    "Requantize",
    f"input: Tinput, {_RANGE}, requested_output_min: float, requested_output_max: float -> "
    f"{_RESULT}",
    f"Tinput: {TYPES}, out_type: {TYPES}",
)  # fmt: skip
requantization_range_op = define_op(
    "RequantizationRange", f"input: Tinput, {_RANGE} -> output_min: float, output_max: float",
    f"Tinput: {TYPES}",
)  # fmt: skip
quantize_down_op = define_op(
    "QuantizeDownAndShrinkRange", f"input: Tinput, {_RANGE} -> {_RESULT}",
    f"Tinput: {TYPES}, out_type: {TYPES}",
)  # fmt: skip

for _op in (
    quantize_v2_op, dequantize_op, requantize_op, requantization_range_op, quantize_down_op,
):  # fmt: skip
    no_gradient(_op)


# ---------------------------------------------------------------- shapes
def check_scalars(sig: ShapeSig, first: int) -> None:
    """ValueError unless the inputs from `first` on may be scalars: ranges of quantized tensors."""
    for shape in sig.shapes[first:]:
        shapes.with_rank(shape, 0)


def range_shape(sig: ShapeSig, rest: int = 3) -> Shape:
    """The shape of the range's ends: scalars, or one for each entry of dimension `axis`.

    Args:
        sig: a node whose inputs 1 and 2 are the ends.
        rest: the first of the other inputs, which must be scalars.

    Raises:
        ValueError: the ends have another rank, or the axis is no dimension of input 0.
    """
    axis = sig.attrs.get("axis", -1)
    if axis < -1:
        raise ValueError(f"axis should be at least -1, got {axis}")
    ends = [shapes.with_rank(s, 0 if axis == -1 else 1) for s in sig.shapes[1:3]]
    check_scalars(sig, rest)
    if axis == -1:
        return ()
    data = shapes.with_rank_at_least(sig.shapes[0], axis + 1)
    length = shapes.merge_dim(ends[0][0], ends[1][0])
    return (length if data is None else shapes.merge_dim(length, data[axis]),)


@quantize_v2_op.shape
def _quantize_shape(sig: ShapeSig) -> list[Shape]:
    ends = range_shape(sig)
    return [sig.shapes[0], ends, ends]


@dequantize_op.shape
def _dequantize_shape(sig: ShapeSig) -> Shape:
    range_shape(sig)
    return sig.shapes[0]


@requantize_op.shape
@quantize_down_op.shape
def _requantize_shape(sig: ShapeSig) -> list[Shape]:
    check_scalars(sig, 1)
    return [sig.shapes[0], (), ()]


@requantization_range_op.shape
def _requantization_range_shape(sig: ShapeSig) -> list[Shape]:
    check_scalars(sig, 1)
    return [(), ()]


# ---------------------------------------------------------------- public functions
@extensible
def quantize_v2(
    input: Any, min_range: Any, max_range: Any, T: Any, mode: str = "MIN_COMBINED",
    name: str | None = None, round_mode: str = "HALF_AWAY_FROM_ZERO", narrow_range: bool = False,
    axis: int | None = None, ensure_minimum_range: float = 0.01,
) -> Any:  # fmt: skip
    """Quantizes numbers; use `quantize`, whose arguments stand in another order.

    Args:
        input: a float32 tensor.
        min_range: what the lowest integer is to stand for, a float32 scalar; with an `axis`, a
            vector.
        max_range: what the highest integer is to stand for.
        T: the quantized type.
        mode: "MIN_COMBINED" and "MIN_FIRST" use the whole range of `T`; "MIN_FIRST" makes 0 exact;
            "SCALED" multiplies only.
        name: a name for the operation.
        round_mode: "HALF_AWAY_FROM_ZERO", or "HALF_TO_EVEN" when `mode` is "SCALED".
        narrow_range: leaves out the lowest integer of a signed type when `mode` is "SCALED".
        axis: a dimension whose entries have a range each.
        ensure_minimum_range: the least width of the range, in parts of its larger end.

    Returns:
        `(output, output_min, output_max)`; the range is at least the one asked for, holds 0 and
        is not empty.

    Raises:
        ValueError: the shapes do not fit (`InvalidArgumentError` at run time).
    """
    return quantize_v2_op(
        input, min_range, max_range, T=T, mode=mode, round_mode=round_mode,
        narrow_range=narrow_range, axis=-1 if axis is None else axis,
        ensure_minimum_range=ensure_minimum_range, name=name,
    )  # fmt: skip


@extensible
def quantize(
    input: Any, min_range: Any, max_range: Any, T: Any, mode: str = "MIN_COMBINED",
    round_mode: str = "HALF_AWAY_FROM_ZERO", name: str | None = None, narrow_range: bool = False,
    axis: int | None = None, ensure_minimum_range: float = 0.01,
) -> Any:  # fmt: skip
    """Quantizes numbers; see `quantize_v2` for the arguments and the results.

    Args:
        input: a float32 tensor.
        min_range: the lower end of the range.
        max_range: the upper end of the range.
        T: the quantized type.
        mode: how numbers are mapped.
        round_mode: how halves are rounded.
        name: a name for the operation.
        narrow_range: leaves out the lowest integer.
        axis: the dimension that has ranges of its own.
        ensure_minimum_range: the least range.
    """
    return quantize_v2(
        input, min_range, max_range, T, mode, name, round_mode, narrow_range, axis,
        ensure_minimum_range,
    )  # fmt: skip


@extensible
def dequantize(
    input: Any, min_range: Any, max_range: Any, mode: str = "MIN_COMBINED",
    name: str | None = None, axis: int | None = None, narrow_range: bool = False,
    dtype: Any = "float32",
) -> Tensor:  # fmt: skip
    """The numbers that a quantized tensor stands for.

    Args:
        input: a tensor of a quantized type.
        min_range: what the lowest integer stands for, a float32 scalar; with an `axis`, a vector.
        max_range: what the highest integer stands for.
        mode: the mode in which it was quantized; see `quantize_v2`.
        name: a name for the operation.
        axis: a dimension whose entries have a range each.
        narrow_range: whether the lowest integer was left out.
        dtype: float32, or bfloat16 when `mode` is "MIN_COMBINED".

    Returns:
        A tensor of the shape of `input`.

    Raises:
        ValueError: the shapes do not fit (`InvalidArgumentError` at run time).
    """
    return dequantize_op(  # type: ignore[no-any-return]
        convert_to_tensor(input), min_range, max_range, mode=mode, dtype=dtype,
        axis=-1 if axis is None else axis, narrow_range=narrow_range, name=name,
    )  # fmt: skip
