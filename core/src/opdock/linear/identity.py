"""Operators that are given by their size: identities, their multiples, and zeros."""

from __future__ import annotations

from typing import Any

import numpy as np

from opdock import dtypes, errors
from opdock.graph.nodes.constant_value import constant_value
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.linear.base import LinearOperator
from opdock.linear.helpers import parameter, refuse_variable
from opdock.ops.array import expand_dims, shape
from opdock.ops.cast import cast
from opdock.ops.check import assert_equal, assert_non_negative, assert_positive
from opdock.ops.complex import conj, imag, real
from opdock.ops.composed.check_static import assert_rank
from opdock.ops.control import no_op, with_dependencies
from opdock.ops.diag import matrix_diag_part, matrix_set_diag
from opdock.ops.elementary import abs as absolute
from opdock.ops.elementary import log
from opdock.ops.fill import ones, zeros, zeros_like
from opdock.ops.joining import concat, stack
from opdock.ops.linalg import adjoint as adjoint_of
from opdock.ops.reduce import reduce_min
from opdock.shapes import TensorShape


def _size(value: Any, name: str, rank: int, checked: bool) -> tuple[Any, Any]:
    """A size as a tensor and, if known, an array.

    Raises:
        TypeError: it is no integer.
        ValueError: it has another rank or is negative.
    """
    refuse_variable(value, name)
    empty = isinstance(value, (list, tuple)) and not value
    if isinstance(value, TensorShape):
        value = value.as_list()
    tensor = convert_to_tensor(value, dtype=dtypes.int32 if empty else None, name=name)
    if checked:
        tests = [
            assert_rank(tensor, rank, message=f"Argument {name} must be a {rank}-D Tensor."),
            assert_non_negative(tensor, message=f"Argument {name} must be non-negative."),
        ]
        tensor = with_dependencies(tests, tensor)
    if not tensor.dtype.is_integer:
        raise TypeError(f"Argument {name} must be integer type.  Found: {tensor}")
    known = constant_value(tensor)
    if known is not None:
        if known.ndim != rank:
            raise ValueError(f"Argument {name} must be a {rank}-D Tensor.  Found: {known}")
        if np.any(known < 0):
            raise ValueError(f"Argument {name} must be non-negative.  Found: {known}")
    return tensor, known


class _Sized(LinearOperator):
    """An operator with a number of rows, of columns and perhaps a batch shape."""

    def _set_sizes(
        self, rows: Any, columns: Any = None, batch_shape: Any = None, checked: bool = False
    ) -> None:
        self._checked = checked
        self._num_rows, self._known_rows = _size(rows, "num_rows", 0, checked)
        self._num_columns, self._known_columns = (
            (self._num_rows, self._known_rows)
            if columns is None else _size(columns, "num_columns", 0, checked)
        )  # fmt: skip
        self._batch_arg: Any = None
        self._known_batch: Any = None
        if batch_shape is not None:
            self._batch_arg, self._known_batch = _size(batch_shape, "batch_shape", 1, checked)

    def _shape(self) -> TensorShape:
        ends = [None if n is None else int(n) for n in (self._known_rows, self._known_columns)]
        matrix = TensorShape(ends)
        if self._batch_arg is None:
            return matrix
        known = self._known_batch
        if known is None:
            return TensorShape(None)
        return TensorShape([int(n) for n in known]).concatenate(matrix)

    def _shape_tensor(self) -> Any:
        matrix = stack([self._num_rows, self._num_columns], axis=0)
        return matrix if self._batch_arg is None else concat([self._batch_arg, matrix], 0)

    def _fits(self, x: Any) -> Any:
        if not self._checked:
            return x
        same = assert_equal(
            shape(x)[-2], self.domain_dimension_tensor(),
            message="Dimensions are not compatible.  shape[-2] of argument to be the same as this "
            "operator",
        )  # fmt: skip
        return with_dependencies([same], x)

    def _in_batch(self, x: Any) -> Any:
        if self._batch_arg is None:
            return x
        return x + zeros(concat([self._batch_arg, [1, 1]], 0), dtype=self.dtype)

    def _least(self) -> Any:
        known = [self._known_rows, self._known_columns]
        if None not in known:
            return min(int(n) for n in known)
        return reduce_min(self.shape_tensor()[-2:])

    def _diagonal_of(self, fill: Any) -> Any:
        return fill(concat([self.batch_shape_tensor(), [self._least()]], 0), dtype=self.dtype)

    def add_to_tensor(self, mat: Any, name: str = "add_to_tensor") -> Any:
        """The sum with a tensor of the same type and shape."""
        return super().add_to_tensor(mat, name)


