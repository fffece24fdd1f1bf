"""Matrices of three diagonals: solving with them and multiplying by them."""

from __future__ import annotations

from typing import Any

from opdock import shapes
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.array import expand_dims, squeeze
from opdock.ops.complex import conj
from opdock.ops.diag import matrix_diag_part
from opdock.ops.fill import zeros_like
from opdock.ops.joining import concat, stack
from opdock.ops.matrix import matrix_transpose
from opdock.ops.reduce import reduce_sum
from opdock.ops.registry import ShapeSig, define_op
from opdock.shapes import Shape

__all__: list[str] = []

tridiagonal_solve_op = define_op(
    "TridiagonalSolve", "diagonals: T, rhs: T -> output: T",
    "partial_pivoting: bool = true, T: {double, float, complex64, complex128}",
)  # fmt: skip
tridiagonal_matmul_op = define_op(
    "TridiagonalMatMul", "superdiag: T, maindiag: T, subdiag: T, rhs: T -> output: T",
    "T: {double, float, complex64, complex128}",
)  # fmt: skip


@tridiagonal_solve_op.shape
def _solve_shape(sig: ShapeSig) -> Shape:
    diagonals = shapes.with_rank_at_least(sig.shapes[0], 2)
    rhs = shapes.with_rank_at_least(sig.shapes[1], 2)
    if diagonals is None or rhs is None:
        return rhs
    if diagonals[-2] not in (None, 3):
        raise ValueError(f"Dimension must be 3 but is {diagonals[-2]}")
    batch = shapes.merge(diagonals[:-2], rhs[:-2])
    return shapes.concat(batch, (shapes.merge_dim(diagonals[-1], rhs[-2]), rhs[-1]))


@tridiagonal_matmul_op.shape
def _matmul_shape(sig: ShapeSig) -> Shape:
    diagonal: Shape = None
    for i in range(3):
        diagonal = shapes.merge(diagonal, shapes.with_rank_at_least(sig.shapes[i], 2))
    rhs = shapes.with_rank_at_least(sig.shapes[3], 2)
    if diagonal is None or rhs is None:
        return rhs
    if diagonal[-2] not in (None, 1):
        raise ValueError(f"Dimension must be 1 but is {diagonal[-2]}")
    batch = shapes.merge(diagonal[:-2], rhs[:-2])
    return shapes.concat(batch, (shapes.merge_dim(diagonal[-1], rhs[-2]), rhs[-1]))


# ---------------------------------------------------------------- gradients
def _shift(x: Any, by: int, axis: int) -> Tensor:
    """`x` moved by one place along its last or next to last axis; a zero moves in."""
    if axis == -2:
        head, tail, zero = x[..., :-1, :], x[..., 1:, :], zeros_like(x[..., :1, :])
    else:
        head, tail, zero = x[..., :-1], x[..., 1:], zeros_like(x[..., :1])
    return concat([zero, head] if by > 0 else [tail, zero], axis)


@tridiagonal_solve_op.gradient
def _solve_grad(op: Operation, grad: Any) -> list[Any]:
    diagonals, x = op.inputs[0], conj(op.outputs[0])
    # The transpose swaps the outer diagonals, each of which keeps its own padding end.
    adjoint = conj(
        stack(
            [
                _shift(diagonals[..., 2, :], -1, -1),
                diagonals[..., 1, :],
                _shift(diagonals[..., 0, :], 1, -1),
            ],
            axis=-2,
        )
    )
    pivoting = op.attrs["partial_pivoting"]
    grad_rhs = tridiagonal_solve_op(adjoint, grad, partial_pivoting=pivoting)
    products = [
        reduce_sum(grad_rhs * other, axis=-1) for other in (_shift(x, -1, -2), x, _shift(x, 1, -2))
    ]
    return [-stack(products, axis=-2), grad_rhs]


@tridiagonal_matmul_op.gradient
def _matmul_grad(op: Operation, grad: Any) -> list[Any]:
    upper, main, lower = (matrix_transpose(d, conjugate=True) for d in op.inputs[:3])
    rhs = conj(op.inputs[3])
    grads = [
        expand_dims(reduce_sum(other * grad, axis=-1), -2)
        for other in (_shift(rhs, -1, -2), rhs, _shift(rhs, 1, -2))
    ]
    grad_rhs = _shift(upper * grad, 1, -2) + main * grad + _shift(lower * grad, -1, -2)
    return [*grads, grad_rhs]


# ---------------------------------------------------------------- decompositions
@tridiagonal_matmul_op.decomposition
def _matmul_parts(
    sig: ShapeSig, superdiag: Tensor, maindiag: Tensor, subdiag: Tensor, rhs: Tensor
) -> Tensor:
    upper, main, lower = (matrix_transpose(d) for d in (superdiag, maindiag, subdiag))
    return upper * _shift(rhs, -1, -2) + main * rhs + lower * _shift(rhs, 1, -2)


