"""Conversion between element types: `Cast` by value, `Bitcast` by bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from opdock import dtypes
from opdock.docstrings import ELEMENTWISE, explained
from opdock.graph.nodes.composite import IndexedSlices, SparseTensor
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.registry import ShapeSig, define_op, get, keeps_slices
from opdock.ops.support.common_shapes import unchanged
from opdock.shapes import Shape

__all__ = [
    "bitcast", "cast", "saturate_cast", "to_bfloat16", "to_complex64", "to_complex128",
    "to_double", "to_float", "to_int32", "to_int64",
]  # fmt: skip

_BITS = (
    "{bfloat16, half, float, double, int64, int32, uint8, uint16, uint32, uint64, int8, int16, "
    "complex64, complex128, qint8, quint8, qint16, quint16, qint32}"
)

cast_op = define_op(
    "Cast", "x: SrcT -> y: DstT", "SrcT: type, DstT: type, Truncate: bool = false",
    expr="cast(x, DstT)",
)  # fmt: skip
cast_op.shape(unchanged)
bitcast_op = define_op(
    "Bitcast", "input: T -> output: type", f"T: {_BITS}, type: {_BITS}"
).not_differentiable()


@cast_op.known
def _known_cast(sig: ShapeSig) -> list[Any]:
    value = sig.known(0)
    if not isinstance(value, np.ndarray):
        return [value]
    dtype = sig.attrs["DstT"]
    return [value.astype(dtype.np) if value.dtype.kind in "iu" and dtype.is_integer else None]


@cast_op.gradient
@keeps_slices
def _(op: Operation, grad: Any) -> Any:
    source, target = op.inputs[0].dtype.base_dtype, op.outputs[0].dtype.base_dtype
    smooth = dtypes.FLOATS | dtypes.COMPLEX
    return cast(grad, source) if source in smooth and target in smooth else None


@bitcast_op.shape
def _(sig: ShapeSig) -> Shape:
    shape = sig.shapes[0]
    source, target = sig.dtypes[0].base_dtype.size, sig.attrs["type"].size
    if shape is None or source == target:
        return shape
    if source > target:
        return (*shape, source // target)
    if not shape:
        raise ValueError("Cannot bitcast a scalar to a larger type")
    if shape[-1] is not None and shape[-1] * source != target:
        raise ValueError(
            f"Cannot bitcast due to shape: from {sig.dtypes[0].name} to "
            f"{sig.attrs['type'].name} with last dimension {shape[-1]}; "
            f"it must be {target // source}"
        )
    return shape[:-1]


@extensible
def cast(x: Any, dtype: Any, name: str | None = None) -> Any:
    """Converts the elements to another type.

    Floats lose their fraction when they become integers, numbers other than 0 become True, and
    complex numbers lose their imaginary part when they become real.

    Args:
        x: a Tensor, SparseTensor or IndexedSlices of numbers or bools.
        dtype: the type to convert to.
        name: a name for the operation.

    Returns:
        The same kind and shape as `x`; `x` itself if it has that type already.

    Raises:
        TypeError: `x` cannot be converted.
    """
    base = dtypes.as_dtype(dtype).base_dtype
    if isinstance(x, Tensor) and x.dtype is base:
        return x
    with name_scope(name, "Cast", [x]) as scope:
        if isinstance(x, SparseTensor):
            return SparseTensor(x.indices, cast(x.values, base, name=scope), x.dense_shape)
        if isinstance(x, IndexedSlices):
            return IndexedSlices(cast(x.values, base, name=scope), x.indices, x.dense_shape)
        x = convert_to_tensor(x, name="x")
        return x if x.dtype.base_dtype is base else cast_op(x, DstT=base, name=scope)


@extensible
def bitcast(input: Any, type: Any, name: str | None = None) -> Tensor:
    """Reads the bits of each element as another type.

    Args:
        input: a tensor of numbers.
        type: the type to read.
        name: a name for the operation.

    Returns:
        A tensor of that type: of the same shape if the sizes agree, with one more dimension if the
        new type is smaller, with one less if it is larger.

    Raises:
        ValueError: the last dimension does not make up whole elements of a larger type.
    """
    return bitcast_op(input, type=dtypes.as_dtype(type), name=name)  # type: ignore[no-any-return]


@extensible
def saturate_cast(value: Any, dtype: Any, name: str | None = None) -> Tensor:
    """Converts the elements to another type; values out of its range become its limits.

    Args:
        value: a tensor of real numbers.
        dtype: the type to convert to.
        name: a name for the operation.

    Returns:
        A tensor of type `dtype` and the shape of `value`.
    """
    with name_scope(name, "saturate_cast", [value]) as scope:
        value = convert_to_tensor(value, name="value")
        target = dtypes.as_dtype(dtype).base_dtype
        source = value.dtype.base_dtype
        if source.min < target.min:
            value = get("Maximum")(value, convert_to_tensor(target.min, dtype=source, name="min"))
        if source.max > target.max:
            value = get("Minimum")(value, convert_to_tensor(target.max, dtype=source, name="max"))
        return cast(value, target, name=scope)  # type: ignore[no-any-return]


@extensible
@explained(ELEMENTWISE)
def to_float(x: Any, name: str | None = "ToFloat") -> Any:
    """`tf.cast(x, tf.float32)`."""
    return cast(x, dtypes.float32, name=name)


@extensible
@explained(ELEMENTWISE)
def to_double(x: Any, name: str | None = "ToDouble") -> Any:
    """`tf.cast(x, tf.float64)`."""
    return cast(x, dtypes.float64, name=name)


@extensible
@explained(ELEMENTWISE)
def to_int32(x: Any, name: str | None = "ToInt32") -> Any:
    """`tf.cast(x, tf.int32)`."""
    return cast(x, dtypes.int32, name=name)


@extensible
@explained(ELEMENTWISE)
def to_int64(x: Any, name: str | None = "ToInt64") -> Any:
    """`tf.cast(x, tf.int64)`."""
    return cast(x, dtypes.int64, name=name)


@extensible
@explained(ELEMENTWISE)
def to_bfloat16(x: Any, name: str | None = "ToBFloat16") -> Any:
    """`tf.cast(x, tf.bfloat16)`."""
    return cast(x, dtypes.bfloat16, name=name)


@extensible
@explained(ELEMENTWISE)
def to_complex64(x: Any, name: str | None = "ToComplex64") -> Any:
    """`tf.cast(x, tf.complex64)`."""
    return cast(x, dtypes.complex64, name=name)


@extensible
@explained(ELEMENTWISE)
def to_complex128(x: Any, name: str | None = "ToComplex128") -> Any:
    """`tf.cast(x, tf.complex128)`."""
    return cast(x, dtypes.complex128, name=name)