class LinearOperatorIdentity(_Sized):
    """The identity.

    Args:
        num_rows: the number of rows, an integer scalar.
        batch_shape: the batch shape, an integer vector; none by default.
        dtype: the type of the entries; float32 by default.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square: True.
        assert_proper_shapes: check sizes when the graph runs.
        name: a name for the operator.

    Raises:
        ValueError: a hint is not True, or a size is negative or has another rank.
        TypeError: a size is no integer.
    """

    def __init__(
        self, num_rows: Any, batch_shape: Any = None, dtype: Any = None,
        is_non_singular: bool = True, is_self_adjoint: bool = True,
        is_positive_definite: bool = True, is_square: bool = True,
        assert_proper_shapes: bool = False, name: str = "LinearOperatorIdentity",
    ) -> None:  # fmt: skip
        with name_scope(name):
            for hint, what in (
                (is_self_adjoint, "self adjoint"), (is_non_singular, "non-singular"),
                (is_positive_definite, "positive-definite"), (is_square, "square"),
            ):  # fmt: skip
                if not hint:
                    raise ValueError(f"An identity operator is always {what}.")
            super().__init__(dtype or dtypes.float32, None, True, True, True, True, name)
            self._set_sizes(num_rows, None, batch_shape, assert_proper_shapes)

    def _assert_non_singular(self) -> Any:
        return no_op("assert_non_singular")

    def _assert_positive_definite(self) -> Any:
        return no_op("assert_positive_definite")

    def _assert_self_adjoint(self) -> Any:
        return no_op("assert_self_adjoint")

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return self._in_batch(self._fits(adjoint_of(x) if adjoint_arg else x))

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return self._matmul(rhs, adjoint_arg=adjoint_arg)

    def _determinant(self) -> Any:
        return ones(self.batch_shape_tensor(), dtype=self.dtype)

    def _log_abs_determinant(self) -> Any:
        return zeros(self.batch_shape_tensor(), dtype=self.dtype)

    def _trace(self) -> Any:
        return cast(self._least(), self.dtype) * ones(self.batch_shape_tensor(), dtype=self.dtype)

    def _diag_part(self) -> Any:
        return self._diagonal_of(ones)

    def _add_to_tensor(self, x: Any) -> Any:
        return matrix_set_diag(x, 1 + matrix_diag_part(x))


class LinearOperatorScaledIdentity(_Sized):
    """A multiple of the identity.

    Args:
        num_rows: the number of rows, an integer scalar.
        multiplier: the factor of each matrix in the batch.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square: the hints.
        assert_proper_shapes: check sizes when the graph runs.
        name: a name for the operator.

    Raises:
        ValueError: a hint contradicts what it is, or a size is negative or has another rank.
        TypeError: a size is no integer.
    """

    def __init__(
        self, num_rows: Any, multiplier: Any, is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None, is_positive_definite: bool | None = None,
        is_square: bool = True, assert_proper_shapes: bool = False,
        name: str = "LinearOperatorScaledIdentity",
    ) -> None:  # fmt: skip
        with name_scope(name, values=[multiplier, num_rows]):
            self._multiplier = parameter(multiplier, "multiplier")
            if not self._multiplier.dtype.is_complex:
                if is_self_adjoint is False:
                    raise ValueError("A real diagonal operator is always self adjoint.")
                is_self_adjoint = True
            if not is_square:
                raise ValueError("A ScaledIdentity operator is always square.")
            super().__init__(
                self._multiplier.dtype, None, is_non_singular, is_self_adjoint,
                is_positive_definite, is_square, name,
            )  # fmt: skip
            self._set_sizes(num_rows, None, None, assert_proper_shapes)

    @property
    def multiplier(self) -> Any:
        """The factor of each matrix."""
        return self._multiplier

    def _shape(self) -> TensorShape:
        return self._multiplier.shape.concatenate(super()._shape())  # type: ignore[no-any-return]

    def _shape_tensor(self) -> Any:
        return concat([shape(self._multiplier), super()._shape_tensor()], 0)

    def _assert_non_singular(self) -> Any:
        return assert_positive(absolute(self._multiplier), message="LinearOperator was singular")

    def _assert_positive_definite(self) -> Any:
        message = "LinearOperator was not positive definite."
        return assert_positive(real(self._multiplier), message=message)

    def _assert_self_adjoint(self) -> Any:
        part: Any = imag(self._multiplier)
        return assert_equal(zeros_like(part), part, message="LinearOperator was not self-adjoint")

    def _factor(self, conjugate: bool) -> Any:
        factor = convert_to_tensor(self._multiplier)
        factor = expand_dims(expand_dims(factor, -1), -1)
        return conj(factor) if conjugate else factor

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return self._fits(adjoint_of(x) if adjoint_arg else x) * self._factor(adjoint)

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return self._fits(adjoint_of(rhs) if adjoint_arg else rhs) / self._factor(adjoint)

    def _determinant(self) -> Any:
        return self._multiplier ** cast(self._num_rows, self.dtype)

    def _log_abs_determinant(self) -> Any:
        real_type = self.dtype.real_dtype
        return cast(self._num_rows, real_type) * log(absolute(self._multiplier))

    def _trace(self) -> Any:
        return self._multiplier * cast(self._least(), self.dtype)

    def _diag_part(self) -> Any:
        return self._diagonal_of(ones) * expand_dims(self._multiplier, -1)

    def _add_to_tensor(self, x: Any) -> Any:
        return matrix_set_diag(x, expand_dims(self._multiplier, -1) + matrix_diag_part(x))


