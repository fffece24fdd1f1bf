"""Inverses, determinants and linear systems."""

from __future__ import annotations

from typing import Any

from opdock import dtypes, shapes
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.array import expand_dims, shape
from opdock.ops.cast import cast
from opdock.ops.complex import complex as complex_
from opdock.ops.complex import conj, imag, real
from opdock.ops.composed.eye import eye
from opdock.ops.linalg import adjoint, matmul, square_matrices
from opdock.ops.matrix import matrix_band_part
from opdock.ops.reduce import reduce_sum
from opdock.ops.registry import ShapeSig, define_op, get
from opdock.ops.support import array_util
from opdock.shapes import Shape

__all__ = [
    "cholesky_solve", "matrix_determinant", "matrix_inverse", "matrix_solve", "matrix_solve_ls",
    "matrix_triangular_solve",
]  # fmt: skip

_TYPES = "{double, float, half, complex64, complex128}"
_DET_TYPES = "{half, float, double, complex64, complex128}"
# TF's guess at the size of a cache; above it, many small systems are solved one by one.
_CACHE_BYTES = 256000

matrix_determinant_op = define_op("MatrixDeterminant", "input: T -> output: T", f"T: {_DET_TYPES}")
log_matrix_determinant_op = define_op(
    "LogMatrixDeterminant", "input: T -> sign: T, log_abs_determinant: T",
    f"T: {_DET_TYPES}",
)  # fmt: skip
matrix_inverse_op = define_op(
    "MatrixInverse", "input: T -> output: T", f"adjoint: bool = false, T: {_TYPES}"
)
matrix_solve_op = define_op(
    "MatrixSolve", "matrix: T, rhs: T -> output: T", f"adjoint: bool = false, T: {_TYPES}"
)
matrix_triangular_solve_op = define_op(
    "MatrixTriangularSolve", "matrix: T, rhs: T -> output: T",
    f"lower: bool = true, adjoint: bool = false, T: {_TYPES}",
)  # fmt: skip
matrix_solve_ls_op = define_op(
    "MatrixSolveLs", "matrix: T, rhs: T, l2_regularizer: double -> output: T",
    f"T: {_TYPES}, fast: bool = true",
)  # fmt: skip


# ---------------------------------------------------------------- shapes
@matrix_determinant_op.shape
@log_matrix_determinant_op.shape
def _determinant_shape(sig: ShapeSig) -> list[Shape]:
    return [array_util.subshape(square_matrices(sig.shapes[0]), 0, -2)] * sig.n_outputs


@matrix_inverse_op.shape
def _inverse_shape(sig: ShapeSig) -> Shape:
    return square_matrices(sig.shapes[0])


def _solve_shape(sig: ShapeSig, is_square: bool) -> Shape:
    matrix = shapes.with_rank_at_least(sig.shapes[0], 2)
    rhs = shapes.with_rank_at_least(sig.shapes[1], 2)
    if is_square:
        matrix = square_matrices(matrix)
    batch = shapes.merge(array_util.subshape(matrix, 0, -2), array_util.subshape(rhs, 0, -2))
    rows, unknowns = (None, None) if matrix is None else matrix[-2:]
    height, columns = (None, None) if rhs is None else rhs[-2:]
    rows = shapes.merge_dim(rows, height)
    return shapes.concat(batch, (rows if is_square else unknowns, columns))


@matrix_solve_op.shape
@matrix_triangular_solve_op.shape
def _square_solve_shape(sig: ShapeSig) -> Shape:
    return _solve_shape(sig, is_square=True)


@matrix_solve_ls_op.shape
def _least_squares_shape(sig: ShapeSig) -> Shape:
    shapes.with_rank(sig.shapes[2], 0)
    return _solve_shape(sig, is_square=False)


# ---------------------------------------------------------------- gradients
def _per_matrix(values: Any) -> Tensor:
    """One number per matrix, shaped to multiply the matrices."""
    return expand_dims(expand_dims(values, -1), -1)


@matrix_determinant_op.gradient
def _determinant_grad(op: Operation, grad: Any) -> Tensor:
    inverse = matrix_inverse(op.inputs[0], adjoint=True)
    return _per_matrix(grad * conj(op.outputs[0])) * inverse


@log_matrix_determinant_op.gradient
def _log_determinant_grad(op: Operation, grad_sign: Any, grad: Any) -> Tensor:
    if grad.dtype.is_complex:
        # The logarithm moves with the real part of trace(A^-1 dA), the phase with the imaginary.
        grad = complex_(real(grad), imag(grad_sign * conj(op.outputs[0])))
    return _per_matrix(grad) * matrix_inverse(op.inputs[0], adjoint=True)


