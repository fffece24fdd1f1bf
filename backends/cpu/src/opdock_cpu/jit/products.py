"""Products of matrices inside of generated code: tiles that are summed up in registers.

A tile is some rows by some vectors of columns. For each step of the sum it loads the vectors of the
right matrix once, and multiplies them by one number for each row of the left one.

A right matrix that stays is laid out in panels, of as many columns as a tile has: what a tile reads
lies side by side then, and all rows go through a panel while it is in the first cache.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple

from opdock.plugin import codegen
from opdock_cpu.jit import llvm
from opdock_cpu.jit.plan import Code
from opdock_cpu.jit.team import ATTRIBUTES

__all__ = ["Tile", "laid_out", "lay_out", "multiply"]

_SIXTEEN: Final = 32
"""Bytes of the widest vectors of which there are sixteen registers: of wider ones are more."""
_VECTORS: Final = {4: 2, 2: 4, 1: 8}
"""By the rows of a tile, its most vectors: all sums stay in sixteen registers."""
_SIZE: Final = {"float": 4, "double": 8}
_PANEL: Final = 2
"""Vectors of a panel."""
_LAID_OUT_FROM: Final = 1 << 14
"""Bytes of a right matrix from which the first cache does not hold it as it is."""


class Tile(NamedTuple):
    """A tile's type and size.

    Attributes:
        kind: the LLVM type of a number.
        rows: how many rows.
        vectors, width: how many vectors of how many numbers.
    """

    kind: str
    rows: int
    vectors: int
    width: int

    @property
    def name(self) -> str:
        """That of its function."""
        return f"od_tile_{self.kind}_{self.rows}_{self.vectors}x{self.width}"

    @property
    def columns(self) -> int:
        """How many columns it has."""
        return self.vectors * self.width

    def function(self) -> str:
        """`tile(a, a's strides for rows and sums, b, b's for sums, c, c's for rows, sums)`."""
        code, kind, width = Code(), self.kind, self.width
        vector = f"<{width} x {kind}>"
        suffix = f"v{width}f{'32' if kind == 'float' else '64'}"
        size = 4 if kind == "float" else 8
        nothing = [(vector, "zeroinitializer")] * (self.rows * self.vectors)
        with code.loop("0", "%k", nothing) as loop:
            below = code.at(kind, "%b", code.put(f"mul i64 {loop.index}, %bk"))
            right = [
                code.put(f"load {vector}, ptr {code.at(kind, below, str(v * width))}, align {size}")
                for v in range(self.vectors)
            ]
            along = code.at(kind, "%a", code.put(f"mul i64 {loop.index}, %ak"))
            for row in range(self.rows):
                place = code.at(kind, along, code.put(f"mul i64 %ar, {row}"))
                one = code.put(f"load {kind}, ptr {place}")
                one = code.put(f"insertelement {vector} poison, {kind} {one}, i64 0")
                left = code.put(
                    f"shufflevector {vector} {one}, {vector} poison,"
                    f" <{width} x i32> zeroinitializer"
                )
                for v in range(self.vectors):
                    total = loop.values[row * self.vectors + v]
                    loop.results.append(code.put(
                        f"call {vector} @llvm.fmuladd.{suffix}({vector} {left},"
                        f" {vector} {right[v]}, {vector} {total})"
                    ))  # fmt: skip
        for row in range(self.rows):
            begin = code.at(kind, "%c", code.put(f"mul i64 %cr, {row}"))
            for v in range(self.vectors):
                total = loop.results[row * self.vectors + v]
                place = code.at(kind, begin, str(v * width))
                code.add(f"store {vector} {total}, ptr {place}, align {size}")
        code.add("ret void")
        params = "ptr %a, i64 %ar, i64 %ak, ptr %b, i64 %bk, ptr %c, i64 %cr, i64 %k"
        head = f"define internal void @{self.name}({params}) noinline {ATTRIBUTES}"
        return code.function(head)


def _panels(product: codegen.Product, kind: str) -> int:
    """How many panels the right matrix of a product is laid out in; none if it is read as it is."""
    _, n, k = product.shape
    if not product.stays or n * k * _SIZE[kind] < _LAID_OUT_FROM:
        return 0
    return n // _panel(kind).columns


def laid_out(product: codegen.Product, kind: str) -> int:
    """The bytes of a product's panels."""
    return _panels(product, kind) * _panel(kind).columns * product.shape[2] * _SIZE[kind]


