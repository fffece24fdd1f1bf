"""Lanczos bidiagonalization."""

from __future__ import annotations

from typing import Any, NamedTuple

from opdock.contrib.solvers import util
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.array import expand_dims, shape, squeeze
from opdock.ops.composed.loops import while_loop
from opdock.ops.composed.tensor_array import TensorArray
from opdock.ops.control import cond
from opdock.ops.fill import zeros
from opdock.ops.joining import concat
from opdock.ops.linalg import matmul
from opdock.ops.matrix import matrix_transpose
from opdock.ops.random import random_uniform

__all__ = ["LanczosBidiagState", "bidiag_matmul", "lanczos_bidiag"]


class LanczosBidiagState(NamedTuple):
    """A bidiagonalization: `A V = U B`, and `A* U[:, :-1] = V B[:-1]*`.

    Attributes:
        u: an orthonormal basis [rows, steps + 1].
        v: an orthonormal basis [columns, steps].
        alpha: the diagonal of B.
        beta: the diagonal of B below that.
    """

    u: Any
    v: Any
    alpha: Any
    beta: Any


def lanczos_bidiag(
    operator: Any, k: Any, orthogonalize: bool = True, starting_vector: Any = None,
    name: str = "lanczos_bidiag",
) -> LanczosBidiagState:  # fmt: skip
    """The Lanczos bidiagonalization of a linear operator.

    Args:
        operator: A, as `util.create_operator` makes it; others need the same attributes.
        k: the number of steps, an int or an int32 scalar.
        orthogonalize: whether each vector is made orthogonal to all before it, as rounding takes
            away from that.
        starting_vector: the direction of the first column of U, a vector [rows]; random when None.
        name: a name for the operations.
    """

    def step(i: Tensor, u: Any, v: Any, alpha: Any, beta: Any) -> Any:
        last = _column(u, i)
        r = operator.apply_adjoint(last)
        known = r.get_shape()
        r = cond(i > 0, lambda: r - beta.read(i - 1) * _column(v, i - 1), lambda: r)
        r.set_shape(known)
        right, length = _orthogonal(i, v, r) if orthogonalize else util.l2normalize(r)
        p = operator.apply(right) - length * last
        left, below = _orthogonal(i + 1, u, p) if orthogonalize else util.l2normalize(p)
        return (
            i + 1,
            u.write(i + 1, squeeze(left, [-1])),
            v.write(i, squeeze(right, [-1])),
            alpha.write(i, length),
            beta.write(i, below),
        )

    with name_scope(name):
        if starting_vector is None:
            starting_vector = random_uniform(operator.shape[:1], -1, 1, dtype=operator.dtype)
        first, _ = util.l2normalize(convert_to_tensor(starting_vector))
        # The vectors are rows here, as an array of tensors stacks them.
        u, v, alpha, beta = (
            TensorArray(operator.dtype, size=size, tensor_array_name=of, clear_after_read=False)
            for size, of in ((k + 1, "u"), (k, "v"), (k, "alpha"), (k, "beta"))
        )
        found = while_loop(
            lambda i, *_: i < k, step, (convert_to_tensor(0), u.write(0, first), v, alpha, beta)
        )
        u, v, alpha, beta = (array.stack() for array in found[1:])
        return LanczosBidiagState(matrix_transpose(u), matrix_transpose(v), alpha, beta)


def _column(vectors: Any, i: Any) -> Tensor:
    return expand_dims(vectors.read(i), -1)


def _orthogonal(count: Tensor, basis: Any, v: Tensor) -> Any:
    """A column less what it has of the first vectors of a basis, made of length 1, and its length.

    Where little is left, rounding has a part in it, and once more takes that away (Parlett, The
    Symmetric Eigenvalue Problem, 1980, 105-109).
    """

    def without(j: Tensor, v: Tensor) -> Any:
        known = v.get_shape()
        vector = _column(basis, j)
        v = v - matmul(vector, v, adjoint_a=True) * vector
        v.set_shape(known)
        return j + 1, v

    def once(v: Tensor) -> Any:
        _, left = while_loop(lambda j, _: j < count, without, (convert_to_tensor(0), v))
        return util.l2normalize(left)

    def again() -> Any:
        better, part = once(unit)
        return better, length * part

    unit, length = once(v)
    found, norm = cond(length < 0.7071 * util.l2norm(v), again, lambda: (unit, length))
    found.set_shape(v.get_shape())
    return found, norm


def bidiag_matmul(
    matrix: Any, alpha: Any, beta: Any, adjoint_b: bool = False, name: str = "bidiag_matmul"
) -> Tensor:
    """The product of a matrix A and the bidiagonal B [k + 1, k], or `A B[:-1]*`.

    Args:
        matrix: A, of k + 1 columns, or of k with `adjoint_b`.
        alpha: the diagonal of B [k].
        beta: the diagonal below it [k].
        adjoint_b: whether it is the adjoint of B without its last row that A is multiplied with.
        name: a name for the operations.
    """
    with name_scope(name):
        matrix, alpha, beta = (convert_to_tensor(t) for t in (matrix, alpha, beta))
        if adjoint_b:
            nothing = zeros(concat([shape(matrix)[:1], [1]], 0), dtype=matrix.dtype)
            product: Tensor = matrix * alpha + concat([nothing, matrix[:, :-1] * beta[:-1]], 1)
        else:
            product = matrix[:, :-1] * alpha + matrix[:, 1:] * beta
        return product
