"""Operators made of several: products one after the other, blocks, Kronecker products."""

from __future__ import annotations

import functools
import itertools
import operator as operators_of
from typing import Any

from opdock import errors
from opdock.graph.nodes.scopes import name_scope
from opdock.linear.base import LinearOperator
from opdock.linear.helpers import (
    all_hint,
    broadcast_matrix_batch_dims,
    common_batch,
    common_batch_tensor,
    common_dtype,
    dimension,
)
from opdock.ops.array import broadcast_static_shape, expand_dims, rank, reshape, shape, squeeze
from opdock.ops.cast import cast
from opdock.ops.control import group
from opdock.ops.fill import ones_like, range, zeros
from opdock.ops.joining import concat, stack
from opdock.ops.linalg import adjoint as adjoint_of
from opdock.ops.matrix import matrix_transpose, transpose
from opdock.ops.splitting import split
from opdock.shapes import TensorShape


class _Joined(LinearOperator):
    """An operator made of others."""

    def _start(
        self, operators: list[Any], mark: str, name: str | None, **hints: bool | None
    ) -> None:
        self._operators = operators
        parents = [t for part in operators for t in part.graph_parents]
        title = name or mark.join(part.name for part in operators)
        with name_scope(title, values=parents):
            super().__init__(operators[0].dtype, parents, name=title, **hints)

    @property
    def operators(self) -> list[Any]:
        """The parts."""
        return self._operators

    def _each(self, method: str) -> list[Any]:
        return [getattr(part, method)() for part in self._operators]


class LinearOperatorComposition(_Joined):
    """The product of operators: the last one is applied first.

    Args:
        operators: the factors, of one type.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square: the hints.
        name: a name; the names of the factors joined by "_o_" by default.

    Raises:
        TypeError: the types differ.
        ValueError: there are none, or a hint contradicts theirs.
    """

    def __init__(
        self, operators: Any, is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None, is_positive_definite: bool | None = None,
        is_square: bool | None = None, name: str | None = None,
    ) -> None:  # fmt: skip
        parts, _ = common_dtype(operators)
        self._start(
            parts, "_o_", name,
            is_non_singular=all_hint(parts, "is_non_singular", is_non_singular, "composition"),
            is_self_adjoint=is_self_adjoint, is_positive_definite=is_positive_definite,
            is_square=is_square,
        )  # fmt: skip

    def _shape(self) -> TensorShape:
        for left, right in itertools.pairwise(self._operators):
            left.domain_dimension.assert_is_compatible_with(right.range_dimension)
        ends = [self._operators[0].range_dimension, self._operators[-1].domain_dimension]
        return common_batch(self._operators).concatenate(TensorShape(ends))

    def _shape_tensor(self) -> Any:
        ends = stack(
            [
                self._operators[0].range_dimension_tensor(),
                self._operators[-1].domain_dimension_tensor(),
            ]
        )
        return concat([common_batch_tensor(self._operators), ends], 0)

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        order = self._operators if adjoint else self._operators[::-1]
        for part in order:
            x = part.matmul(x, adjoint=adjoint, adjoint_arg=adjoint_arg)
            adjoint_arg = False
        return x

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        order = self._operators[::-1] if adjoint else self._operators
        for part in order:
            rhs = part.solve(rhs, adjoint=adjoint, adjoint_arg=adjoint_arg)
            adjoint_arg = False
        return rhs

    def _determinant(self) -> Any:
        return functools.reduce(operators_of.mul, self._each("determinant"))

    def _log_abs_determinant(self) -> Any:
        return functools.reduce(operators_of.add, self._each("log_abs_determinant"))


def _inherited(
    parts: list[Any], given: dict[str, bool | None], what: str
) -> dict[str, bool | None]:
    return {name: all_hint(parts, name, hint, what) for name, hint in given.items()}