class LinearOperatorZeros(_Sized):
    """A matrix of zeros.

    Args:
        num_rows: the number of rows, an integer scalar.
        num_columns: the number of columns; as many as rows by default.
        batch_shape: the batch shape, an integer vector; none by default.
        dtype: the type of the entries; float32 by default.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square: the hints.
        assert_proper_shapes: check sizes when the graph runs.
        name: a name for the operator.

    Raises:
        ValueError: a hint contradicts what it is, or a size is negative or has another rank.
        TypeError: a size is no integer.
    """

    def __init__(
        self, num_rows: Any, num_columns: Any = None, batch_shape: Any = None, dtype: Any = None,
        is_non_singular: bool = False, is_self_adjoint: bool = True,
        is_positive_definite: bool = False, is_square: bool = True,
        assert_proper_shapes: bool = False, name: str = "LinearOperatorZeros",
    ) -> None:  # fmt: skip
        with name_scope(name):
            if not is_self_adjoint and is_square:
                raise ValueError("A zero operator is always self adjoint.")
            if is_non_singular:
                raise ValueError("A zero operator is always singular.")
            if is_positive_definite:
                raise ValueError("A zero operator is always not positive-definite.")
            super().__init__(
                dtype or dtypes.float32, None, is_non_singular, is_self_adjoint,
                is_positive_definite, is_square, name,
            )  # fmt: skip
            self._set_sizes(num_rows, num_columns, batch_shape, assert_proper_shapes)
            rows, columns = self._known_rows, self._known_columns
            if is_square and rows is not None and columns is not None and rows != columns:
                raise ValueError(
                    f"LinearOperatorZeros initialized as is_square=True, but got num_rows({rows}) "
                    f"!= num_columns({columns})"
                )

    def _assert_non_singular(self) -> Any:
        raise errors.InvalidArgumentError(None, None, "Zero operators are always non-invertible.")

    def _assert_positive_definite(self) -> Any:
        raise errors.InvalidArgumentError(
            None, None, "Zero operators are always non-positive definite."
        )

    def _assert_self_adjoint(self) -> Any:
        return no_op("assert_self_adjoint")

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        x = self._fits(adjoint_of(x) if adjoint_arg else x)
        rows = self._num_columns if adjoint else self._num_rows
        given = shape(x)
        return self._in_batch(zeros(concat([given[:-2], [rows], given[-1:]], 0), dtype=x.dtype))

    def _determinant(self) -> Any:
        return zeros(self.batch_shape_tensor(), dtype=self.dtype)

    def _trace(self) -> Any:
        return zeros(self.batch_shape_tensor(), dtype=self.dtype)

    def _diag_part(self) -> Any:
        return self._diagonal_of(zeros)

    def _add_to_tensor(self, x: Any) -> Any:
        return self._in_batch(x)
