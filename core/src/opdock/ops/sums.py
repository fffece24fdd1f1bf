"""Sums of many tensors, products with scalars, polynomials, and the cross product."""

from __future__ import annotations

from typing import Any

from opdock import dtypes, shapes
from opdock.docstrings import PAIRWISE, explained
from opdock.graph.nodes.composite import IndexedSlices, internal_convert_to_tensor_or_indexed_slices
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.arithmetic import mul_op, xdivy_op, xlogy_op
from opdock.ops.registry import Elementwise, Fails, ShapeSig, Traits, define_op, get, keeps_slices
from opdock.shapes import Shape, TensorShape

__all__ = ["accumulate_n", "add_n", "cross", "scalar_mul"]

add_n_op = define_op(
    "AddN", "inputs: N * T -> sum: T", "N: int >= 1, T: {numbertype, variant}",
    commutative=True, aggregate=True,
)  # fmt: skip
add_n_op.declare(Traits(fails=Fails.NEVER, layout=Elementwise()))
accumulate_n_op = define_op(
    "AccumulateNV2", "inputs: N * T -> sum: T", "N: int >= 1, T: numbertype, shape: shape",
    commutative=True, aggregate=True,
)  # fmt: skip
cross_op = define_op("Cross", "a: T, b: T -> product: T", "T: realnumbertype")


@add_n_op.shape
def _(sig: ShapeSig) -> Shape:
    out: Shape = None
    for shape in reversed(sig.shapes):
        out = shapes.merge(shape, out)
    return out


@accumulate_n_op.shape
def _(sig: ShapeSig) -> Shape:
    out: Shape = sig.attrs["shape"]
    return out


@cross_op.shape
def _(sig: ShapeSig) -> Shape:
    shape = shapes.merge(
        shapes.with_rank_at_least(sig.shapes[0], 1), shapes.with_rank_at_least(sig.shapes[1], 1)
    )
    if shape is None:
        return None
    return (*shape[:-1], shapes.merge_dim(shape[-1], 3))


@add_n_op.gradient
@accumulate_n_op.gradient
@keeps_slices
def _(op: Operation, grad: Any) -> list[Any]:
    return [grad] * len(op.inputs)


@cross_op.gradient
def _(op: Operation, grad: Any) -> list[Any]:
    a, b = op.inputs
    return [cross_op(b, grad), cross_op(grad, a)]


def _converted(inputs: Any) -> list[Any]:
    if not inputs or not isinstance(inputs, (list, tuple)):
        raise _list_wanted()
    return [internal_convert_to_tensor_or_indexed_slices(x) for x in inputs]


def _list_wanted() -> ValueError:
    return ValueError(
        "inputs must be a list of at least one Tensor/IndexedSlices with the same dtype and shape"
    )


@extensible
def add_n(inputs: Any, name: str | None = None) -> Tensor:
    """The sum of a list of tensors, elementwise, without broadcasting.

    Args:
        inputs: a list of Tensors and IndexedSlices of one type and shape.
        name: a name for the operation.

    Returns:
        A tensor of that type and shape.

    Raises:
        ValueError: `inputs` is not a list, is empty, or holds something else or different shapes.
        TypeError: the types differ.
    """
    tensors = _converted(inputs)
    if not all(isinstance(t, (Tensor, IndexedSlices)) for t in tensors):
        raise _list_wanted()
    if len(tensors) == 1:
        only = convert_to_tensor(tensors[0])
        return get("Identity")(only, name=name) if name else only
    return add_n_op(tensors, name=name)  # type: ignore[no-any-return]


