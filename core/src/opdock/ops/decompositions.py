"""Matrix factorisations: Cholesky, QR, SVD, eigenvalues of self-adjoint matrices, LU."""

from __future__ import annotations

from typing import Any

from opdock import dtypes, shapes
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.ops.array import expand_dims, shape
from opdock.ops.cast import cast
from opdock.ops.complex import real
from opdock.ops.composed.eye import eye
from opdock.ops.diag import matrix_diag, matrix_diag_part, matrix_set_diag
from opdock.ops.elementary import reciprocal, square
from opdock.ops.fill import ones_like, zeros_like
from opdock.ops.joining import concat
from opdock.ops.linalg import adjoint, matmul, square_matrices
from opdock.ops.matrix import matrix_band_part
from opdock.ops.registry import ShapeSig, define_op
from opdock.ops.select import one_hot
from opdock.ops.solve import matrix_triangular_solve
from opdock.ops.support import array_util
from opdock.shapes import Shape

__all__ = ["cholesky", "qr", "self_adjoint_eig", "self_adjoint_eigvals", "svd"]

_TYPES = "{double, float, half, complex64, complex128}"

cholesky_op = define_op("Cholesky", "input: T -> output: T", f"T: {_TYPES}")
cholesky_grad_op = define_op(
    "CholeskyGrad", "l: T, grad: T -> output: T", "T: {half, float, double}"
)
qr_op = define_op("Qr", "input: T -> q: T, r: T", f"full_matrices: bool = false, T: {_TYPES}")
svd_op = define_op(
    "Svd", "input: T -> s: T, u: T, v: T",
    f"compute_uv: bool = true, full_matrices: bool = false, T: {_TYPES}",
)  # fmt: skip
self_adjoint_eig_v2_op = define_op(
    "SelfAdjointEigV2", "input: T -> e: T, v: T", f"compute_v: bool = true, T: {_TYPES}"
)
self_adjoint_eig_op = define_op(
    "SelfAdjointEig", "input: T -> output: T", "T: {double, float, half}"
)
lu_op = define_op(
    "Lu", "input: T -> lu: T, p: output_idx_type",
    f"T: {_TYPES}, output_idx_type: {{int32, int64}} = DT_INT32",
)  # fmt: skip

array_util.no_gradient(cholesky_grad_op)
array_util.no_gradient(self_adjoint_eig_op)


# ---------------------------------------------------------------- shapes
@cholesky_op.shape
@cholesky_grad_op.shape
def _square_shape(sig: ShapeSig) -> Shape:
    return square_matrices(sig.shapes[0])


def _tall(sig: ShapeSig) -> tuple[Shape, int | None, int | None, int | None]:
    """The batch shape, rows, columns and the smaller of both."""
    source = shapes.with_rank_at_least(sig.shapes[0], 2)
    if source is None:
        return None, None, None, None
    rows, columns = source[-2:]
    known = [d for d in (rows, columns) if d is not None]
    small = min(known) if len(known) == 2 or 0 in known else None
    return source[:-2], rows, columns, small


@qr_op.shape
def _qr_shape(sig: ShapeSig) -> list[Shape]:
    batch, rows, columns, small = _tall(sig)
    width = rows if sig.attrs["full_matrices"] else small
    return [shapes.concat(batch, (rows, width)), shapes.concat(batch, (width, columns))]


@svd_op.shape
def _svd_shape(sig: ShapeSig) -> list[Shape]:
    batch, rows, columns, small = _tall(sig)
    values = shapes.concat(batch, (small,))
    if not sig.attrs["compute_uv"]:
        return [values, (0,), (0,)]
    full = sig.attrs["full_matrices"]
    u = (rows, rows if full else small)
    v = (columns, columns if full else small)
    return [values, shapes.concat(batch, u), shapes.concat(batch, v)]