@matrix_inverse_op.gradient
def _inverse_grad(op: Operation, grad: Any) -> Tensor:
    inverse, adjoint = op.outputs[0], op.attrs["adjoint"]
    right = matmul(grad, inverse, adjoint_a=adjoint, adjoint_b=not adjoint)
    return -matmul(inverse, right, adjoint_a=not adjoint)


def _matrix_grad(op: Operation, grad_rhs: Tensor) -> Tensor:
    solution = op.outputs[0]
    if op.attrs["adjoint"]:
        return -matmul(solution, grad_rhs, adjoint_b=True)
    return -matmul(grad_rhs, solution, adjoint_b=True)


@matrix_solve_op.gradient
def _solve_grad(op: Operation, grad: Any) -> list[Any]:
    grad_rhs = matrix_solve(op.inputs[0], grad, adjoint=not op.attrs["adjoint"])
    return [_matrix_grad(op, grad_rhs), grad_rhs]


@matrix_triangular_solve_op.gradient
def _triangular_solve_grad(op: Operation, grad: Any) -> list[Any]:
    lower = op.attrs["lower"]
    grad_rhs = matrix_triangular_solve(
        op.inputs[0], grad, lower=lower, adjoint=not op.attrs["adjoint"]
    )
    grad_matrix = _matrix_grad(op, grad_rhs)
    band = (-1, 0) if lower else (0, -1)
    return [matrix_band_part(grad_matrix, *band), grad_rhs]


@matrix_solve_ls_op.gradient
def _least_squares_grad(op: Operation, grad: Any) -> list[Any]:
    if not op.attrs["fast"]:
        raise ValueError("Gradient not defined for fast=False")
    static = op.inputs[0].raw_shape
    if static is not None and static[-2] is not None and static[-1] is not None:
        grads = (_tall_grad if static[-2] >= static[-1] else _wide_grad)(op, grad)
    else:
        from opdock.ops.control import cond

        dims = shape(op.inputs[0])
        is_tall = dims[-2] >= dims[-1]
        grads = cond(is_tall, lambda: _tall_grad(op, grad), lambda: _wide_grad(op, grad))
    return [grads[0], grads[1], cast(grads[2], dtypes.float64)]


def _tall_grad(op: Operation, grad: Any) -> tuple[Tensor, Tensor, Tensor]:
    a, b, x = op.inputs[0], op.inputs[1], op.outputs[0]
    factor = _regularized_cholesky(a, cast(op.inputs[2], a.dtype), tall=True)
    z = cholesky_solve(factor, grad)
    xz = matmul(x, z, adjoint_b=True)
    symmetric = xz + adjoint(xz)
    grad_a = matmul(b, z, adjoint_b=True) - matmul(a, symmetric)
    return grad_a, matmul(a, z), -reduce_sum(real(x * conj(z)))


def _wide_grad(op: Operation, grad: Any) -> tuple[Tensor, Tensor, Tensor]:
    a, b = op.inputs[0], op.inputs[1]
    factor = _regularized_cholesky(a, cast(op.inputs[2], a.dtype), tall=False)
    grad_b = cholesky_solve(factor, matmul(a, grad))
    multipliers = cholesky_solve(factor, b)
    rest = grad - matmul(a, grad_b, adjoint_a=True)
    grad_a = matmul(multipliers, rest, adjoint_b=True) - matmul(
        grad_b, matmul(multipliers, a, adjoint_a=True)
    )
    return grad_a, grad_b, -reduce_sum(real(multipliers * conj(grad_b)))


def _regularized_cholesky(matrix: Any, l2_regularizer: Any, tall: bool) -> Tensor:
    """The Cholesky factor of the Gram matrix of the columns (tall) or rows, plus l2 I."""
    gram = matmul(matrix, matrix, adjoint_a=tall, adjoint_b=not tall)
    if isinstance(l2_regularizer, Tensor) or l2_regularizer != 0:
        dims = shape(gram)
        identity = eye(dims[-1], batch_shape=dims[:-2], dtype=matrix.dtype)
        gram = gram + l2_regularizer * identity
    return get("Cholesky")(gram)  # type: ignore[no-any-return]


# ---------------------------------------------------------------- public functions
@extensible
def matrix_determinant(input: Any, name: str | None = None) -> Tensor:
    """The determinant of each square matrix.

    Args:
        input: a float32, float64, complex64 or complex128 tensor of shape [..., M, M].
        name: a name for the operation.

    Returns:
        A tensor of the type of `input` and of shape [...].
    """
    return matrix_determinant_op(input, name=name)  # type: ignore[no-any-return]


def log_matrix_determinant(input: Any, name: str | None = None) -> Any:
    """The sign (or phase) and the logarithm of the magnitude of each determinant.

    Args:
        input: a float32, float64, complex64 or complex128 tensor of shape [..., M, M].
        name: a name for the operation.

    Returns:
        A namedtuple (sign, log_abs_determinant), both of shape [...].
    """
    return log_matrix_determinant_op(input, name=name)


