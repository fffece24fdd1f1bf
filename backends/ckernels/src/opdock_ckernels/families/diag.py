"""Diagonals: strided runs in the flattened matrices."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from opdock.plugin import KernelTable, NodeSig, checks
from opdock_ckernels.families.array import HELD
from opdock_ckernels.protocols import Array
from opdock_ckernels.scattering import copied
from opdock_ckernels.strided import move, take, zeros

__all__ = ["table"]

table = KernelTable()


@table.binder("Diag", T=HELD)
def diag(sig: NodeSig) -> Callable[[Array], Array]:
    """A tensor with the given diagonal."""
    device = sig.device

    def run(diagonal: Array) -> Array:
        n = diagonal.size
        out = zeros(device, (*diagonal.shape, *diagonal.shape), diagonal.dtype)
        move(device, diagonal, out, (n,), (1,), (n + 1,))
        return out

    return run


@table.binder("DiagPart", T=HELD)
def diag_part(sig: NodeSig) -> Callable[[Array], Array]:
    """The diagonal of a tensor."""
    device = sig.device

    def run(x: Array) -> Array:
        shape = checks.half_of(x.shape)
        n = math.prod(shape)
        return take(device, x, (n,), (n + 1,)).reshape(*shape)

    return run


def _matrices(x: Array) -> tuple[int, int, int]:
    """How many matrices there are, and their rows and columns."""
    checks.check_matrix(x.shape)
    return math.prod(x.shape[:-2]), x.shape[-2], x.shape[-1]


def _band(k: Any) -> tuple[int, int]:
    try:
        return checks.diagonals.band(checks.ints(k))
    except ValueError as e:
        raise checks.invalid(str(e)) from None


def _longest(lower: int, upper: int, rows: int, cols: int) -> int:
    try:
        return checks.diagonals.longest(lower, upper, rows, cols)
    except ValueError as e:
        raise checks.invalid(str(e)) from None


def _filled(device: Any, value: Array, shape: Sequence[int]) -> Array:
    return take(device, value, shape, [0] * len(shape))


class _Lines:
    """The diagonals of a batch of matrices, beside them as lines of one length.

    Args:
        device: the open device.
        size: how many matrices, and their rows and columns.
        lower, upper: the band.
        length: the length of a line.
    """

    def __init__(
        self, device: Any, size: tuple[int, int, int], lower: int, upper: int, length: int
    ) -> None:
        self._device, self._size = device, size
        self._lower, self._upper, self._length = lower, upper, length

    def put(self, lines: Array, matrices: Array) -> None:
        """Writes the lines into the matrices."""
        self._move(lines, matrices, False)

    def get(self, matrices: Array, lines: Array) -> None:
        """Writes the matrices' diagonals into the lines."""
        self._move(matrices, lines, True)

    def _move(self, source: Array, target: Array, out: bool) -> None:
        batch, rows, cols = self._size
        count = self._upper - self._lower + 1
        for k in range(self._lower, self._upper + 1):
            where = checks.diagonals.diagonal(k, rows, cols)
            matrix = (rows * cols, where.step), where.start
            line = (count * self._length, 1), (self._upper - k) * self._length
            (a, p), (b, q) = (matrix, line) if out else (line, matrix)
            length = min(where.length, self._length)
            move(self._device, source, target, (batch, length), a, b, p, q)


@table.binder("MatrixDiag", T=HELD)
def matrix_diag(sig: NodeSig) -> Callable[[Array], Array]:
    """Square matrices with the given main diagonals."""
    device = sig.device

    def run(diagonal: Array) -> Array:
        checks.check_diagonals(diagonal.shape)
        n = diagonal.shape[-1]
        out = zeros(device, (*diagonal.shape, n), diagonal.dtype)
        _Lines(device, _matrices(out), 0, 0, n).put(diagonal, out)
        return out

    return run


@table.binder("MatrixDiagV2", T=HELD, host_inputs=("k", "num_rows", "num_cols"))
def matrix_diag_v2(sig: NodeSig) -> Callable[..., Array]:
    """Matrices with the given band of diagonals."""
    device = sig.device

    def run(diagonal: Array, k: Any, num_rows: Any, num_cols: Any, padding: Array) -> Array:
        lower, upper = _band(k)
        batch = checks.batch_of_band(diagonal.shape, lower, upper)
        length, ints = diagonal.shape[-1], checks.ints
        try:
            rows, cols = checks.diagonals.matrix_size(
                lower, upper, length, ints(num_rows)[0], ints(num_cols)[0]
            )
        except ValueError as e:
            raise checks.invalid(str(e)) from None
        out = _filled(device, padding, (*batch, rows, cols))
        _Lines(device, _matrices(out), lower, upper, length).put(diagonal, out)
        return out

    return run


@table.binder("MatrixDiagPart", T=HELD)
def matrix_diag_part(sig: NodeSig) -> Callable[[Array], Array]:
    """The main diagonals of matrices."""
    device = sig.device

    def run(x: Array) -> Array:
        size = _matrices(x)
        length = min(size[1:])
        out: Array = device.allocate((*x.shape[:-2], length), x.dtype)
        _Lines(device, size, 0, 0, length).get(x, out)
        return out

    return run


@table.binder("MatrixDiagPartV2", T=HELD, host_inputs=("k",))
def matrix_diag_part_v2(sig: NodeSig) -> Callable[..., Array]:
    """A band of diagonals of matrices, the shorter ones padded at the end."""
    device = sig.device

    def run(x: Array, k: Any, padding: Array) -> Array:
        size = _matrices(x)
        lower, upper = _band(k)
        length = _longest(lower, upper, *size[1:])
        count = () if lower == upper else (upper - lower + 1,)
        out = _filled(device, padding, (*x.shape[:-2], *count, length))
        _Lines(device, size, lower, upper, length).get(x, out)
        return out

    return run


@table.binder("MatrixSetDiag", T=HELD)
def matrix_set_diag(sig: NodeSig) -> Callable[[Array, Array], Array]:
    """Matrices with other main diagonals."""
    device = sig.device

    def run(x: Array, diagonal: Array) -> Array:
        size = _matrices(x)
        checks.check_set_diag(x.shape, diagonal.shape, (*x.shape[:-2], min(size[1:])))
        out = copied(device, x)
        _Lines(device, size, 0, 0, diagonal.shape[-1]).put(diagonal, out)
        return out

    return run


@table.binder("MatrixSetDiagV2", T=HELD, host_inputs=("k",))
def matrix_set_diag_v2(sig: NodeSig) -> Callable[..., Array]:
    """Matrices with another band of diagonals."""
    device = sig.device

    def run(x: Array, diagonal: Array, k: Any) -> Array:
        size = _matrices(x)
        lower, upper = _band(k)
        length = _longest(lower, upper, *size[1:])
        count = () if lower == upper else (upper - lower + 1,)
        checks.check_set_diag(x.shape, diagonal.shape, (*x.shape[:-2], *count, length))
        out = copied(device, x)
        _Lines(device, size, lower, upper, length).put(diagonal, out)
        return out

    return run