@self_adjoint_eig_v2_op.shape
def _eig_v2_shape(sig: ShapeSig) -> list[Shape]:
    source = square_matrices(sig.shapes[0])
    values = array_util.subshape(source, 0, -1)
    return [values, source if sig.attrs["compute_v"] else (0,)]


@self_adjoint_eig_op.shape
def _eig_shape(sig: ShapeSig) -> Shape:
    source = square_matrices(sig.shapes[0])
    if source is None:
        return None
    return (*source[:-2], array_util.add(source[-2], 1), source[-1])


@lu_op.shape
def _lu_shape(sig: ShapeSig) -> list[Shape]:
    source = square_matrices(sig.shapes[0])
    return [source, array_util.subshape(source, 0, -1)]


# ---------------------------------------------------------------- gradients
@cholesky_op.gradient
def _cholesky_grad(op: Operation, grad: Any) -> Tensor:
    factor = op.outputs[0]
    size, batch = shape(factor)[-1], shape(factor)[:-2]
    inverse = matrix_triangular_solve(factor, eye(size, batch_shape=batch, dtype=factor.dtype))
    middle = matmul(factor, grad, adjoint_a=True)
    middle = matrix_set_diag(middle, 0.5 * matrix_diag_part(middle))
    middle = matrix_band_part(middle, -1, 0)
    out = matmul(matmul(inverse, middle, adjoint_a=True), inverse)
    # The input counts as self-adjoint, so both triangles carry half of the gradient.
    return (out + adjoint(out)) * 0.5


@qr_op.gradient
def _qr_grad(op: Operation, dq: Any, dr: Any) -> Tensor:
    q, r = op.outputs
    if q.dtype.is_complex:
        raise NotImplementedError("QrGrad not implemented for dtype: " + q.dtype.name)
    static = r.raw_shape
    if static is None or static[-2] is None or static[-1] is None:
        raise NotImplementedError("QrGrad not implemented with dynamic shapes.")
    if static[-2] != static[-1]:
        raise NotImplementedError(
            "QrGrad not implemented when ncols > nrows or full_matrices is true and ncols != nrows."
        )

    def over_r(x: Tensor) -> Tensor:
        """The product x r^-H."""
        return adjoint(matrix_triangular_solve(r, adjoint(x), lower=False, adjoint=False))

    def lower(x: Tensor) -> Tensor:
        return matrix_band_part(x, -1, 0)

    def antisymmetric(x: Tensor) -> Tensor:
        return x - adjoint(x)

    qdq = antisymmetric(matmul(q, dq, adjoint_a=True))
    rdr = antisymmetric(matmul(r, dr, adjoint_b=True))
    triangle = lower(qdq + rdr)
    diagonal = matrix_diag_part(triangle)
    triangle = matrix_set_diag(triangle, zeros_like(diagonal))
    inner = matmul(q, dr + over_r(triangle))
    return inner + over_r(dq - matmul(q, matmul(q, dq, adjoint_a=True)))


@self_adjoint_eig_v2_op.gradient
def _eig_v2_grad(op: Operation, grad_e: Any, grad_v: Any) -> Tensor:
    values, vectors = op.outputs
    if op.attrs["compute_v"]:
        difference = expand_dims(values, -2) - expand_dims(values, -1)
        inverse = matrix_set_diag(reciprocal(difference), zeros_like(values))
        inner = matrix_diag(grad_e) + inverse * matmul(vectors, grad_v, adjoint_a=True)
        out = matmul(vectors, matmul(inner, vectors, adjoint_b=True))
    else:
        # The forward op kept no vectors; the derivative of the values needs them.
        _, vectors = self_adjoint_eig(op.inputs[0])
        out = matmul(vectors, matmul(matrix_diag(grad_e), vectors, adjoint_b=True))
    # Only the lower triangle of the input was read.

    out = matrix_band_part(out + adjoint(out), -1, 0)
    return matrix_set_diag(out, 0.5 * matrix_diag_part(out))