class LinearOperatorBlockDiag(_Joined):
    """Square operators one after the other on a diagonal.

    Args:
        operators: the blocks, of one type.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square: the hints.
        name: a name; the names of the blocks joined by "_ds_" by default.

    Raises:
        TypeError: the types differ.
        ValueError: there are none, one is not square, or a hint contradicts theirs.
    """

    def __init__(
        self, operators: Any, is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None, is_positive_definite: bool | None = None,
        is_square: bool = True, name: str | None = None,
    ) -> None:  # fmt: skip
        parts, _ = common_dtype(operators)
        hints = _inherited(parts, {
            "is_non_singular": is_non_singular, "is_self_adjoint": is_self_adjoint,
            "is_positive_definite": is_positive_definite,
        }, "direct sum")  # fmt: skip
        if not (is_square and all(part.is_square for part in parts)):
            raise ValueError("Can only represent a block diagonal of square matrices.")
        self._start(parts, "_ds_", name, is_square=True, **hints)

    def _shape(self) -> TensorShape:
        sizes = [part.domain_dimension for part in self._operators]
        whole = functools.reduce(operators_of.add, sizes)
        return common_batch(self._operators).concatenate(TensorShape([whole, whole]))

    def _shape_tensor(self) -> Any:
        whole = functools.reduce(operators_of.add, self._each("domain_dimension_tensor"))
        return concat([common_batch_tensor(self._operators), [whole, whole]], 0)

    def _pieces(self, x: Any, axis: int) -> list[Any]:
        sizes = [part.domain_dimension.value for part in self._operators]
        if None in sizes:
            return split(x, stack(self._each("domain_dimension_tensor")), axis=axis,
                         num=len(sizes))  # fmt: skip
        return split(x, sizes, axis=axis)

    def _on_blocks(self, method: str, x: Any, adjoint: bool, adjoint_arg: bool) -> Any:
        pieces = self._pieces(x, -1 if adjoint_arg else -2)
        found = [
            getattr(part, method)(piece, adjoint=adjoint, adjoint_arg=adjoint_arg)
            for part, piece in zip(self._operators, pieces, strict=True)
        ]
        return concat(broadcast_matrix_batch_dims(found), -2)

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return self._on_blocks("matmul", x, adjoint, adjoint_arg)

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return self._on_blocks("solve", rhs, adjoint, adjoint_arg)

    def _determinant(self) -> Any:
        return functools.reduce(operators_of.mul, self._each("determinant"))

    def _log_abs_determinant(self) -> Any:
        return functools.reduce(operators_of.add, self._each("log_abs_determinant"))

    def _trace(self) -> Any:
        return functools.reduce(operators_of.add, self._each("trace"))

    def _diag_part(self) -> Any:
        columns = broadcast_matrix_batch_dims(
            [expand_dims(part, -1) for part in self._each("diag_part")]
        )
        return squeeze(concat(columns, -2), [-1])

    def _to_dense(self) -> Any:
        rows: list[Any] = []
        before: Any = 0
        blocks = broadcast_matrix_batch_dims(self._each("to_dense"))
        for block in blocks:
            outer, columns = shape(block)[:-1], shape(block)[-1]
            after = self.domain_dimension_tensor() - before - columns
            left = zeros(concat([outer, [before]], 0), dtype=block.dtype)
            right = zeros(concat([outer, [after]], 0), dtype=block.dtype)
            rows.append(concat([left, block, right], -1))
            before = before + columns
        matrix = concat(rows, -2)
        matrix.set_shape(self.shape)
        return matrix

    def _assert_non_singular(self) -> Any:
        return group(*self._each("assert_non_singular"))

    def _assert_self_adjoint(self) -> Any:
        return group(*self._each("assert_self_adjoint"))

    def _assert_positive_definite(self) -> Any:
        return group(*self._each("assert_positive_definite"))


# ---------------------------------------------------------------- Kronecker products
def _vec(x: Any) -> Any:
    """The columns of a matrix one after the other."""
    return reshape(matrix_transpose(x), concat([shape(x)[:-2], [-1]], 0))


def _columns(y: Any, count: Any) -> Any:
    """A vector as a matrix of so many columns."""
    return matrix_transpose(reshape(y, concat([shape(y)[:-1], [count, -1]], 0)))


def _rotated(x: Any, right: bool) -> Any:
    """The last dimension to the front, or the first to the back."""
    count = rank(x)
    order = [[count - 1], range(0, count - 1)] if right else [range(1, count), [0]]
    return transpose(x, concat(order, 0))


