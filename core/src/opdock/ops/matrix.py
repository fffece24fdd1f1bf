"""Matrices turned and trimmed: transposition and bands."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from opdock import axes, shapes
from opdock.graph.nodes.constant_value import constant_value
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.array import rank
from opdock.ops.fill import range
from opdock.ops.joining import concat
from opdock.ops.registry import Fails, ShapeSig, Traits, define_op, get
from opdock.ops.support import array_util, common_shapes
from opdock.shapes import Shape

__all__ = ["matrix_band_part", "matrix_transpose", "transpose"]

# ---------------------------------------------------------------- Transpose
_ATTRS = "T: type, Tperm: {int32, int64} = DT_INT32"
transpose_op = define_op("Transpose", "x: T, perm: Tperm -> y: T", _ATTRS)
transpose_op.declare(Traits(fails=Fails.NEVER))
conjugate_transpose_op = define_op("ConjugateTranspose", "x: T, perm: Tperm -> y: T", _ATTRS)


@transpose_op.shape
@conjugate_transpose_op.shape
def _transpose_shape(sig: ShapeSig) -> Shape:
    source, count = sig.shapes[0], array_util.vector_length(sig.shapes[1])
    perm = array_util.const_ints(sig, 1)
    n = len(source) if source is not None else count
    if n is None or (source is None and n < 2):
        # One entry may stand for a scalar too, so it tells nothing.
        return source
    source = shapes.with_rank(source, n)
    array_util.with_dim(count, n)
    if perm is None:
        return (None,) * n
    return tuple(source[axis] for axis in axes.permutation(perm, n, static=True))


@transpose_op.gradient
def _transpose_grad(op: Operation, grad: Any) -> list[Any]:
    return [transpose_op(grad, _inverse(op.inputs[1])), None]


@conjugate_transpose_op.gradient
def _conjugate_transpose_grad(op: Operation, grad: Any) -> list[Any]:
    return [conjugate_transpose_op(grad, _inverse(op.inputs[1])), None]


def _inverse(perm: Tensor) -> Any:
    known = constant_value(perm)
    if known is not None:
        return np.argsort(known % max(1, known.size)).astype(known.dtype)
    return get("InvertPermutation")(perm)


@extensible
def transpose(a: Any, perm: Any = None, name: str = "transpose", conjugate: bool = False) -> Tensor:
    """Permutes the dimensions of a tensor.

    Args:
        a: a tensor.
        perm: the permutation: dimension `i` of the result is dimension `perm[i]` of `a`; by
            default the dimensions are reversed.
        name: a name for the operation.
        conjugate: whether to conjugate complex elements too.

    Returns:
        A tensor of the type of `a`.

    Raises:
        ValueError: `perm` is not a permutation of the dimensions.
    """
    if isinstance(a, Tensor) and perm is not None:
        return _transpose(a, perm, conjugate, name)
    with name_scope(name, "transpose", [a]) as scope:
        a = convert_to_tensor(a, name="a")
        if perm is None:
            known = a.raw_shape
            if known:
                perm = np.arange(len(known) - 1, -1, -1)
            else:
                n = rank(a)
                perm = (n - 1) - range(0, n, 1)
        return _transpose(a, perm, conjugate, scope)


def _transpose(a: Tensor, perm: Any, conjugate: bool, name: str) -> Tensor:
    op = conjugate_transpose_op if conjugate and a.dtype.is_complex else transpose_op
    return op(a, perm, name=name)  # type: ignore[no-any-return]


@extensible
def matrix_transpose(a: Any, name: str = "matrix_transpose", conjugate: bool = False) -> Tensor:
    """Swaps the last two dimensions of a tensor.

    Args:
        a: a tensor of rank 2 or more.
        name: a name for the operation.
        conjugate: whether to conjugate complex elements too.

    Returns:
        A tensor of the type of `a`.

    Raises:
        ValueError: the rank is below 2.
    """
    with name_scope(name, None, [a]):
        a = convert_to_tensor(a, name="a")
        known = a.raw_shape
        perm: Any
        if known is not None:
            n = len(known)
            if n < 2:
                raise ValueError(
                    "Argument 'a' should be a (batch) matrix, with rank >= 2.  Found: "
                    f"{shapes.text(known)}"
                )
            perm = [*builtins.range(n - 2), n - 1, n - 2]
        else:
            n_ = rank(a)
            perm = concat((range(0, n_ - 2, 1), [n_ - 1, n_ - 2]), 0)
        return transpose(a, perm=perm, conjugate=conjugate)


# ---------------------------------------------------------------- MatrixBandPart
matrix_band_part_op = define_op(
    "MatrixBandPart", "input: T, num_lower: Tindex, num_upper: Tindex -> band: T",
    "T: type, Tindex: {int32, int64} = DT_INT64",
)  # fmt: skip
matrix_band_part_op.shape(common_shapes.unchanged)


@matrix_band_part_op.gradient
def _matrix_band_part_grad(op: Operation, grad: Any) -> list[Any]:
    return [matrix_band_part_op(grad, op.inputs[1], op.inputs[2]), None, None]


@extensible
def matrix_band_part(input: Any, num_lower: Any, num_upper: Any, name: str | None = None) -> Tensor:
    """Copies of matrices with zeros outside a band around the main diagonal.

    Args:
        input: a tensor of rank 2 or more.
        num_lower: how many diagonals below the main one to keep; all when negative.
        num_upper: how many diagonals above the main one to keep; all when negative.
        name: a name for the operation.

    Returns:
        A tensor of the same type and shape.
    """
    return matrix_band_part_op(input, num_lower, num_upper, name=name)  # type: ignore[no-any-return]