@extensible
def accumulate_n(
    inputs: Any, shape: Any = None, tensor_dtype: Any = None, name: str | None = None
) -> Tensor:
    """The sum of a list of tensors, as `tf.add_n`, with the result's shape stated up front.

    Args:
        inputs: a list of Tensors of one type and shape.
        shape: the shape of the elements; merged with what is known of the inputs'.
        tensor_dtype: the expected type of the inputs.
        name: a name for the operation.

    Returns:
        A tensor of that type and shape.

    Raises:
        ValueError: `inputs` is not a list, is empty, or holds different types or shapes.
        TypeError: `tensor_dtype` is not the type of the inputs.
    """
    tensors = _converted(inputs)
    kind = tensors[0].dtype.base_dtype
    if not all(isinstance(t, Tensor) and t.dtype.base_dtype is kind for t in tensors):
        raise ValueError(
            "inputs must be a list of at least one Tensor with the same dtype and shape"
        )
    whole = TensorShape(shape)
    for tensor in tensors:
        whole = whole.merge_with(tensor.shape)
    wanted = kind if tensor_dtype is None else dtypes.as_dtype(tensor_dtype).base_dtype
    if wanted is not kind:
        raise TypeError(f"tensor_dtype is {wanted.name}, but input is of type {kind.name}")
    if len(tensors) == 1:
        only: Tensor = tensors[0] if name is None else get("Identity")(tensors[0], name=name)
        return only
    return accumulate_n_op(tensors, shape=whole.raw, name=name)  # type: ignore[no-any-return]


@extensible
def cross(a: Any, b: Any, name: str | None = None) -> Tensor:
    """The cross product of 3-vectors along the last axis.

    Args:
        a: a tensor of real numbers of shape [..., 3].
        b: a tensor of the same type and shape.
        name: a name for the operation.

    Returns:
        A tensor of that type and shape.
    """
    return cross_op(a, b, name=name)  # type: ignore[no-any-return]


@extensible
def scalar_mul(scalar: Any, x: Any, name: str | None = None) -> Any:
    """A scalar times a tensor; IndexedSlices stay sparse.

    Args:
        scalar: a scalar, converted to the type of `x`.
        x: a Tensor or IndexedSlices of numbers.
        name: a name for the operation.

    Returns:
        The same kind, type and shape as `x`.

    Raises:
        ValueError: `scalar` is not a scalar.
    """
    scalar = convert_to_tensor(scalar, dtype=x.dtype.base_dtype, name="scalar")
    if scalar.raw_shape != ():
        raise ValueError(f"Only scalar multiply works, got shape {scalar.get_shape()}")
    if isinstance(x, IndexedSlices):
        return IndexedSlices(mul_op(scalar, x.values, name=name), x.indices, x.dense_shape)
    return mul_op(scalar, x, name=name)


@extensible
def polyval(coeffs: Any, x: Any, name: str | None = None) -> Tensor:
    """The value of a polynomial, elementwise.

    Args:
        coeffs: a list of tensors that broadcast with `x`, the highest power first.
        x: a tensor of numbers.
        name: a name for the operation.

    Returns:
        A tensor of the type of `x` in the broadcast shape; zeros if there are no coefficients.

    Raises:
        ValueError: `coeffs` is not a list.
    """
    if not isinstance(coeffs, list):
        raise ValueError(f"Argument coeffs must be list type found {type(coeffs)}.")
    with name_scope(name, "polyval", [*coeffs, x]) as scope:
        x = convert_to_tensor(x, name="x")
        if not coeffs:
            return get("ZerosLike")(x, name=scope)  # type: ignore[no-any-return]
        tensors = [convert_to_tensor(c, name=f"coeff_{i}") for i, c in enumerate(coeffs)]
        value = tensors[0]
        for tensor in tensors[1:]:
            value = tensor + value * x
        return value


@extensible
def xlogy(x: Any, y: Any, name: str | None = None) -> Tensor:
    """`x * log(y)`, but 0 where `x` is 0, elementwise, with broadcasting.

    Args:
        x: a tensor of half, float32, float64 or complex numbers.
        y: a tensor of the same type.
        name: a name for the operation.
    """
    return xlogy_op(x, y, name=name)  # type: ignore[no-any-return]


@extensible
@explained(PAIRWISE)
def xdivy(x: Any, y: Any, name: str | None = None) -> Tensor:
    """`x / y`, but 0 where `x` is 0, elementwise, with broadcasting; types as `tf.math.xlogy`."""
    return xdivy_op(x, y, name=name)  # type: ignore[no-any-return]