@svd_op.gradient
def _svd_grad(op: Operation, grad_s: Any, grad_u: Any, grad_v: Any) -> Tensor:
    a = op.inputs[0]
    if a.dtype.is_complex:
        # Singular values are real, whatever their type.
        grad_s = real(grad_s)
    middle = matrix_diag(cast(grad_s, a.dtype))
    if not op.attrs["compute_uv"]:
        # The forward op kept no vectors; the derivative of the values needs them.
        _, u, v = svd(a, compute_uv=True)
        return matmul(u, matmul(middle, v, adjoint_b=True))
    static = a.raw_shape
    if static is None or static[-2] is None or static[-1] is None:
        raise NotImplementedError(
            "SVD gradient has not been implemented for input with unknown inner matrix shape."
        )
    full = op.attrs["full_matrices"]
    if full and abs(static[-2] - static[-1]) > 1:
        raise NotImplementedError(
            "svd gradient is not implemented for abs(m - n) > 1 when full_matrices is True"
        )
    s, u, v = cast(op.outputs[0], a.dtype), op.outputs[1], op.outputs[2]
    if static[-2] > static[-1]:
        # The adjoint of a tall matrix is wide, and has u and v swapped.
        return adjoint(_wide_svd_grad(s, v, u, middle, grad_v, grad_u, static[-1], static[-2]))
    return _wide_svd_grad(s, u, v, middle, grad_u, grad_v, static[-2], static[-1])


def _wide_svd_grad(
    s: Tensor, u: Tensor, v: Tensor, grad_s: Tensor, grad_u: Any, grad_v: Any, m: int, n: int
) -> Tensor:
    """The gradient of an [m, n] matrix with m <= n. Infinite where singular values coincide."""
    diagonal, squares = matrix_diag(s), square(s)
    gaps = reciprocal(expand_dims(squares, -2) - expand_dims(squares, -1))
    gaps = matrix_set_diag(gaps, zeros_like(s))
    v1, grad_v1 = v[..., :, :m], grad_v[..., :, :m]
    turn_u = gaps * matmul(u, grad_u, adjoint_a=True)
    turn_v = gaps * matmul(v1, grad_v1, adjoint_a=True)
    inner = grad_s + matmul(turn_u + adjoint(turn_u), diagonal)
    inner = inner + matmul(diagonal, turn_v + adjoint(turn_v))
    out = matmul(u, matmul(inner, v1, adjoint_b=True))
    if m == n:
        return out
    back = adjoint(grad_v1)
    rest = back - matmul(matmul(back, v1), v1, adjoint_b=True)
    if v.raw_shape is not None and (v.raw_shape[-1] or 0) > m:
        v2, grad_v2 = v[..., :, m:n], grad_v[..., :, m:n]
        rest = rest - matmul(matmul(v1, grad_v2, adjoint_a=True), v2, adjoint_b=True)
    return out + matmul(matmul(u, matrix_diag(reciprocal(s))), rest)


@lu_op.gradient
def _lu_grad(op: Operation, grad: Any, _: Any) -> Tensor:
    def upper(x: Any) -> Tensor:
        return matrix_band_part(x, 0, -1)

    packed, order = op.outputs
    # Below the diagonal the output is L (whose diagonal is one), on and above it U.
    factor = matrix_set_diag(matrix_band_part(packed, -1, 0), ones_like(matrix_diag_part(packed)))
    left = matmul(factor, grad - upper(grad), adjoint_a=True)
    right = matmul(upper(grad), upper(packed), adjoint_b=True)
    middle = left - upper(left) + upper(right)
    half = matrix_triangular_solve(factor, middle, lower=True, adjoint=True)
    out = adjoint(matrix_triangular_solve(packed, adjoint(half), lower=False))
    exchange = one_hot(order, shape(packed)[-1], dtype=packed.dtype)
    return matmul(exchange, out, transpose_a=True)


