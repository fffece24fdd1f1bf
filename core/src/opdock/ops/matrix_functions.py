"""Functions of matrices: exponential, logarithm, square root, determinant logarithms, rank.

These and the functions around them are public as `tf.linalg.*`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opdock import dtypes
from opdock.docstrings import explained
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.arithmetic import maximum
from opdock.ops.arithmetic import pow as pow_
from opdock.ops.array import broadcast_to, expand_dims, reshape, shape
from opdock.ops.cast import cast
from opdock.ops.complex import conj, real
from opdock.ops.composed.eye import eye
from opdock.ops.decompositions import cholesky, svd
from opdock.ops.diag import matrix_diag_part
from opdock.ops.elementary import abs as abs_
from opdock.ops.elementary import exp, floor, is_finite, log
from opdock.ops.fill import ones_like, zeros_like
from opdock.ops.joining import concat
from opdock.ops.linalg import adjoint, matmul, square_matrices
from opdock.ops.reduce import reduce_max, reduce_sum
from opdock.ops.registry import ShapeSig, define_op
from opdock.ops.select import where
from opdock.ops.solve import matrix_solve
from opdock.ops.support import array_util
from opdock.shapes import Shape

__all__ = ["matrix_square_root"]

matrix_exponential_op = define_op(
    "MatrixExponential", "input: T -> output: T", "T: {double, float, half, complex64, complex128}"
)
matrix_logarithm_op = define_op(
    "MatrixLogarithm", "input: T -> output: T", "T: {complex64, complex128}"
)
matrix_square_root_op = define_op(
    "MatrixSquareRoot", "input: T -> output: T", "T: {double, float, half, complex64, complex128}"
)
array_util.no_gradient(matrix_exponential_op)
array_util.no_gradient(matrix_logarithm_op)


@matrix_exponential_op.shape
@matrix_logarithm_op.shape
@matrix_square_root_op.shape
def _function_shape(sig: ShapeSig) -> Shape:
    return square_matrices(sig.shapes[0])


@matrix_square_root_op.gradient
def _square_root_grad(op: Operation, grad: Any) -> Tensor:
    root = op.outputs[0]
    dims = shape(root)
    identity = eye(dims[-1], dtype=root.dtype)
    # X solves R^H X + X R^H = grad; stacked into a vector, that is one linear system.
    system = _kronecker(adjoint(root), identity) + _kronecker(identity, conj(root))
    vector = matrix_solve(system, expand_dims(_merge_last(grad), -1))
    return reshape(vector, dims)


def _merge_last(x: Any) -> Tensor:
    return reshape(x, concat([shape(x)[:-2], [-1]], 0))


def _kronecker(a: Tensor, b: Tensor) -> Tensor:
    """The Kronecker product of square matrices of one size."""
    product = a[..., :, None, :, None] * b[..., None, :, None, :]
    dims = shape(product)
    size = dims[-1] * dims[-1]
    return reshape(product, concat([dims[:-4], reshape(size, [1]), reshape(size, [1])], 0))


# ---------------------------------------------------------------- public functions
_WORDS = {
    "name": "a name for the operation.",
    "returns": "A tensor of the type and shape of `input`.",
    "input": "a float32, float64, complex64 or complex128 tensor of shape [..., M, M].",
    "a": "a float32 or float64 tensor of shape [..., M, N].",
    "validate_args": "accepted for TF's signature; shapes are checked in any case.",
}
"""What the functions here take."""


@explained(
    _WORDS,
    matrix="a floating-point or complex tensor of shape [..., M, M].",
    returns="A real tensor of shape [...].",
    raises="InvalidArgumentError: a matrix is not positive definite (when it runs).",
)
@extensible
def logdet(matrix: Any, name: str | None = None) -> Tensor:
    """The logarithm of the determinant of positive definite matrices."""
    with name_scope(name, "logdet", [matrix]):
        diagonal = matrix_diag_part(cholesky(matrix))
        return 2.0 * reduce_sum(log(real(diagonal)), axis=[-1])


@extensible
@explained(_WORDS)
def matrix_square_root(input: Any, name: str | None = None) -> Tensor:
    """The principal square root of each square matrix; NaN where a real one has no real root."""
    return matrix_square_root_op(input, name=name)  # type: ignore[no-any-return]


sqrtm = matrix_square_root


@explained(_WORDS, input="a complex64 or complex128 tensor of shape [..., M, M].")
def logm(input: Any, name: str | None = None) -> Tensor:
    """The principal logarithm of each square matrix."""
    return matrix_logarithm_op(input, name=name)  # type: ignore[no-any-return]


@extensible
@explained(
    _WORDS,
    tol="the threshold; by default max(M, N) times the type's precision times the largest "
    "singular value.",
    returns="An int32 tensor of shape [...].",
)
def matrix_rank(
    a: Any, tol: Any = None, validate_args: bool = False, name: str | None = None
) -> Tensor:
    """The number of singular values above a threshold."""
    with name_scope(name or "matrix_rank"):
        a = convert_to_tensor(a, name="a")
        values = svd(a, compute_uv=False)
        if tol is None:
            size = cast(_larger_side(a), values.dtype)
            precision = np.finfo(a.dtype.as_numpy_dtype).eps
            tol = precision * size * reduce_max(values, axis=-1, keepdims=True)
        return reduce_sum(cast(values > tol, dtypes.int32), axis=-1)


def _larger_side(a: Tensor) -> Any:
    static = a.raw_shape
    if static is not None and static[-2] is not None and static[-1] is not None:
        return max(static[-2], static[-1])
    return reduce_max(shape(a)[-2:])


@extensible
@explained(
    _WORDS,
    rcond="singular values below `rcond` times the largest count as zero; by default 10 max(M, "
    "N) times the type's precision.",
    returns="A tensor of shape [..., N, M].",
)
def pinv(a: Any, rcond: Any = None, validate_args: bool = False, name: str | None = None) -> Tensor:
    """The Moore-Penrose pseudo-inverse of each matrix, through its singular values."""
    with name_scope(name or "pinv"):
        a = convert_to_tensor(a, name="a")
        if rcond is None:
            precision = 10.0 * float(np.finfo(a.dtype.as_numpy_dtype).eps)
            rcond = precision * cast(_larger_side(a), a.dtype)
        rcond = convert_to_tensor(rcond, a.dtype, "rcond")
        values, left, right = svd(a, full_matrices=False, compute_uv=True)
        cutoff = expand_dims(rcond * reduce_max(values, axis=-1), -1)
        # One over infinity is zero, and so is its gradient.
        values = where(values > cutoff, values, ones_like(values) * np.inf)
        return matmul(right / expand_dims(values, -2), left, adjoint_b=True)


# Coefficients of the diagonal Pade approximants of exp, lowest power first.
_PADE = {
    3: (120.0, 60.0, 12.0, 1.0),
    5: (30240.0, 15120.0, 3360.0, 420.0, 30.0, 1.0),
    7: (17297280.0, 8648640.0, 1995840.0, 277200.0, 25200.0, 1512.0, 56.0, 1.0),
    9: (
        17643225600.0, 8821612800.0, 2075673600.0, 302702400.0, 30270240.0, 2162160.0, 110880.0,
        3960.0, 90.0, 1.0,
    ),
    13: (
        64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0,
        129060195264000.0, 10559470521600.0, 670442572800.0, 33522128640.0, 1323241920.0,
        40840800.0, 960960.0, 16380.0, 182.0, 1.0,
    ),
}  # fmt: skip
# Up to which 1-norm each approximant is as exact as the type.
_LIMITS = {
    4: {3: 4.258730016922831e-01, 5: 1.880152677804762e00, 7: 3.925724783138660e00},
    8: {
        3: 1.495585217958292e-02, 5: 2.539398330063230e-01, 7: 9.504178996162932e-01,
        9: 2.097847961257068e00, 13: 5.371920351148152e00,
    },
}  # fmt: skip


@extensible
@explained(_WORDS, raises="ValueError: the type has no such approximation.")
def matrix_exponential(input: Any, name: str | None = None) -> Tensor:
    """The exponential of each square matrix: the sum of input^k / k!."""
    with name_scope(name, "matrix_exponential", [input]):
        matrix = convert_to_tensor(input, name="input")
        static = matrix.raw_shape
        if static is not None and static[-2:] == (0, 0):
            return matrix
        if static is not None and static[-2:] == (1, 1):
            return exp(matrix)
        real_type = np.dtype(matrix.dtype.real_dtype.as_numpy_dtype)
        if real_type.itemsize not in _LIMITS or not (
            matrix.dtype.is_floating or matrix.dtype.is_complex
        ):
            raise ValueError(f"tf.linalg.expm does not support matrices of type {matrix.dtype}")
        return _scaled_and_squared(matrix, _LIMITS[real_type.itemsize])


def _scaled_and_squared(matrix: Tensor, limits: dict[int, float]) -> Tensor:
    """exp(A) = exp(A / 2^s)^(2^s), with s per matrix and the cheapest sufficient approximant."""
    orders = sorted(limits)
    largest = limits[orders[-1]]
    norm = reduce_max(reduce_sum(abs_(matrix), axis=-2), axis=-1)[..., None, None]
    squarings = maximum(floor(log(norm / largest) / float(np.log(2.0))) + 1.0, 0.0)
    # An infinite matrix must not be squared for ever.
    squarings = where(is_finite(norm), squarings, zeros_like(norm))
    scaled = matrix / cast(pow_(cast(2.0, norm.dtype), squarings), matrix.dtype)
    powers = _even_powers(scaled, orders[-1])
    even, odd = _pade(scaled, powers, orders[-1])
    for order in reversed(orders[:-1]):
        small = norm < limits[order]
        even_small, odd_small = _pade(scaled, powers, order)
        even = where(_spread(small, even), even_small, even)
        odd = where(_spread(small, odd), odd_small, odd)
    return _square_up(matrix_solve(even - odd, even + odd), squarings)


def _spread(condition: Any, like: Tensor) -> Tensor:
    return broadcast_to(condition, shape(like))


def _even_powers(x: Tensor, order: int) -> list[Tensor]:
    """x^2, x^4, ... as far as the approximant of `order` needs them."""
    powers = [matmul(x, x)]
    # The 13th order factors out x^6, but the 9th, its neighbour, needs x^8.
    while len(powers) < min(order // 2, 4):
        powers.append(matmul(powers[-1], powers[0]))
    return powers


def _pade(x: Tensor, powers: list[Tensor], order: int) -> tuple[Tensor, Tensor]:
    """The even and the odd part of the numerator; the denominator is their difference."""
    c = _PADE[order]
    dims = shape(x)
    identity = eye(dims[-1], batch_shape=dims[:-2], dtype=x.dtype)

    def series(first: int, count: int) -> Any:
        out = c[first] * identity if first < 2 else None
        start = first if first >= 2 else first + 2
        for power, index in zip(powers, range(start, start + 2 * count, 2), strict=False):
            term = c[index] * power
            out = term if out is None else out + term
        return out

    if order == 13:
        # The high powers factor as x^6 times lower ones: three products instead of six.
        even = matmul(powers[2], series(8, 3)) + series(0, 3)
        odd = matmul(x, matmul(powers[2], series(9, 3)) + series(1, 3))
        return even, odd
    half = order // 2
    return series(0, half), matmul(x, series(1, half))


def _square_up(result: Tensor, squarings: Any) -> Tensor:
    from opdock.ops.composed.loops import while_loop

    last = reduce_max(squarings)

    def body(i: Any, current: Any) -> tuple[Any, Any]:
        more = _spread(i < squarings, current)
        return i + 1.0, where(more, matmul(current, current), current)

    _, result = while_loop(lambda i, _: i < last, body, [0.0 * last, result])
    return result