@extensible
def matrix_inverse(input: Any, adjoint: bool = False, name: str | None = None) -> Tensor:
    """The inverse of each square matrix.

    Args:
        input: a float32, float64, complex64 or complex128 tensor of shape [..., M, M].
        adjoint: invert the conjugate transpose.
        name: a name for the operation.

    Returns:
        A tensor of the type and shape of `input`.

    Raises:
        InvalidArgumentError: a matrix is singular (when it runs).
    """
    return matrix_inverse_op(input, adjoint=adjoint, name=name)  # type: ignore[no-any-return]


@extensible
def matrix_solve(matrix: Any, rhs: Any, adjoint: bool = False, name: str | None = None) -> Tensor:
    """Solves systems of linear equations: the x with matrix x = rhs.

    Args:
        matrix: a float32, float64, complex64 or complex128 tensor of shape [..., M, M].
        rhs: a tensor of the type of `matrix` and of shape [..., M, K].
        adjoint: solve with the conjugate transpose of `matrix`.
        name: a name for the operation.

    Returns:
        A tensor of the shape of `rhs`.

    Raises:
        InvalidArgumentError: a matrix is singular (when it runs).
    """
    return matrix_solve_op(matrix, rhs, adjoint=adjoint, name=name)  # type: ignore[no-any-return]


@extensible
def matrix_triangular_solve(
    matrix: Any, rhs: Any, lower: bool = True, adjoint: bool = False, name: str | None = None
) -> Tensor:
    """Solves systems with triangular matrices by substitution.

    Args:
        matrix: a float32, float64, complex64 or complex128 tensor of shape [..., M, M].
        rhs: a tensor of the type of `matrix` and of shape [..., M, K].
        lower: read the lower triangles of `matrix`, else the upper ones.
        adjoint: solve with the conjugate transpose of the triangle.
        name: a name for the operation.

    Returns:
        A tensor of the shape of `rhs`.

    Raises:
        InvalidArgumentError: a diagonal holds a zero (when it runs).
    """
    return matrix_triangular_solve_op(matrix, rhs, lower=lower, adjoint=adjoint, name=name)  # type: ignore[no-any-return]


@extensible
def cholesky_solve(chol: Any, rhs: Any, name: str | None = None) -> Tensor:
    """Solves A x = rhs given the Cholesky factor of A.

    Args:
        chol: the factor, a tensor of shape [..., M, M]; see `tf.cholesky`.
        rhs: a tensor of the type of `chol` and of shape [..., M, K].
        name: a name for the operation.

    Returns:
        A tensor of the shape of `rhs`.
    """
    with name_scope(name, "cholesky_solve", [chol, rhs]):
        y = matrix_triangular_solve(chol, rhs, adjoint=False, lower=True)
        return matrix_triangular_solve(chol, y, adjoint=True, lower=True)


@extensible
def matrix_solve_ls(
    matrix: Any, rhs: Any, l2_regularizer: Any = 0.0, fast: bool = True, name: str | None = None
) -> Tensor:
    """Solves least-squares problems: the x that minimises |matrix x - rhs|^2 + l2 |x|^2.

    A wide matrix without regulariser gives the solution of least norm.

    Args:
        matrix: a float32, float64, complex64 or complex128 tensor of shape [..., M, N].
        rhs: a tensor of the type of `matrix` and of shape [..., M, K].
        l2_regularizer: the strength of the regulariser, a scalar.
        fast: solve the normal equations; else use an orthogonal decomposition, which is slower,
            copes with rank-deficient matrices, ignores the regulariser and has no gradient.
        name: a name for the operation.

    Returns:
        A tensor of shape [..., N, K].
    """
    matrix = convert_to_tensor(matrix, name="matrix")
    static = matrix.raw_shape
    known = static is not None and static[-2] is not None and static[-1] is not None
    if not fast or not known or _many_small(matrix):
        return matrix_solve_ls_op(matrix, rhs, l2_regularizer, fast=fast, name=name)  # type: ignore[no-any-return]
    with name_scope(name, "matrix_solve_ls", [matrix, rhs, l2_regularizer]):
        tall = static[-2] >= static[-1]
        factor = _regularized_cholesky(matrix, l2_regularizer, tall)
        if tall:
            return cholesky_solve(factor, matmul(matrix, rhs, adjoint_a=True))
        return matmul(matrix, cholesky_solve(factor, rhs), adjoint_a=True)


def _many_small(matrix: Tensor) -> bool:
    static = matrix.raw_shape
    count = shapes.num_elements(static)
    batch = shapes.num_elements(array_util.subshape(static, 0, -2))
    if static is None or count is None or batch is None:
        return False
    return count * matrix.dtype.size > _CACHE_BYTES and batch > min(d or 0 for d in static[-2:])
