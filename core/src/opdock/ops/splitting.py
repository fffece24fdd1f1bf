"""Tensors cut into several: splits along a dimension and unstacking."""

from __future__ import annotations

from typing import Any

import numpy as np

from opdock import shapes
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.ops.joining import concat, stack
from opdock.ops.registry import AlongAxis, ShapeSig, Traits, define_op
from opdock.ops.support import array_util
from opdock.shapes import Dimension, Shape

__all__ = ["split", "unstack"]

split_op = define_op(
    "Split", "split_dim: int32, value: T -> output: num_split * T", "num_split: int >= 1, T: type"
)
split_op.declare(Traits(layout=AlongAxis(0)))
split_v_op = define_op(
    "SplitV", "value: T, size_splits: Tlen, split_dim: int32 -> output: num_split * T",
    "num_split: int >= 1, T: type, Tlen: {int32, int64} = DT_INT64",
)  # fmt: skip
split_v_op.declare(Traits(layout=AlongAxis(-1)))
unpack_op = define_op(
    "Unpack", "value: T -> output: num * T", "num: int >= 0, T: type, axis: int = 0"
)


def _split_axis(sig: ShapeSig, index: int, source: Shape) -> int | None:
    array_util.scalar_shape(sig, index)
    values = array_util.const_ints(sig, index)
    if values is None or (source is None and values[0] < 0):
        return None
    axis = values[0]
    if source is not None:
        n = len(source)
        if not -n <= axis < n:
            raise ValueError(
                f"Dimension size, given by scalar input {axis} must be in range [-{n}, {n})"
            )
        axis %= n
    return axis


@split_op.shape
def _split_shape(sig: ShapeSig) -> list[Shape]:
    source = sig.shapes[1]
    axis = _split_axis(sig, 0, source)
    if source is None:
        out: Shape = None
    elif axis is None:
        out = (None,) * len(source)
    else:
        try:
            part = array_util.divide_exactly(source[axis], sig.n_outputs)
        except ValueError as e:
            raise ValueError(
                f"{e}. Number of ways to split should evenly divide the split dimension"
            ) from None
        out = array_util.replace(source, axis, part)
    return [out] * sig.n_outputs


@split_v_op.shape
def _split_v_shape(sig: ShapeSig) -> list[Shape]:
    source, sizes = sig.shapes[0], array_util.const_ints(sig, 1)
    axis = _split_axis(sig, 2, source)
    if source is None:
        return [None] * sig.n_outputs
    if not source:
        raise ValueError("Can't split scalars")
    if axis is None:
        return [(None,) * len(source)] * sig.n_outputs
    if sizes is None:
        return [array_util.replace(source, axis, None)] * sig.n_outputs
    lengths = split_lengths(sizes, source[axis], sig.n_outputs)
    return [array_util.replace(source, axis, n) for n in lengths]


def split_lengths(sizes: list[int], total: int | None, count: int) -> list[int | None]:
    """The lengths of the parts, -1 resolved; ValueError when they do not add up to `total`."""
    if len(sizes) != count:
        raise ValueError("Length of size_splits should be equal to num_outputs")
    if sizes.count(-1) > 1:
        raise ValueError("size_splits can only have one -1")
    given = sum(s for s in sizes if s != -1)
    if total is not None and (given > total if -1 in sizes else given != total):
        pieces = ",".join(str(s) for s in sizes)
        raise ValueError(f"can't split axis of size {total} into pieces of size [{pieces}]")
    return [(None if total is None else total - given) if s == -1 else s for s in sizes]


@unpack_op.shape
def _unpack_shape(sig: ShapeSig) -> list[Shape]:
    source, axis = sig.shapes[0], sig.attrs["axis"]
    if source is None:
        return [None] * sig.n_outputs
    n = len(source)
    if not -n <= axis < n:
        raise ValueError(f"Invalid axis: {axis}; must be in [{-n},{n})")
    axis %= n
    array_util.with_dim(source[axis], sig.n_outputs)
    return [source[:axis] + source[axis + 1 :]] * sig.n_outputs


@split_op.gradient
def _split_grad(op: Operation, *grads: Any) -> list[Any]:
    return [None, concat(list(grads), op.inputs[0])]


@split_v_op.gradient
def _split_v_grad(op: Operation, *grads: Any) -> list[Any]:
    return [concat(list(grads), op.inputs[2]), None, None]


@unpack_op.gradient
def _unpack_grad(op: Operation, *grads: Any) -> Any:
    return stack(list(grads), axis=op.attrs["axis"])


@extensible
def split(
    value: Any,
    num_or_size_splits: Any,
    axis: Any = 0,
    num: int | None = None,
    name: str = "split",
) -> list[Tensor]:
    """Splits a tensor along a dimension.

    Args:
        value: a tensor.
        num_or_size_splits: an integer: so many equal parts; or a 1-D integer tensor: the parts'
            lengths, of which one may be -1.
        axis: the dimension to split, in [-rank, rank).
        num: the number of parts, where it cannot be inferred.
        name: a name for the operation.

    Returns:
        A list of tensors.

    Raises:
        ValueError: the parts do not fit, or their number cannot be inferred.
    """
    sizes = convert_to_tensor(num_or_size_splits)
    if isinstance(num_or_size_splits, (int, np.integer, Dimension)):
        return split_op(axis, value, num_split=int(num_or_size_splits), name=name)  # type: ignore[no-any-return]
    if sizes.raw_shape == ():
        raise ValueError(
            "Rank-0 tensors are not supported as the num_or_size_splits argument to split. "
            f"Argument provided: {num_or_size_splits}"
        )
    if num is None and sizes.raw_shape:
        num = sizes.raw_shape[0]
    if num is None:
        raise ValueError(f"Cannot infer num from shape {num_or_size_splits}")
    return split_v_op(value, sizes, axis, num_split=num, name=name)  # type: ignore[no-any-return]


@extensible
def unstack(
    value: Any, num: int | None = None, axis: int = 0, name: str = "unstack"
) -> list[Tensor]:
    """The slices of a tensor along a dimension, without that dimension.

    Args:
        value: a tensor of rank 1 or more.
        num: the length of the dimension; inferred by default.
        axis: the dimension, in [-rank, rank).
        name: a name for the operation.

    Returns:
        A list of `num` tensors.

    Raises:
        ValueError: `num` cannot be inferred, or `axis` is out of range.
    """
    if num is None:
        value = convert_to_tensor(value)
        known = value.raw_shape
        if known is not None:
            if not -len(known) <= axis < len(known):
                raise ValueError(f"axis = {axis} not in [{-len(known)}, {len(known)})")
            num = known[axis]
        if num is None:
            raise ValueError(f"Cannot infer num from shape {shapes.TensorShape(known)}")
    return unpack_op(value, num=num, axis=axis, name=name)  # type: ignore[no-any-return]
