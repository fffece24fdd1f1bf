"""Where the diagonals of a matrix lie; shape functions and kernels share this arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Diagonal(NamedTuple):
    """One diagonal in a row-major matrix: a strided run of the flattened elements."""

    start: int
    step: int
    length: int

    @property
    def flat(self) -> slice:
        """The subscript of the diagonal in the flattened matrix."""
        if self.length == 0:
            return slice(0, 0, 1)
        return slice(self.start, self.start + (self.length - 1) * self.step + 1, self.step)


def diagonal(k: int, rows: int, cols: int) -> Diagonal:
    """The `k`-th diagonal of a matrix; positive `k` lies above the main one."""
    length = max(0, min(rows + min(k, 0), cols - max(k, 0)))
    return Diagonal(k if k >= 0 else -k * cols, cols + 1, length)


def band(k: Sequence[int]) -> tuple[int, int]:
    """(lowest, highest) diagonal of an argument `k` that is a scalar or a pair.

    Raises:
        ValueError: it has neither one nor two entries, or the first is above the second.
    """
    if len(k) not in (1, 2):
        raise ValueError(f"diag_index must have one or two elements, received {len(k)} elements.")
    lower, upper = int(k[0]), int(k[-1])
    if lower > upper:
        raise ValueError(f"lower_diag_index is greater than upper_diag_index: {lower} > {upper}")
    return lower, upper


def longest(lower: int, upper: int, rows: int, cols: int) -> int:
    """The length of the longest diagonal of a band.

    Raises:
        ValueError: a diagonal lies outside the matrix.
    """
    for k, what in ((lower, "lower"), (upper, "upper")):
        if k != 0 and not -rows < k < cols:
            raise ValueError(
                f"{what}_diag_index is out of bound: {k}. It must be in ({-rows}, {cols})"
            )
    return min(rows + min(upper, 0), cols - max(lower, 0))


def matrix_size(lower: int, upper: int, length: int, rows: int, cols: int) -> tuple[int, int]:
    """The size of the matrix that a band of diagonals fills; -1 stands for "as small as it can be".

    Raises:
        ValueError: the diagonals do not fit the size that is given.
    """
    least_rows, least_cols = length - min(upper, 0), length + max(lower, 0)
    if rows == -1 and cols == -1:
        rows = cols = max(least_rows, least_cols)
    elif rows == -1:
        rows = least_rows
    elif cols == -1:
        cols = least_cols
    if rows < least_rows:
        raise ValueError(f"num_rows is too small: {rows} < {least_rows}")
    if cols < least_cols:
        raise ValueError(f"num_cols is too small: {cols} < {least_cols}")
    if rows != least_rows and cols != least_cols:
        raise ValueError(
            "num_rows and num_cols are not consistent with lower_diag_index, upper_diag_index, "
            f"and the length of the given diagonals: num_rows = {rows} != {least_rows} and "
            f"num_cols = {cols} != {least_cols}"
        )
    return rows, cols
