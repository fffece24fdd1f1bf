"""Small products of matrices inside of generated code: tiles that are summed up in registers.

A tile is some rows by some vectors of columns. For each step of the sum it loads the vectors of the
right matrix once, and multiplies them by one number for each row of the left one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from opdock.plugin import codegen
from opdock_cpu.jit.plan import Code
from opdock_cpu.jit.team import ATTRIBUTES

__all__ = ["Tile", "multiply"]

_WIDTH: Final = {"float": 8, "double": 4}
"""Numbers of a vector."""
_VECTORS: Final = {4: 2, 2: 4, 1: 8}
"""By the rows of a tile, its most vectors: all sums stay in sixteen registers."""


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


def multiply(
    code: Code, product: codegen.Product, kind: str, a: str, b: str, c: str
) -> set[Tile]:  # fmt: skip
    """Puts a product; the tiles that it calls.

    Args:
        code: what the product is part of.
        product: its sizes and strides; `b` has its columns side by side.
        kind: the LLVM type of a number.
        a, b, c: where the matrices lie.
    """
    m, n, k = product.shape
    row_a, sum_a = product.a.strides
    row_b, row_c = product.b.strides[0], product.result.strides[0]
    used = set()
    for rows, first, count in _rows(m):
        for vectors, width, left, times in _columns(n, _VECTORS[rows], _WIDTH[kind]):
            tile = Tile(kind, rows, vectors, width)
            used.add(tile)
            with _each(code, first, rows, count) as row:
                ours = code.at(kind, a, code.put(f"mul i64 {row}, {row_a}"))
                out = code.at(kind, c, code.put(f"mul i64 {row}, {row_c}"))
                with _each(code, left, tile.columns, times) as column:
                    theirs, to = (code.at(kind, of, column) for of in (b, out))
                    code.add(
                        f"call void @{tile.name}(ptr {ours}, i64 {row_a}, i64 {sum_a},"
                        f" ptr {theirs}, i64 {row_b}, ptr {to}, i64 {row_c}, i64 {k})"
                    )
    return used


def _rows(m: int) -> Iterator[tuple[int, int, int]]:
    """Rows of a tile, where the first one begins, and how many tiles there are."""
    first = 0
    for rows in _VECTORS:
        count = (m - first) // rows
        if count:
            yield rows, first, count
        first += rows * count


def _columns(n: int, most: int, width: int) -> Iterator[tuple[int, int, int, int]]:
    """Vectors of a tile and their width, where the first one begins, and how many there are."""
    first, vectors = 0, most
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
