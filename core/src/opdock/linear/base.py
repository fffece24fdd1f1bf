"""`LinearOperator`: a batch of matrices known by what they do to vectors."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from typing import Any

import numpy as np

from opdock import dtypes
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import is_tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.graph.variables.variable import Variable
from opdock.linear import algebra, dispatched
from opdock.linear.helpers import (
    cholesky_solve_with_broadcast,
    dimension,
    matrix_solve_with_broadcast,
    static_batch,
)
from opdock.ops.array import expand_dims, size, squeeze
from opdock.ops.cast import cast
from opdock.ops.check import assert_equal, assert_less, assert_positive
from opdock.ops.composed.eye import eye
from opdock.ops.decompositions import cholesky, svd
from opdock.ops.diag import matrix_diag_part
from opdock.ops.linalg import adjoint
from opdock.ops.reduce import reduce_max, reduce_min, reduce_sum
from opdock.ops.solve import log_matrix_determinant, matrix_determinant
from opdock.ops.support.nn_util import emit
from opdock.shapes import Dimension, TensorShape
from opdock.util.module import Module

_log = logging.getLogger("tensorflow")


class LinearOperator(Module):
    """A batch of matrices of shape [..., M, N], which need not be written down.

    Subclasses define `_shape`, `_shape_tensor` and `_matmul`, and whatever they can do better than
    the dense matrix can. A hint is True, False or None for not known; hints are promises, which
    choose the algorithms.

    Args:
        dtype: the type of the entries.
        graph_parents: the tensors that the operator is made of.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square: the hints.
        name: a name for the operator.

    Raises:
        ValueError: the hints contradict each other, or a parent is no tensor.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        dispatched.register(cls)

    def __init__(
        self, dtype: Any, graph_parents: Any = None, is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None, is_positive_definite: bool | None = None,
        is_square: bool | None = None, name: str | None = None,
    ) -> None:  # fmt: skip
        if is_positive_definite:
            if is_non_singular is False:
                raise ValueError("A positive definite matrix is always non-singular.")
            is_non_singular = True
        if is_non_singular:
            if is_square is False:
                raise ValueError("A non-singular matrix is always square.")
            is_square = True
        if is_self_adjoint:
            if is_square is False:
                raise ValueError("A self-adjoint matrix is always square.")
            is_square = True
        parents = [] if graph_parents is None else list(graph_parents)
        for i, t in enumerate(parents):
            if not (is_tensor(t) or isinstance(t, Variable)):
                raise ValueError(f"Graph parent item {i} is not a Tensor; {t}.")
        self._dtype = dtypes.as_dtype(dtype).base_dtype if dtype else dtype
        self._graph_parents = parents
        self._square_hint = is_square
        self._is_non_singular = is_non_singular
        self._is_self_adjoint = is_self_adjoint
        self._is_positive_definite = is_positive_definite
        self._name = name or type(self).__name__

    @contextlib.contextmanager
    def _name_scope(self, name: str | None = None) -> Iterator[str]:
        with name_scope(self.name if name is None else f"{self.name}/{name}") as scope:
            yield scope

    # ------------------------------------------------------------ what it is
    @property
    def dtype(self) -> Any:
        """The type of the entries."""
        return self._dtype

    @property
    def name(self) -> str:
        """The operator's name."""
        return self._name

    @property
    def graph_parents(self) -> list[Any]:
        """The tensors that the operator is made of."""
        return self._graph_parents

    @property
    def is_non_singular(self) -> bool | None:
        """Whether all matrices have inverses, if known."""
        return self._is_non_singular

    @property
    def is_self_adjoint(self) -> bool | None:
        """Whether all matrices are equal to their conjugate transposes, if known."""
        return self._is_self_adjoint

    @property
    def is_positive_definite(self) -> bool | None:
        """Whether the real part of `x^H A x` is positive for all x but 0, if known."""
        return self._is_positive_definite

    @property
    def is_square(self) -> bool | None:
        """Whether the matrices are square, if known.

        Raises:
            ValueError: the hint says no, but they are.
        """
        same = self.domain_dimension == self.range_dimension
        if self._square_hint is False and same:
            raise ValueError("User set is_square hint to False, but the operator was square.")
        return same if self._square_hint is None else self._square_hint

    # ------------------------------------------------------------ shape
    def _shape(self) -> TensorShape:
        raise NotImplementedError("_shape is not implemented.")

    def _shape_tensor(self) -> Any:
        raise NotImplementedError("_shape_tensor is not implemented.")

    @property
    def shape(self) -> TensorShape:
        """The static shape, [..., M, N]."""
        return self._shape()

    def shape_tensor(self, name: str = "shape_tensor") -> Any:
        """The shape as an int32 vector."""
        with self._name_scope(name):
            known = self.shape
            if known.is_fully_defined():
                return convert_to_tensor(known.as_list(), dtype=dtypes.int32)
            return self._shape_tensor()

    @property
    def batch_shape(self) -> TensorShape:
        """The static shape without the last two dimensions."""
        return self.shape[:-2]  # type: ignore[no-any-return]

    def batch_shape_tensor(self, name: str = "batch_shape_tensor") -> Any:
        """The shape without the last two dimensions as an int32 vector."""
        with self._name_scope(name):
            known = self.batch_shape
            if known.is_fully_defined():
                return convert_to_tensor(known.as_list(), dtype=dtypes.int32, name="batch_shape")
            return self.shape_tensor()[:-2]

    @property
    def tensor_rank(self) -> int | None:
        """The number of dimensions, if known."""
        return self.shape.ndims

    def tensor_rank_tensor(self, name: str = "tensor_rank_tensor") -> Any:
        """The number of dimensions as an int32 scalar."""
        with self._name_scope(name):
            if self.tensor_rank is not None:
                return convert_to_tensor(self.tensor_rank)
            return size(self.shape_tensor())

    @property
    def domain_dimension(self) -> Dimension:
        """N, the number of columns."""
        return dimension(self.shape, -1)

    @property
    def range_dimension(self) -> Dimension:
        """M, the number of rows."""
        return dimension(self.shape, -2)

    def domain_dimension_tensor(self, name: str = "domain_dimension_tensor") -> Any:
        """N as an int32 scalar."""
        with self._name_scope(name):
            known = self.domain_dimension.value
            return self.shape_tensor()[-1] if known is None else convert_to_tensor(known)

    def range_dimension_tensor(self, name: str = "range_dimension_tensor") -> Any:
        """M as an int32 scalar."""
        with self._name_scope(name):
            known = self.range_dimension.value
            return self.shape_tensor()[-2] if known is None else convert_to_tensor(known)

    def _batch(self) -> Any:
        """The batch shape, as numbers if they are known."""
        known = static_batch(self.batch_shape)
        return self.batch_shape_tensor() if known is None else known

    # ------------------------------------------------------------ assertions
    def assert_non_singular(self, name: str = "assert_non_singular") -> Any:
        """An operation that fails where a matrix has no inverse."""
        with self._name_scope(name):
            return self._assert_non_singular()

    def assert_positive_definite(self, name: str = "assert_positive_definite") -> Any:
        """An operation that fails where a matrix is not positive definite."""
        with self._name_scope(name):
            return self._assert_positive_definite()

    def assert_self_adjoint(self, name: str = "assert_self_adjoint") -> Any:
        """An operation that fails where a matrix is not self-adjoint."""
        with self._name_scope(name):
            return self._assert_self_adjoint()

    def _dense_way(self, what: str) -> None:
        _log.warning(
            "Using (possibly slow) default implementation of %s.  Requires conversion to a dense "
            "matrix and O(N^3) operations.", what,
        )  # fmt: skip

    def _assert_non_singular(self) -> Any:
        self._dense_way("assert_non_singular")
        if self._can_use_cholesky():
            return self.assert_positive_definite()
        values = svd(self.to_dense(), compute_uv=False)
        condition = reduce_max(values, axis=-1) / reduce_min(values, axis=-1)
        real = self.dtype.real_dtype
        sides = [
            cast(d, real) for d in (self.range_dimension_tensor(), self.domain_dimension_tensor())
        ]
        most = emit("Maximum", cast(100.0, real), emit("Maximum", *sides))
        limit = 1.0 / (most * float(np.finfo(real.as_numpy_dtype).eps))
        return assert_less(condition, limit, message="Singular matrix up to precision epsilon.")

    def _assert_positive_definite(self) -> Any:
        self._dense_way("assert_positive_definite")
        if self.is_self_adjoint:
            return assert_positive(
                matrix_diag_part(cholesky(self.to_dense())),
                message="Matrix was not positive definite.",
            )
        raise NotImplementedError("assert_positive_definite is not implemented.")

    def _assert_self_adjoint(self) -> Any:
        dense = self.to_dense()
        return assert_equal(dense, adjoint(dense), message="Matrix was not equal to its adjoint.")

    def _can_use_cholesky(self) -> bool:
        return bool(self.is_self_adjoint and self.is_positive_definite)

    # ------------------------------------------------------------ products
    def _check_input_dtype(self, arg: Any) -> None:
        """Raises TypeError where an argument has another type than the matrix."""
        if arg.dtype.base_dtype != self.dtype:
            raise TypeError(
                f"Expected argument to have dtype {self.dtype}.  Found: {arg.dtype} in tensor {arg}"
            )

    def _argument(self, x: Any, name: str, own: int, other: int) -> Any:
        """`x` as a tensor whose dimension fits one of the operator's."""
        x = convert_to_tensor(x, name=name)
        self._check_input_dtype(x)
        dimension(self.shape, own).assert_is_compatible_with(dimension(x.shape, other))
        return x

    def _pair(self, x: Any, turned: bool, turned_arg: bool, name: str) -> tuple[Any, Any]:
        left, right = self.adjoint() if turned else self, x.adjoint() if turned_arg else x
        have, wanted = right.range_dimension, left.domain_dimension
        if have.value is not None and wanted.value is not None and have != wanted:
            raise ValueError(
                f"Operators are incompatible. Expected `{name}` to have dimension {wanted} but "
                f"got {have}."
            )
        return left, right

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        raise NotImplementedError("_matmul is not implemented.")

    def matmul(
        self, x: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str = "matmul"
    ) -> Any:
        """The product with a matrix [..., N, R], or another operator.

        Args:
            x: the right factor, a tensor of the operator's type or an operator.
            adjoint: multiply by the adjoint.
            adjoint_arg: multiply the adjoint of `x`.
            name: a name for the operation.

        Returns:
            A tensor [..., M, R], or an operator.

        Raises:
            TypeError: `x` has another type.
            ValueError: the dimensions do not fit.
        """
        if isinstance(x, LinearOperator):
            left, right = self._pair(x, adjoint, adjoint_arg, "x")
            with self._name_scope(name):
                return algebra.matmul(left, right)
        with self._name_scope(name):
            x = self._argument(x, "x", -2 if adjoint else -1, -1 if adjoint_arg else -2)
            return self._matmul(x, adjoint=adjoint, adjoint_arg=adjoint_arg)

    def _matvec(self, x: Any, adjoint: bool = False) -> Any:
        return squeeze(self.matmul(expand_dims(x, -1), adjoint=adjoint), [-1])

    def matvec(self, x: Any, adjoint: bool = False, name: str = "matvec") -> Any:
        """The product with a vector [..., N]."""
        with self._name_scope(name):
            x = self._argument(x, "x", -2 if adjoint else -1, -1)
            return self._matvec(x, adjoint=adjoint)

    # ------------------------------------------------------------ determinants
    def _check_square(self) -> None:
        if self.is_square is False:
            raise NotImplementedError(
                "Determinant not implemented for an operator that is expected to not be square."
            )

    def _determinant(self) -> Any:
        self._dense_way("determinant")
        if self._can_use_cholesky():
            return emit("Exp", self.log_abs_determinant())
        return matrix_determinant(self.to_dense())

    def determinant(self, name: str = "det") -> Any:
        """The determinant of each matrix.

        Raises:
            NotImplementedError: the matrices are not square.
        """
        self._check_square()
        with self._name_scope(name):
            return self._determinant()

    def _log_abs_determinant(self) -> Any:
        self._dense_way("determinant")
        if self._can_use_cholesky():
            diagonal = matrix_diag_part(cholesky(self.to_dense()))
            return 2 * reduce_sum(emit("Log", diagonal), axis=[-1])
        return log_matrix_determinant(self.to_dense())[1]

    def log_abs_determinant(self, name: str = "log_abs_det") -> Any:
        """The logarithm of the absolute determinant of each matrix.

        Raises:
            NotImplementedError: the matrices are not square.
        """
        self._check_square()
        with self._name_scope(name):
            return self._log_abs_determinant()

    # ------------------------------------------------------------ solving
    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        self._dense_way("solve")
        rhs = _adjoint(rhs) if adjoint_arg else rhs
        if self._can_use_cholesky():
            return cholesky_solve_with_broadcast(cholesky(self.to_dense()), rhs)
        return matrix_solve_with_broadcast(self.to_dense(), rhs, adjoint=adjoint)

    def _check_solvable(self) -> None:
        for hint, what in ((self.is_non_singular, "singular"), (self.is_square, "not be square")):
            if hint is False:
                be = "" if what.startswith("not") else "be "
                raise NotImplementedError(
                    f"Exact solve not implemented for an operator that is expected to {be}{what}."
                )

    def solve(
        self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str = "solve"
    ) -> Any:
        """The matrix X [..., N, R] whose product with the operator is `rhs`.

        Args:
            rhs: a tensor [..., M, R] of the operator's type, or an operator.
            adjoint: solve with the adjoint.
            adjoint_arg: take the adjoint of `rhs`.
            name: a name for the operation.

        Raises:
            NotImplementedError: the matrices are not square, or known to have no inverse.
            ValueError: the dimensions do not fit.
        """
        self._check_solvable()
        if isinstance(rhs, LinearOperator):
            left, right = self._pair(rhs, adjoint, adjoint_arg, "rhs")
            with self._name_scope(name):
                return algebra.solve(left, right)
        with self._name_scope(name):
            rhs = self._argument(rhs, "rhs", -1 if adjoint else -2, -1 if adjoint_arg else -2)
            return self._solve(rhs, adjoint=adjoint, adjoint_arg=adjoint_arg)

    def _solvevec(self, rhs: Any, adjoint: bool = False) -> Any:
        return squeeze(self.solve(expand_dims(rhs, -1), adjoint=adjoint), [-1])

    def solvevec(self, rhs: Any, adjoint: bool = False, name: str = "solve") -> Any:
        """The vector [..., N] whose product with the operator is `rhs`."""
        with self._name_scope(name):
            rhs = self._argument(rhs, "rhs", -1 if adjoint else -2, -1)
            return self._solvevec(rhs, adjoint=adjoint)

    # ------------------------------------------------------------ other operators
    def adjoint(self, name: str = "adjoint") -> Any:
        """The operator of the conjugate transposes."""
        if self.is_self_adjoint is True:
            return self
        with self._name_scope(name):
            return algebra.adjoint(self)

    H = property(adjoint, None)

    def inverse(self, name: str = "inverse") -> Any:
        """The operator of the inverses.

        Raises:
            ValueError: the matrices are not square, or have no inverse.
        """
        for hint, what in ((self.is_square, "non square"), (self.is_non_singular, "singular")):
            if hint is False:
                raise ValueError(
                    f"Cannot take the Inverse: This operator represents a {what} matrix."
                )
        with self._name_scope(name):
            return algebra.inverse(self)

    def cholesky(self, name: str = "cholesky") -> Any:
        """The operator of the Cholesky factors.

        Raises:
            ValueError: the hints do not say that it is self-adjoint and positive definite.
        """
        if not self._can_use_cholesky():
            raise ValueError(
                "Cannot take the Cholesky decomposition: Not a positive definite self adjoint "
                "matrix."
            )
        with self._name_scope(name):
            return algebra.cholesky(self)

    # ------------------------------------------------------------ entries
    def _to_dense(self) -> Any:
        columns = self.domain_dimension.value
        count = self.domain_dimension_tensor() if columns is None else columns
        return self.matmul(eye(count, batch_shape=self._batch(), dtype=self.dtype))

    def to_dense(self, name: str = "to_dense") -> Any:
        """The matrices as a tensor."""
        with self._name_scope(name):
            return self._to_dense()

    def _diag_part(self) -> Any:
        return matrix_diag_part(self.to_dense())

    def diag_part(self, name: str = "diag_part") -> Any:
        """The diagonals."""
        with self._name_scope(name):
            return self._diag_part()

    def _trace(self) -> Any:
        return reduce_sum(self.diag_part(), axis=-1)

    def trace(self, name: str = "trace") -> Any:
        """The sum of each diagonal."""
        with self._name_scope(name):
            return self._trace()

    def _add_to_tensor(self, x: Any) -> Any:
        return self.to_dense() + x

    def add_to_tensor(self, x: Any, name: str = "add_to_tensor") -> Any:
        """The sum with a tensor of the same type and shape."""
        with self._name_scope(name):
            x = convert_to_tensor(x, name="x")
            self._argument(x, "x", -1, -1)
            return self._add_to_tensor(x)


def _adjoint(matrix: Any) -> Any:
    return adjoint(matrix)