class LinearOperatorKronecker(_Joined):
    """The Kronecker product of operators.

    Args:
        operators: the factors, of one type.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square: the hints.
        name: a name; the names of the factors joined by "_x_" by default.

    Raises:
        TypeError: the types differ.
        ValueError: there are none, or a hint contradicts theirs.
    """

    def __init__(
        self, operators: Any, is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None, is_positive_definite: bool | None = None,
        is_square: bool | None = None, name: str | None = None,
    ) -> None:  # fmt: skip
        parts, _ = common_dtype(operators)
        hints = _inherited(parts, {
            "is_non_singular": is_non_singular, "is_self_adjoint": is_self_adjoint,
            "is_positive_definite": is_positive_definite,
        }, "Kronecker product")  # fmt: skip
        self._start(parts, "_x_", name, is_square=is_square, **hints)

    def _shape(self) -> TensorShape:
        ends = [
            functools.reduce(operators_of.mul, [getattr(p, which) for p in self._operators])
            for which in ("range_dimension", "domain_dimension")
        ]
        return common_batch(self._operators).concatenate(TensorShape(ends))

    def _shape_tensor(self) -> Any:
        ends = [
            functools.reduce(operators_of.mul, self._each(which))
            for which in ("range_dimension_tensor", "domain_dimension_tensor")
        ]
        return concat([common_batch_tensor(self._operators), ends], 0)

    def _applied(self, method: str, x: Any, adjoint: bool, adjoint_arg: bool) -> Any:
        """A matrix as vectors, each factor on its own dimension: (A x B) vec(X) = vec(B X A^T)."""
        if adjoint_arg:
            x = adjoint_of(x)
        units = concat([ones_like(self.batch_shape_tensor()), [1, 1]], 0)
        x = x + zeros(units, dtype=x.dtype.base_dtype)
        solving = method == "solve"
        found = expand_dims(_rotated(x, True), 0)
        for part in self._operators[:-1]:
            rows = part.range_dimension_tensor() if adjoint != solving else (
                part.domain_dimension_tensor()
            )  # fmt: skip
            found = matrix_transpose(_columns(found, rows))
            found = matrix_transpose(getattr(part, method)(found, adjoint=adjoint))
            found = _rotated(_vec(_rotated(found, False)), True)
        last = self._operators[-1]
        by_vector = last.solvevec if solving else last.matvec
        found = _rotated(by_vector(found, adjoint=adjoint), False)
        found = _rotated(_vec(found), False)
        if x.shape.ndims is not None and self.shape.ndims is not None:
            side = self.domain_dimension if adjoint != solving else self.range_dimension
            batch = common_batch([self])
            if x.shape[:-2].is_fully_defined() and batch.is_fully_defined():
                whole = broadcast_static_shape(x.shape[:-2], batch)
                found.set_shape(whole.concatenate([side, dimension(x.shape, -1)]))
        return found

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return self._applied("matmul", x, adjoint, adjoint_arg)

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return self._applied("solve", rhs, adjoint, adjoint_arg)

    def _powers(self) -> list[Any]:
        """How often each factor's determinant counts."""
        whole = self.domain_dimension_tensor()
        return [cast(whole / n, self.dtype) for n in self._each("domain_dimension_tensor")]

    def _determinant(self) -> Any:
        pairs = zip(self._each("determinant"), self._powers(), strict=True)
        return functools.reduce(operators_of.mul, [det**power for det, power in pairs])

    def _log_abs_determinant(self) -> Any:
        pairs = zip(self._each("log_abs_determinant"), self._powers(), strict=True)
        terms = [cast(det, self.dtype) * power for det, power in pairs]
        return functools.reduce(operators_of.add, terms)

    def _trace(self) -> Any:
        return functools.reduce(operators_of.mul, self._each("trace"))

    def _diag_part(self) -> Any:
        found, *rest = self._each("diag_part")
        for part in rest:
            found = expand_dims(found, -1) * expand_dims(part, -2)
            found = reshape(found, concat([shape(found)[:-2], [-1]], 0))
        return found

    def _to_dense(self) -> Any:
        found, *rest = self._each("to_dense")
        for part in rest:
            found = expand_dims(expand_dims(found, -1), -3)
            found = found * expand_dims(expand_dims(part, -2), -4)
            sizes = shape(found)
            ends = [sizes[-4] * sizes[-3], sizes[-2] * sizes[-1]]
            found = reshape(found, concat([sizes[:-4], ends], 0))
        found.set_shape(self.shape)
        return found

    def _of_squares(self, method: str, what: str) -> Any:
        if not all(part.is_square for part in self._operators):
            raise errors.InvalidArgumentError(
                None, None, f"All Kronecker factors must be square for the product to be {what}."
            )
        return group(*self._each(method))

    def _assert_non_singular(self) -> Any:
        return self._of_squares("assert_non_singular", "invertible")

    def _assert_self_adjoint(self) -> Any:
        return self._of_squares("assert_self_adjoint", "self adjoint")