def _panel(kind: str, rows: int = 1) -> Tile:
    return Tile(kind, rows, _PANEL, llvm.vector_bytes() // _SIZE[kind])


def lay_out(code: Code, product: codegen.Product, kind: str, b: str, to: str) -> None:
    """Copies the right matrix into its panels, one after the other."""
    _, _, k = product.shape
    columns = _panel(kind).columns
    with code.loop("0", str(_panels(product, kind))) as panel:
        first = code.at(kind, b, code.put(f"mul i64 {panel.index}, {columns}"))
        target = code.at(kind, to, code.put(f"mul i64 {panel.index}, {columns * k}"))
        with code.loop("0", str(k)) as step:
            row = code.at(kind, first, code.put(f"mul i64 {step.index}, {product.b.strides[0]}"))
            into = code.at(kind, target, code.put(f"mul i64 {step.index}, {columns}"))
            with code.loop("0", str(columns), parallel=True) as column:
                value = code.put_free(f"load {kind}, ptr {code.at(kind, row, column.index)}")
                code.store(kind, value, code.at(kind, into, column.index), free=True)


def multiply(
    code: Code, product: codegen.Product, kind: str, a: str, b: str, c: str, laid_out: str = ""
) -> set[Tile]:  # fmt: skip
    """Puts a product; the tiles that it calls.

    Args:
        code: what the product is part of.
        product: its sizes and strides; `b` has its columns side by side.
        kind: the LLVM type of a number.
        a, b, c: where the matrices lie.
        laid_out: where the panels of the right one lie, if it has any.
    """
    m, n, k = product.shape
    into = _Into(code, kind, product.a.strides, product.result.strides[0], a, c, k)
    left, vector = 0, llvm.vector_bytes()
    if laid_out:
        columns, count = _panel(kind).columns, _panels(product, kind)
        left = columns * count
        with _each(code, 0, columns, count) as column:
            theirs = code.at(kind, laid_out, code.put(f"mul i64 {column}, {k}"))
            for rows, first, times in _rows(m, (8, *_VECTORS) if vector > _SIXTEEN else _VECTORS):
                into.put(_panel(kind, rows), first, times, theirs, columns, column)
    most = min(vector, _SIXTEEN) // _SIZE[kind]
    for rows, first, count in _rows(m, _VECTORS) if left < n else ():
        for vectors, width, start, times in _columns(left, n, _VECTORS[rows], most):
            tile = Tile(kind, rows, vectors, width)
            with _each(code, start, tile.columns, times) as column:
                theirs = code.at(kind, b, column)
                into.put(tile, first, count, theirs, product.b.strides[0], column)
    return into.used


class _Into:
    """The left matrix and the result of a product that is being put.

    Attributes:
        used: the tiles that were called.
    """

    def __init__(
        self, code: Code, kind: str, strides: Sequence[int], row: int, a: str, c: str, sums: int
    ) -> None:
        self._code, self._kind, self._strides, self._row = code, kind, strides, row
        self._a, self._c, self._sums = a, c, sums
        self.used: set[Tile] = set()

    def put(self, tile: Tile, first: int, count: int, b: str, step: int, column: str) -> None:
        """Some tiles, one below the other.

        Args:
            tile: its size.
            first, count: the row where they begin, and how many there are.
            b, step: where their columns of the right matrix begin, and how far its rows are apart.
            column: where they begin in the result.
        """
        code, kind, (row_a, sum_a) = self._code, self._kind, self._strides
        self.used.add(tile)
        with _each(code, first, tile.rows, count) as row:
            ours = code.at(kind, self._a, code.put(f"mul i64 {row}, {row_a}"))
            below = code.put(f"mul i64 {row}, {self._row}")
            to = code.at(kind, code.at(kind, self._c, below), column)
            code.add(
                f"call void @{tile.name}(ptr {ours}, i64 {row_a}, i64 {sum_a}, ptr {b},"
                f" i64 {step}, ptr {to}, i64 {self._row}, i64 {self._sums})"
            )


def _rows(m: int, sizes: Iterable[int]) -> Iterator[tuple[int, int, int]]:
    """Rows of a tile, where the first one begins, and how many tiles there are."""
    first = 0
    for rows in sizes:
        count = (m - first) // rows
        if count:
            yield rows, first, count
        first += rows * count


def _columns(first: int, n: int, most: int, width: int) -> Iterator[tuple[int, int, int, int]]:
    """Vectors of a tile and their width, where the first one begins, and how many there are."""
    vectors = most
    while first < n:
        count = (n - first) // (vectors * width)
        if count:
            yield vectors, width, first, count
            first += count * vectors * width
        vectors, width = (vectors // 2, width) if vectors > 1 else (1, width // 2)


@contextmanager
def _each(code: Code, first: int, step: int, count: int) -> Iterator[str]:
    """Where each of some tiles begins."""
    if count == 1:
        yield str(first)
        return
    with code.loop(str(first), str(first + step * count), step=step) as loop:
        yield loop.index
