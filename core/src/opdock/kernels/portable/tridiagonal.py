"""Portable kernel of systems with three diagonals: elimination, a row of all systems at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opdock.kernels.array_api import fails, invalid
from opdock.kernels.portable import portable
from opdock.kernels.portable.decompositions import TYPES, is_empty
from opdock.kernels.portable.solve import check_batches
from opdock.kernels.select.signature import NodeSig


def check_tridiagonal(diagonals: Any, rhs: Any) -> None:
    """Raises InvalidArgumentError unless there are right-hand sides for three diagonals."""
    check_batches(diagonals, rhs)
    if diagonals.shape[-2] != 3:
        raise invalid(f"Expected 3 diagonals got {diagonals.shape[-2]}")
    if diagonals.shape[-1] != rhs.shape[-2]:
        raise invalid(
            "Expected same number of left-hand sides and right-hand sides, got "
            f"{diagonals.shape[-1]} and {rhs.shape[-2]}."
        )


def no_pivot(pivoting: bool) -> Exception:
    """The error of a system in whose elimination a pivot is zero."""
    return invalid(
        "The matrix is not invertible."
        if pivoting
        else "The matrix is either not invertible, or requires pivoting. Try setting "
        "partial_pivoting = True."
    )


@portable("TridiagonalSolve", T=TYPES)
def tridiagonal_solve(xp: Any, sig: NodeSig) -> Callable[[Any, Any], Any]:
    """The solutions of systems whose matrix has three diagonals."""
    pivoting = sig.attrs["partial_pivoting"]

    def run(diagonals: Any, rhs: Any) -> Any:
        check_tridiagonal(diagonals, rhs)
        if is_empty(rhs):
            return xp.zeros_like(rhs)
        rows = _eliminate(xp, diagonals, rhs, pivoting)
        # One look at all of them: each costs a device a wait.
        if fails(xp, xp.any(xp.concat([main for main, *_ in rows], axis=-1) == 0)):
            raise no_pivot(pivoting)
        return _substitute(xp, rows)

    return run


def _eliminate(xp: Any, diagonals: Any, rhs: Any, pivoting: bool) -> list[tuple[Any, ...]]:
    """The upper triangle's rows: the pivot, the two elements right of it, the right-hand sides.

    The second element right of the pivot comes from exchanged rows.
    """
    n = rhs.shape[-2]
    none = xp.zeros_like(diagonals[..., 0, :1])

    def row(i: int) -> tuple[Any, Any, Any, Any]:
        lower, main = (diagonals[..., d, i : i + 1] for d in (2, 1))
        return lower, main, diagonals[..., 0, i : i + 1] if i + 1 < n else none, rhs[..., i, :]

    rows = []
    _, main, above, x = row(0)
    for i in range(1, n):
        second, (below, next_main, next_above, next_x) = none, row(i)
        if pivoting:
            swap = xp.abs(below) > xp.abs(main)
            main, below = _exchanged(xp, swap, main, below)
            above, next_main = _exchanged(xp, swap, above, next_main)
            second, next_above = _exchanged(xp, swap, second, next_above)
            x, next_x = _exchanged(xp, swap, x, next_x)
        rows.append((main, above, second, x))
        factor = below / main
        main, above, x = (
            next_main - factor * above, next_above - factor * second, next_x - factor * x
        )  # fmt: skip
    return [*rows, (main, none, none, x)]


def _exchanged(xp: Any, swap: Any, a: Any, b: Any) -> tuple[Any, Any]:
    return xp.where(swap, b, a), xp.where(swap, a, b)


def _substitute(xp: Any, rows: list[tuple[Any, ...]]) -> Any:
    solved: list[Any] = []
    next_x = after_next = xp.zeros_like(rows[-1][-1])
    for main, above, second, x in reversed(rows):
        next_x, after_next = (x - above * next_x - second * after_next) / main, next_x
        solved.append(next_x)
    return xp.stack(solved[::-1], axis=-2)
