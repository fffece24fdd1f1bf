"""Operators that Fourier transforms make diagonal: circulant ones, and Toeplitz ones in them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from opdock import dtypes
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.linear.base import LinearOperator
from opdock.linear.helpers import (
    assert_no_entries_with_modulus_zero,
    assert_zero_imag_part,
    at_least,
    broadcast_matrix_batch_dims,
    dimension,
    to_complex,
)
from opdock.ops.array import (
    broadcast_dynamic_shape,
    broadcast_static_shape,
    expand_dims,
    rank,
    reshape,
    shape,
)
from opdock.ops.cast import cast
from opdock.ops.check import assert_equal, assert_less, assert_positive
from opdock.ops.complex import conj, imag, real
from opdock.ops.elementary import abs as absolute
from opdock.ops.elementary import log
from opdock.ops.fft import fft, fft2d, fft3d, ifft, ifft2d, ifft3d
from opdock.ops.fill import ones, range, zeros_like
from opdock.ops.joining import concat
from opdock.ops.linalg import adjoint as adjoint_of
from opdock.ops.matrix import transpose
from opdock.ops.reduce import reduce_prod, reduce_sum
from opdock.ops.tiling import reverse
from opdock.shapes import TensorShape

_FFT = {1: fft, 2: fft2d, 3: fft3d}
_IFFT = {1: ifft, 2: ifft2d, 3: ifft3d}


class _Circulant(LinearOperator):
    """What circulant operators of all depths share."""

    _depth = 1

    def __init__(
        self, spectrum: Any, input_output_dtype: Any = dtypes.complex64,
        is_non_singular: bool | None = None, is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None, is_square: bool | None = True,
        name: str | None = None,
    ) -> None:  # fmt: skip
        name = name or type(self).__name__
        with name_scope(name, values=[spectrum]):
            self._spectrum = convert_to_tensor(spectrum, name="spectrum")
            if self._spectrum.shape.ndims is not None:
                if self._spectrum.shape.ndims < self._depth:
                    raise ValueError(
                        f"Argument spectrum must have at least {self._depth} dimensions.  Found: "
                        f"{self._spectrum}"
                    )
            if not self._spectrum.dtype.is_complex:
                if is_self_adjoint is False:
                    raise ValueError(
                        "A real spectrum always corresponds to a self-adjoint operator."
                    )
                is_self_adjoint = True
            if is_square is False:
                raise ValueError("A [[nested] block] circulant operator is always square.")
            super().__init__(
                input_output_dtype, [self._spectrum], is_non_singular, is_self_adjoint,
                is_positive_definite, True, name,
            )  # fmt: skip

    @property
    def block_depth(self) -> int:
        """How many dimensions the blocks have."""
        return self._depth

    @property
    def spectrum(self) -> Any:
        """The eigenvalues."""
        return self._spectrum

    @property
    def block_shape(self) -> TensorShape:
        """The static shape of the blocks."""
        return self._spectrum.shape[-self._depth :]  # type: ignore[no-any-return]

    def block_shape_tensor(self) -> Any:
        """The shape of the blocks as a vector."""
        return shape(self._spectrum)[-self._depth :]

    def convolution_kernel(self, name: str = "convolution_kernel") -> Any:
        """The first column, in the shape of the blocks."""
        with self._name_scope(name):
            return cast(_IFFT[self._depth](to_complex(self._spectrum)), self.dtype)

    def assert_hermitian_spectrum(self, name: str = "assert_hermitian_spectrum") -> Any:
        """An operation that fails unless the operator is real."""
        eps = float(np.finfo(self.dtype.real_dtype.as_numpy_dtype).eps)
        with self._name_scope(name):
            most = eps * cast(self.domain_dimension_tensor(), self.dtype.real_dtype)
            part: Any = imag(self.convolution_kernel())
            return assert_less(absolute(part), most, message="Spectrum was not Hermitian")

    def _shape(self) -> TensorShape:
        known = self._spectrum.shape
        sizes = known[-self._depth :] if known.dims is not None else TensorShape(None)
        count = math.prod(sizes.as_list()) if sizes.is_fully_defined() else None
        batch = known[: -self._depth] if known.dims is not None else TensorShape(None)
        return batch.concatenate(TensorShape([count, count]))

    def _shape_tensor(self) -> Any:
        whole = shape(self._spectrum)
        count = reduce_prod(whole[-self._depth :])
        return concat([whole[: -self._depth], [count, count]], 0)

    def _assert_non_singular(self) -> Any:
        return assert_no_entries_with_modulus_zero(
            self._spectrum, "Singular operator:  Spectrum contained zero values."
        )

    def _assert_positive_definite(self) -> Any:
        message = "Not positive definite:  Real part of spectrum was not all positive."
        return assert_positive(real(self._spectrum), message=message)

    def _assert_self_adjoint(self) -> Any:
        return assert_zero_imag_part(
            self._spectrum,
            "Not self-adjoint:  The spectrum contained non-zero imaginary part.",
        )

    def _filtered(self, x: Any, adjoint: bool, adjoint_arg: bool, divide: bool) -> Any:
        """Transforms the columns, multiplies or divides by the spectrum, transforms back."""
        x = adjoint_of(x) if adjoint_arg else x
        spectrum = to_complex(self._spectrum)
        spectrum = conj(spectrum) if adjoint else spectrum
        flat = reshape(spectrum, concat([self.batch_shape_tensor(), [-1, 1]], 0))
        columns, eigenvalues = broadcast_matrix_batch_dims([cast(x, spectrum.dtype), flat])
        # The last dimension to the front: each column is a block then.
        count = rank(columns)
        ahead = transpose(columns, concat([[count - 1], range(0, count - 1)], 0))
        blocks = reshape(ahead, concat([shape(ahead)[:-1], self.block_shape_tensor()], 0))
        values = reshape(
            eigenvalues, concat([shape(eigenvalues)[:-2], self.block_shape_tensor()], 0)
        )
        changed = _FFT[self._depth](blocks)
        changed = changed / values if divide else changed * values
        found = reshape(_IFFT[self._depth](changed), shape(ahead))
        back = transpose(found, concat([range(1, count), [0]], 0))
        out: Any = cast(back, self.dtype)
        out.set_shape(columns.shape)
        return out

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return self._filtered(x, adjoint, adjoint_arg, divide=False)

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return self._filtered(rhs, adjoint, adjoint_arg, divide=True)

    def _axes(self) -> list[int]:
        return [-1, -2, -3][: self._depth]

    def _determinant(self) -> Any:
        return cast(reduce_prod(self._spectrum, axis=self._axes()), self.dtype)

    def _log_abs_determinant(self) -> Any:
        total = reduce_sum(log(absolute(self._spectrum)), axis=self._axes())
        return cast(total, self.dtype)

    def _trace(self) -> Any:
        return cast(reduce_sum(self._spectrum, axis=self._axes()), self.dtype)

    def _diag_part(self) -> Any:
        value = self.trace() / cast(self.domain_dimension_tensor(), self.dtype)
        return expand_dims(value, -1) * ones(self.shape_tensor()[:-1], dtype=self.dtype)


class LinearOperatorCirculant(_Circulant):
    """A circulant matrix: `F^H diag(spectrum) F`, F a transform in 1D.

    Args:
        spectrum: a tensor [..., N1].
        input_output_dtype: the type of what is multiplied; complex64 by default.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square: the hints.
        name: a name for the operator.

    Raises:
        ValueError: a hint contradicts what it is, or the spectrum has too few dimensions.
    """


class LinearOperatorCirculant2D(_Circulant):
    """A circulant matrix of circulant blocks: `F^H diag(spectrum) F`, F a transform in 2D.

    Args:
        spectrum: a tensor [..., N1, N2].
        input_output_dtype: the type of what is multiplied; complex64 by default.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square: the hints.
        name: a name for the operator.

    Raises:
        ValueError: a hint contradicts what it is, or the spectrum has too few dimensions.
    """

    _depth = 2


class LinearOperatorCirculant3D(_Circulant):
    """A circulant matrix of circulant blocks of circulant blocks, diagonal after a 3D transform.

    Args:
        spectrum: a tensor [..., N1, N2, N3].
        input_output_dtype: the type of what is multiplied; complex64 by default.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square: the hints.
        name: a name for the operator.

    Raises:
        ValueError: a hint contradicts what it is, or the spectrum has too few dimensions.
    """

    _depth = 3


class LinearOperatorToeplitz(LinearOperator):
    """A matrix with one value along each diagonal, multiplied within a circulant twice as large.

    Args:
        col: the first column, [..., N].
        row: the first row, [..., N]; its first entry is not looked at.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square: the hints.
        name: a name for the operator.

    Raises:
        ValueError: a hint contradicts what it is, or the lengths differ.
    """

    def __init__(
        self, col: Any, row: Any, is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None, is_positive_definite: bool | None = None,
        is_square: bool | None = None, name: str = "LinearOperatorToeplitz",
    ) -> None:  # fmt: skip
        with name_scope(name, values=[row, col]):
            self._row = convert_to_tensor(row, name="row")
            self._col = convert_to_tensor(col, name="col")
            at_least(self._row, "row", 1)
            at_least(self._col, "col", 1)
            sizes = [dimension(t.shape, -1).value for t in (self._row, self._col)]
            if None not in sizes and sizes[0] != sizes[1]:
                raise ValueError(
                    "Expected square matrix, got row and col with mismatched dimensions."
                )
            if is_square is False:
                raise ValueError("Only square Toeplitz operators currently supported.")
            around = concat(
                [self._col, zeros_like(self._col[..., :1]), reverse(self._row[..., 1:], [-1])],
                -1,
            )
            self._circulant = LinearOperatorCirculant(
                fft(to_complex(around)), input_output_dtype=self._row.dtype
            )
            super().__init__(
                self._row.dtype, [self._row, self._col], is_non_singular, is_self_adjoint,
                is_positive_definite, True, name,
            )  # fmt: skip

    @property
    def col(self) -> Any:
        """The first column."""
        return self._col

    @property
    def row(self) -> Any:
        """The first row."""
        return self._row

    def _shape(self) -> TensorShape:
        known = broadcast_static_shape(self._row.shape, self._col.shape)
        return known.concatenate(known[-1:])

    def _shape_tensor(self) -> Any:
        found = broadcast_dynamic_shape(shape(self._row), shape(self._col))
        return concat([found, found[-1:]], 0)

    def _assert_self_adjoint(self) -> Any:
        return assert_equal(
            self._row, self._col,
            message="row and col are not the same, and so this operator is not self-adjoint.",
        )  # fmt: skip

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        x = adjoint_of(x) if adjoint_arg else x
        product = self._circulant.matmul(concat([x, zeros_like(x)], -2), adjoint=adjoint)
        return cast(product[..., : self.domain_dimension_tensor(), :], self.dtype)

    def _trace(self) -> Any:
        return cast(self.domain_dimension_tensor(), self.dtype) * self._col[..., 0]

    def _diag_part(self) -> Any:
        return self._col[..., :1] * ones([self.domain_dimension_tensor()], self.dtype)