# ---------------------------------------------------------------- decompositions
@self_adjoint_eig_op.decomposition
def _self_adjoint_eig_parts(sig: ShapeSig, x: Tensor) -> Tensor:
    values, vectors = self_adjoint_eig_v2_op(x)
    return concat([expand_dims(values, -2), vectors], -2)


# ---------------------------------------------------------------- public functions
@extensible
def cholesky(input: Any, name: str | None = None) -> Tensor:
    """The Cholesky factor of each positive definite matrix: the lower L with L L^H = input.

    Args:
        input: a float32, float64, complex64 or complex128 tensor of shape [..., M, M]. Only the
            lower triangles are read.
        name: a name for the operation.

    Returns:
        A tensor of the type and shape of `input`.

    Raises:
        ValueError: the matrices are not square.
        InvalidArgumentError: a matrix is not positive definite (when it runs).
    """
    return cholesky_op(input, name=name)  # type: ignore[no-any-return]


@extensible
def qr(input: Any, full_matrices: bool = False, name: str | None = None) -> Any:
    """The QR factors of each matrix: orthonormal columns q and an upper triangular r.

    Args:
        input: a float32, float64, complex64 or complex128 tensor of shape [..., M, N].
        full_matrices: give a square q, else one with min(M, N) columns.
        name: a name for the operation.

    Returns:
        A namedtuple (q, r).
    """
    return qr_op(input, full_matrices=full_matrices, name=name)


@extensible
def svd(
    tensor: Any, full_matrices: bool = False, compute_uv: bool = True, name: str | None = None
) -> Any:
    """The singular value decomposition of each matrix: tensor = u diag(s) v^H.

    Args:
        tensor: a float32, float64, complex64 or complex128 tensor of shape [..., M, N].
        full_matrices: give square u and v.
        compute_uv: whether to compute u and v at all.
        name: a name for the operation.

    Returns:
        (s, u, v), or s alone; s is real, sorted from large to small. Unlike in NumPy, v is not
        transposed.
    """
    s, u, v = svd_op(tensor, compute_uv=compute_uv, full_matrices=full_matrices, name=name)
    return (real(s), u, v) if compute_uv else real(s)


@extensible
def self_adjoint_eig(tensor: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Eigenvalues and eigenvectors of each self-adjoint matrix.

    Args:
        tensor: a float32, float64, complex64 or complex128 tensor of shape [..., N, N]. Only the
            lower triangles are read.
        name: a name for the operation.

    Returns:
        The eigenvalues, of shape [..., N] and sorted from small to large, and the eigenvectors, as
        the columns of a tensor of shape [..., N, N].
    """
    values, vectors = self_adjoint_eig_v2_op(tensor, compute_v=True, name=name)
    return values, vectors


@extensible
def self_adjoint_eigvals(tensor: Any, name: str | None = None) -> Tensor:
    """The eigenvalues of each self-adjoint matrix, from small to large.

    Args:
        tensor: a float32, float64, complex64 or complex128 tensor of shape [..., N, N].
        name: a name for the operation.

    Returns:
        A tensor of shape [..., N].
    """
    values, _ = self_adjoint_eig_v2_op(tensor, compute_v=False, name=name)
    return values  # type: ignore[no-any-return]


@extensible
def lu(input: Any, output_idx_type: Any = dtypes.int32, name: str | None = None) -> Any:
    """The LU factors of each square matrix, with row exchanges (`tf.linalg.lu`).

    Args:
        input: a float32, float64, complex64 or complex128 tensor of shape [..., M, M].
        output_idx_type: `tf.int32` or `tf.int64`, the type of the permutation.
        name: a name for the operation.

    Returns:
        A namedtuple (lu, p): U in the upper triangle and L, whose diagonal is one, below it; and
        the order of rows with L U = input[p].

    Raises:
        InvalidArgumentError: a matrix is singular (when it runs).
    """
    return lu_op(input, output_idx_type=output_idx_type, name=name)
