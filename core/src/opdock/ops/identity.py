"""Ops that hand their input on: identities, gradient stops, checks and placeholders."""

from __future__ import annotations

from typing import Any

import numpy as np

from opdock import dtypes, shapes
from opdock.graph.nodes.composite import IndexedSlices, SparseTensor
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import executing_eagerly
from opdock.ops.registry import Elementwise, Fails, ShapeSig, Traits, define_op, keeps_slices
from opdock.ops.support import common_shapes
from opdock.shapes import Shape

__all__ = [
    "check_numerics", "guarantee_const", "identity", "identity_n", "placeholder",
    "placeholder_with_default", "sparse_placeholder", "stop_gradient",
]  # fmt: skip


# ---------------------------------------------------------------- identities
identity_op = define_op("Identity", "input: T -> output: T", "T: type")
identity_n_op = define_op("IdentityN", "input: T -> output: T", "T: list(type) >= 1")
ref_identity_op = define_op(
    "RefIdentity", "input: Ref(T) -> output: Ref(T)", "T: type", allows_uninitialized_input=True
)
ref_identity_op.declare(Traits(reads=("input",)))
snapshot_op = define_op("Snapshot", "input: T -> output: T", "T: type")
snapshot_op.declare(Traits(forwards=True))
guarantee_const_op = define_op("GuaranteeConst", "input: T -> output: T", "T: type", stateful=True)
# No alias: it refuses handles when it runs.
guarantee_const_op.declare(Traits(effect=False))
stop_gradient_op = define_op(
    "StopGradient", "input: T -> output: T", "T: type"
).not_differentiable()
prevent_gradient_op = define_op(
    "PreventGradient", "input: T -> output: T", "T: type, message: string = ''"
)
for _op in (identity_op, identity_n_op, stop_gradient_op, prevent_gradient_op):
    _op.declare(Traits(forwards=True, builtin=True, fails=Fails.NEVER))


@identity_op.known
def _known_as_given(sig: ShapeSig) -> list[Any]:
    return [sig.known(0)]


for _op in (
    identity_op, ref_identity_op, snapshot_op, guarantee_const_op, stop_gradient_op,
    prevent_gradient_op,
):  # fmt: skip
    _op.shape(common_shapes.unchanged)


@identity_n_op.shape
def _identity_n_shape(sig: ShapeSig) -> list[Shape]:
    return list(sig.shapes)


@identity_op.gradient
@ref_identity_op.gradient
@snapshot_op.gradient
@guarantee_const_op.gradient
@keeps_slices
def _identity_grad(op: Operation, grad: Any) -> Any:
    return grad


@identity_n_op.gradient
@keeps_slices
def _identity_n_grad(op: Operation, *grads: Any) -> list[Any]:
    return list(grads)


@prevent_gradient_op.gradient
def _prevent_gradient_grad(op: Operation, grad: Any) -> Any:
    raise LookupError(f"Gradient explicitly disabled. Reason: {op.attrs['message']}")


@extensible
def identity(input: Any, name: str | None = None) -> Tensor:
    """A tensor with the same value, as a node of its own.

    Args:
        input: a tensor.
        name: a name for the operation.

    Returns:
        A tensor of the same type and shape.
    """
    if hasattr(input, "dense_shape") and not isinstance(input, Tensor):
        return _identity_composite(input)  # type: ignore[no-any-return]
    return identity_op(input, name=name)  # type: ignore[no-any-return]


def _identity_composite(value: Any) -> Any:
    """`identity` of a SparseTensor or IndexedSlices, component by component."""
    values, indices = identity(value.values), identity(value.indices)
    dense = None if value.dense_shape is None else identity(value.dense_shape)
    if isinstance(value, SparseTensor):
        return SparseTensor(indices, values, dense)
    return IndexedSlices(values, indices, dense)


@extensible
def identity_n(input: list[Any], name: str | None = None) -> list[Tensor]:
    """Tensors with the same values, as the outputs of one node.

    Args:
        input: a list of tensors of any types.
        name: a name for the operation.

    Returns:
        A list of tensors.
    """
    return identity_n_op(input, name=name)  # type: ignore[no-any-return]


def guarantee_const(input: Any, name: str | None = None) -> Tensor:
    """Promises that a tensor is the same in every step, so that the compiler may rely on it.

    Args:
        input: a tensor.
        name: a name for the operation.

    Returns:
        A tensor with the same value.
    """
    return guarantee_const_op(input, name=name)  # type: ignore[no-any-return]


@extensible
def stop_gradient(input: Any, name: str | None = None) -> Tensor:
    """The value of a tensor, taken as a constant by `tf.gradients`.

    Args:
        input: a tensor.
        name: a name for the operation.

    Returns:
        A tensor with the same value, through which no gradient flows.
    """
    return stop_gradient_op(input, name=name)  # type: ignore[no-any-return]


