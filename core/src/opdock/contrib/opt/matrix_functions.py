"""Roots of positive semidefinite matrices by iterations of products."""

from __future__ import annotations

from typing import Any

from opdock.ops.arithmetic import pow as power
from opdock.ops.compare import logical_and
from opdock.ops.composed.eye import eye
from opdock.ops.composed.loops import while_loop
from opdock.ops.composed.matrix_norm import norm as norm_of
from opdock.ops.elementary import abs as absolute
from opdock.ops.elementary import sqrt
from opdock.ops.linalg import matmul
from opdock.ops.reduce import reduce_max, reduce_sum

__all__ = ["matrix_inverse_pth_root", "matrix_square_root"]


def _size(matrix: Any) -> Any:
    return sqrt(reduce_sum(matrix * matrix))


def matrix_square_root(
    mat_a: Any, mat_a_size: Any, iter_count: int = 100, ridge_epsilon: float = 1e-4
) -> Any:
    """The square root of a symmetric positive semidefinite matrix (Higham 1997, equation 2.6b).

    Args:
        mat_a: the matrix [size, size].
        mat_a_size: its size.
        iter_count: how many iterations there may be; they end before where the error grows.
        ridge_epsilon: added to the diagonal.
    """
    identity = eye(int(mat_a_size))
    mat_a = ridge_epsilon * identity + mat_a
    norm = _size(mat_a)

    def better(i: Any, _y: Any, _y_old: Any, _z: Any, error: Any, old: Any) -> Any:
        return logical_and(i < iter_count, error < old)

    def step(i: Any, y: Any, _: Any, z: Any, error: Any, _old: Any) -> Any:
        middle = 0.5 * (3.0 * identity - matmul(z, y))
        y_new = matmul(y, middle)
        root = y_new * sqrt(norm)
        left = _size(mat_a - matmul(root, root)) / norm
        return i + 1, y_new, y, matmul(middle, z), left, error

    start = mat_a / norm
    # The root is that of the last iteration but one: the last one was worse.
    found = while_loop(better, step, [0, start, start, identity, norm, norm + 1.0])
    return found[2] * sqrt(norm)


def matrix_inverse_pth_root(
    mat_g: Any, mat_g_size: Any, alpha: float, iter_count: int = 100, epsilon: float = 1e-6,
    ridge_epsilon: float = 1e-6,
) -> Any:  # fmt: skip
    """`mat_g ** alpha` with `alpha = -1 / p` for a whole p (Guo & Higham 2006, equation 3.2).

    Args:
        mat_g: a symmetric positive semidefinite matrix [size, size].
        mat_g_size: its size.
        alpha: the exponent.
        iter_count: how many iterations there may be.
        epsilon: the error at which they end.
        ridge_epsilon: added to the diagonal.

    Raises:
        ValueError: `-1 / alpha` is no whole number above 0.
    """
    if int(mat_g_size) == 1:
        return power(mat_g + ridge_epsilon, alpha)
    p = -1.0 / alpha
    if p != int(p) or p < 1:
        raise ValueError(f"alpha must be -1/p for a positive integer p, got {alpha}")
    identity = eye(int(mat_g_size))
    damped = ridge_epsilon * identity + mat_g
    z = (1 - 1 / alpha) / (2 * norm_of(damped))

    def wrong(i: Any, m: Any, _: Any) -> Any:
        return logical_and(i < iter_count, reduce_max(absolute(m - identity)) > epsilon)

    def step(i: Any, m: Any, x: Any) -> Any:
        factor = (1 - alpha) * identity + alpha * m
        return i + 1, matmul(_whole_power(factor, int(p)), m), matmul(x, factor)

    return while_loop(wrong, step, [0, damped * z, identity * power(z, -alpha)])[2]


def _whole_power(matrix: Any, p: int) -> Any:
    """A matrix times itself, p times, by squares."""
    found = None
    while p:
        if p % 2:
            found = matrix if found is None else matmul(matrix, found)
        p //= 2
        if p:
            matrix = matmul(matrix, matrix)
    return found
