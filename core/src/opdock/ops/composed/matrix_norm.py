"""Norms of vectors and matrices, and division by them."""

from __future__ import annotations

from typing import Any

import numpy as np

from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.arithmetic import pow as pow_
from opdock.ops.array import expand_dims, squeeze
from opdock.ops.cast import cast
from opdock.ops.complex import conj
from opdock.ops.decompositions import svd
from opdock.ops.elementary import abs as abs_
from opdock.ops.elementary import sqrt
from opdock.ops.matrix import transpose
from opdock.ops.reduce import reduce_max, reduce_sum
from opdock.ops.support import array_util

__all__ = ["norm"]

_MATRIX_NORMS = ["euclidean", "fro", 1, 2, np.inf]
_BAD_AXIS = "'axis' must be None, an integer, or a tuple of 2 unique integers"


@extensible
def norm(
    tensor: Any, ord: Any = "euclidean", axis: Any = None, keepdims: Any = None,
    name: str | None = None, keep_dims: Any = None,
) -> Tensor:  # fmt: skip
    """The norm of vectors or matrices.

    Args:
        tensor: a floating-point or complex tensor.
        ord: "euclidean", 1, 2, inf or another positive number (for vectors: the p-norm); for
            matrices "fro" (the same as "euclidean"), 1, 2 (the largest singular value) or inf.
        axis: an integer (vector norms along that dimension), a pair of integers (matrix norms), or
            None (the norm of all elements as one vector).
        keepdims: whether reduced dimensions stay, with size 1.
        name: a name for the operation.
        keep_dims: the old name of `keepdims`.

    Returns:
        A tensor of the type of `tensor`.

    Raises:
        ValueError: `ord` or `axis` is none of these.
    """
    keep = bool(array_util.renamed("keepdims", keepdims, "keep_dims", keep_dims))
    of_matrix = isinstance(axis, (list, tuple)) and len(axis) == 2
    axes = _checked(ord, axis, of_matrix)
    with name_scope(name, "norm", [tensor]):
        tensor = convert_to_tensor(tensor)
        if ord in ("fro", "euclidean", 2):
            if of_matrix and ord == 2:
                result = _spectral(tensor, axes)
            else:
                result = _euclidean(tensor, axes)
        else:
            result = _absolute(tensor, ord, axes, of_matrix)
        return result if keep else squeeze(result, axes)


def _checked(ord: Any, axis: Any, of_matrix: bool) -> list[int] | None:
    if of_matrix:
        if not all(isinstance(a, (int, np.integer)) for a in axis) or axis[0] == axis[1]:
            raise ValueError(_BAD_AXIS)
        if ord not in _MATRIX_NORMS:
            raise ValueError(f"'ord' must be a supported matrix norm in {_MATRIX_NORMS}, got {ord}")
        return [int(a) for a in axis]
    if axis is not None and not isinstance(axis, (int, np.integer)):
        raise ValueError(_BAD_AXIS)
    if ord != "euclidean" and (isinstance(ord, str) or not np.isreal(ord) or ord <= 0):
        raise ValueError(f"'ord' must be a supported vector norm, got {ord}")
    return None if axis is None else [int(axis)]


def _euclidean(tensor: Tensor, axes: list[int] | None) -> Tensor:
    out: Tensor = sqrt(reduce_sum(tensor * conj(tensor), axes, keepdims=True))
    return out


def _absolute(tensor: Tensor, ord: Any, axes: list[int] | None, of_matrix: bool) -> Tensor:
    result = abs_(tensor)
    first = None if axes is None else axes[0]
    if ord == 1:
        result = reduce_sum(result, first, keepdims=True)
        if of_matrix and axes is not None:
            result = reduce_max(result, axes[1], keepdims=True)
        return result
    if ord == np.inf:
        if of_matrix and axes is not None:
            result = reduce_sum(result, axes[1], keepdims=True)
        return reduce_max(result, first, keepdims=True)
    return pow_(reduce_sum(pow_(result, ord), axes, keepdims=True), 1.0 / ord)


def _spectral(tensor: Tensor, axes: list[int] | None) -> Tensor:
    """The largest singular value of the matrices over `axes`."""
    assert axes is not None
    static = tensor.raw_shape
    if static is None:
        raise ValueError(f"'ord' 2 needs a tensor of known rank, got {tensor}.")
    n = len(static)
    pair = [a % n for a in axes]
    order = [i for i in range(n) if i not in pair] + pair
    values = abs_(svd(transpose(tensor, order), compute_uv=False))
    largest = expand_dims(reduce_max(values, axis=-1, keepdims=True), axis=-1)
    return transpose(largest, [order.index(i) for i in range(n)])


@extensible
def normalize(
    tensor: Any, ord: Any = "euclidean", axis: Any = None, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Divides a tensor by its norm along some axis (`tf.linalg.normalize`).

    Args:
        tensor: a floating-point or complex tensor.
        ord: the norm; see `tf.norm`.
        axis: the axis or pair of axes; see `tf.norm`.
        name: a name for the operation.

    Returns:
        The tensor over its norm, and the norm with its dimensions kept.
    """
    with name_scope(name, "normalize", [tensor]):
        tensor = convert_to_tensor(tensor)
        length = cast(norm(tensor, ord, axis, keepdims=True), tensor.dtype)
        return tensor / length, length