# ---------------------------------------------------------------- CheckNumerics
check_numerics_op = define_op(
    "CheckNumerics", "tensor: T -> output: T",
    "T: {bfloat16, half, float, double}, message: string", stateful=True,
)  # fmt: skip
check_numerics_op.declare(
    Traits(effect=False, drop=False, fold=False, checks=True, layout=Elementwise())
)
check_numerics_op.shape(common_shapes.unchanged)


@check_numerics_op.gradient
def _check_numerics_grad(op: Operation, grad: Any) -> Tensor:
    return check_numerics(grad, "Not a number (NaN) or infinity (Inf) values detected in gradient.")


@extensible
def check_numerics(tensor: Any, message: str, name: str | None = None) -> Tensor:
    """Passes a tensor on if it has neither NaN nor Inf.

    Args:
        tensor: a floating-point tensor.
        message: a prefix for the error message.
        name: a name for the operation.

    Returns:
        `tensor`.

    Raises:
        tf.errors.InvalidArgumentError: at run time, when a value is not finite. It names the
            operation that gave it, with its line and inputs, and the global step.
    """
    return check_numerics_op(tensor, message=message, name=name)  # type: ignore[no-any-return]


# ---------------------------------------------------------------- placeholders
placeholder_op = define_op(
    "Placeholder", "-> output: dtype", "dtype: type, shape: shape = { unknown_rank: true }"
).not_differentiable()
placeholder_v2_op = define_op(
    "PlaceholderV2", "-> output: dtype", "dtype: type, shape: shape"
).not_differentiable()
for _op in (placeholder_op, placeholder_v2_op):
    _op.declare(Traits(builtin=True, placeholder=True, merge=False))
placeholder_with_default_op = define_op(
    "PlaceholderWithDefault", "input: dtype -> output: dtype", "dtype: type, shape: shape"
)
placeholder_with_default_op.declare(Traits(forwards=True, builtin=True))


@placeholder_op.shape
@placeholder_v2_op.shape
def _placeholder_shape(sig: ShapeSig) -> Shape:
    shape: Shape = sig.attrs["shape"]
    return shape


@placeholder_with_default_op.shape
def _placeholder_with_default_shape(sig: ShapeSig) -> Shape:
    shape: Shape = sig.attrs["shape"]
    shapes.merge(sig.shapes[0], shape)
    return shape


@placeholder_with_default_op.gradient
@keeps_slices
def _placeholder_with_default_grad(op: Operation, grad: Any) -> Any:
    return grad


def placeholder(dtype: Any, shape: Any = None, name: str | None = None) -> Tensor:
    """A tensor whose value must be fed.

    Args:
        dtype: the type of the elements.
        shape: the shape, possibly partial; any shape may be fed when it is None.
        name: a name for the operation.

    Returns:
        A tensor to be used as a key of `feed_dict`; evaluating it unfed is an error.

    Raises:
        RuntimeError: operations run as they are made.
    """
    if executing_eagerly():
        raise RuntimeError("tf.placeholder() is not compatible with eager execution.")
    return placeholder_op(dtype=dtypes.as_dtype(dtype).base_dtype, shape=shape, name=name)  # type: ignore[no-any-return]


def sparse_placeholder(dtype: Any, shape: Any = None, name: str | None = None) -> SparseTensor:
    """A sparse tensor whose parts must be fed.

    Args:
        dtype: the type of the values.
        shape: the dense shape: when it is fully known it is a constant, which need not be fed.
        name: a prefix for the names of the parts.
    """

    def part(what: str) -> str | None:
        return None if name is None else f"{name}/{what}"

    rank: int | None = None
    dense: Any = None
    if isinstance(shape, Tensor):
        dense, rank = shape, None if shape.raw_shape is None else shape.raw_shape[0]
    elif shape is not None:
        sizes = shapes.as_shape(shape)
        rank = None if sizes is None else len(sizes)
        if sizes is not None and None not in sizes:
            dense = convert_to_tensor(np.array(sizes, np.int64), dtypes.int64, part("shape"))
    if dense is None:
        dense = placeholder(dtypes.int64, [rank], part("shape"))
    values = placeholder(dtype, [None], part("values"))
    return SparseTensor(placeholder(dtypes.int64, [None, rank], part("indices")), values, dense)


def placeholder_with_default(input: Any, shape: Any, name: str | None = None) -> Tensor:
    """A tensor that may be fed and has a default otherwise.

    Args:
        input: the default value.
        shape: the shape that may be fed, possibly partial.
        name: a name for the operation.

    Returns:
        A tensor of the type of `input` and static shape `shape`.
    """
    return placeholder_with_default_op(input, shape=shape, name=name)  # type: ignore[no-any-return]