# ---------------------------------------------------------------- public functions
@extensible
def tridiagonal_solve(
    diagonals: Any, rhs: Any, diagonals_format: str = "compact", transpose_rhs: bool = False,
    conjugate_rhs: bool = False, name: str | None = None, partial_pivoting: bool = True,
) -> Tensor:  # fmt: skip
    """Solves systems whose matrix has three diagonals (`tf.linalg.tridiagonal_solve`).

    Args:
        diagonals: the matrices, a float32, float64, complex64 or complex128 tensor in the form that
            `diagonals_format` names.
        rhs: the right-hand sides, of shape [..., M] or [..., M, K].
        diagonals_format: "compact": a tensor of shape [..., 3, M] that holds the diagonals above,
            on and below the main one (the last element of the first and the first of the last are
            not read); "sequence": a list of three tensors; "matrix": full matrices.
        transpose_rhs: transpose `rhs` first.
        conjugate_rhs: conjugate `rhs` first.
        name: a name for the operation.
        partial_pivoting: exchange rows where that is more exact.

    Returns:
        A tensor of the shape of `rhs`.

    Raises:
        ValueError: the format is unknown or the shapes do not fit.
    """
    compact = _compact(diagonals, diagonals_format)
    rhs = convert_to_tensor(rhs, name="rhs")
    n, n_rhs = (None if t.raw_shape is None else len(t.raw_shape) for t in (compact, rhs))
    if n is not None and n < 2:
        raise ValueError(f"Expected diagonals to have rank at least 2, got {n}")
    if n is not None and n_rhs is not None and n_rhs not in (n, n - 1):
        raise ValueError(f"Expected the rank of rhs to be {n - 1} or {n}, got {n_rhs}")
    if n is not None and n_rhs == n - 1:
        column = expand_dims(conj(rhs) if conjugate_rhs else rhs, -1)
        out = tridiagonal_solve_op(compact, column, partial_pivoting=partial_pivoting, name=name)
        return squeeze(out, -1)
    if transpose_rhs:
        rhs = matrix_transpose(rhs, conjugate=conjugate_rhs)
    elif conjugate_rhs:
        rhs = conj(rhs)
    found: Tensor = tridiagonal_solve_op(compact, rhs, partial_pivoting=partial_pivoting, name=name)
    return matrix_transpose(found) if transpose_rhs else found


def _compact(diagonals: Any, diagonals_format: str) -> Tensor:
    """The diagonals in compact form."""
    if diagonals_format == "compact":
        return convert_to_tensor(diagonals, name="diagonals")
    if diagonals_format == "sequence":
        return _stacked(_sequence(diagonals))
    if diagonals_format == "matrix":
        return _stacked(_of_matrix(diagonals))
    raise ValueError(f"Unrecognized diagonals_format: {diagonals_format}")


def _sequence(diagonals: Any) -> list[Tensor]:
    if not isinstance(diagonals, (list, tuple)) or len(diagonals) != 3:
        raise ValueError("Expected diagonals to be a sequence of length 3.")
    return [convert_to_tensor(d) for d in diagonals]


def _of_matrix(diagonals: Any) -> list[Tensor]:
    matrix = convert_to_tensor(diagonals, name="diagonals")
    static = matrix.raw_shape
    if static is not None:
        if len(static) < 2:
            raise ValueError(f"Expected diagonals to have rank at least 2, got {len(static)}")
        if None not in static[-2:] and static[-2] != static[-1]:
            raise ValueError(
                "Expected last two dimensions of diagonals to be same, got "
                f"{static[-2]} and {static[-1]}"
            )
    main = matrix_diag_part(matrix)
    upper, lower = matrix[..., :-1, 1:], matrix[..., 1:, :-1]
    # Padded here, where it is known without static shapes that they are shorter by one.
    zero = zeros_like(main[..., :1])
    return [
        concat([matrix_diag_part(upper), zero], -1),
        main,
        concat([zero, matrix_diag_part(lower)], -1),
    ]


def _stacked(diagonals: list[Tensor]) -> Tensor:
    """Three diagonals as one tensor, the outer ones padded to the length of the main one."""
    upper, main, lower = diagonals
    length = None if main.raw_shape is None else main.raw_shape[-1]

    def padded(x: Tensor, label: str, at_end: bool) -> Tensor:
        n = None if x.raw_shape is None else x.raw_shape[-1]
        if n is None or length is None or n == length:
            return x
        if n != length - 1:
            raise ValueError(
                f"Expected {label} to be have length {length} or {length - 1}, got {n}."
            )
        zero = zeros_like(main[..., :1])
        return concat([x, zero] if at_end else [zero, x], -1)

    upper, lower = padded(upper, "superdiagonal", True), padded(lower, "subdiagonal", False)
    return stack([upper, main, lower], axis=-2)


@extensible
def tridiagonal_matmul(
    diagonals: Any, rhs: Any, diagonals_format: str = "compact", name: str | None = None
) -> Tensor:
    """Multiplies matrices of three diagonals by other matrices (`tf.linalg.tridiagonal_matmul`).

    Args:
        diagonals: the matrices, in the form that `diagonals_format` names; see
            `tf.linalg.tridiagonal_solve`.
        rhs: a tensor of shape [..., M, K].
        diagonals_format: "compact", "sequence" or "matrix".
        name: a name for the operation.

    Returns:
        A tensor of the shape of `rhs`.

    Raises:
        ValueError: the format is unknown or the shapes do not fit.
    """
    with name_scope(name, "tridiagonal_matmul"):
        compact = _compact(diagonals, diagonals_format)
        parts = [compact[..., i : i + 1, :] for i in range(3)]
        return tridiagonal_matmul_op(*parts, rhs)  # type: ignore[no-any-return]
