"""Loops over arrays whose sizes and strides are known when code is written, in one thread.

Dimensions that all views walk alike are one. What is folded is summed as everywhere: in its own
type within a block, then in double precision.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple

from opdock.plugin import DType, codegen
from opdock_cpu.jit import render
from opdock_cpu.jit.loops import BLOCK
from opdock_cpu.jit.plan import Code, Fold, Loop, long
from opdock_cpu.jit.team import folded

__all__ = ["Access", "nest"]


class Access(NamedTuple):
    """Where an input or a result of a nest is.

    Attributes:
        value: of an input that is one number in a register, that; else the place of the first
            element.
        dtype: the elements' type.
        strides: for each dimension.
        held: whether it is in a register.
        store: writes a value (a name) to a place; of results that are not folded.
        cell: of a result that is folded, where sums are kept meanwhile: 8 bytes for each.
    """

    value: str
    dtype: DType
    strides: tuple[int, ...]
    held: bool = False
    store: Callable[[str, str], None] | None = None
    cell: str = ""


def nest(
    code: Code, part: codegen.Part, shape: Sequence[int], inputs: Sequence[Access],
    results: Sequence[Access],
) -> None:  # fmt: skip
    """Puts the loops of a part, over a shape that may be less than its own."""
    _Nest(code, part, shape, inputs, results).put()


class _Nest:
    """A part as it is written: views are inputs, whole results and cells of folds, in order."""

    def __init__(
        self, code: Code, part: codegen.Part, shape: Sequence[int], inputs: Sequence[Access],
        results: Sequence[Access],
    ) -> None:  # fmt: skip
        self._code, self._line = code, part.line
        self._inputs = inputs
        whole = len(results) - len(part.folds)
        self._whole, self._folded = results[:whole], results[whole:]
        self._folds = [
            Fold(i, "sum" if kind == "mean" else kind, whole + i, access.dtype, ())
            for i, (kind, access) in enumerate(zip(part.folds, self._folded, strict=True))
        ]
        self._kinds = part.folds
        strides = [access.strides for access in (*inputs, *results)]
        self._dims = _merged(shape, strides)
        self._long = long(part.line)
        self._count = math.prod(n for n, _ in self._dims)

    def put(self) -> None:
        """All of it."""
        for i, access in enumerate(self._folded):
            with self._results(i) as loop:
                kind = self._folds[i].far
                nothing = self._folds[i].nothing(kind)
                self._code.store(kind, nothing, self._code.at(kind, access.cell, loop.index), True)
        places = [a.value for a in (*self._inputs, *self._whole)]
        self._walk(0, [*places, *(a.cell for a in self._folded)])
        for i, access in enumerate(self._folded):
            with self._results(i) as loop:
                self._finish(i, access, loop.index)

    def _results(self, fold: int) -> AbstractContextManager[Loop]:
        return self._code.loop("0", str(self._kept(fold)), parallel=True)

    def _kept(self, fold: int) -> int:
        """How many results a fold has."""
        at = len(self._inputs) + len(self._whole) + fold
        return math.prod(n for n, strides in self._dims if strides[at])

    def _finish(self, i: int, access: Access, index: str) -> None:
        """Rounds what was folded."""
        code, fold = self._code, self._folds[i]
        value = code.put_free(f"load {fold.far}, ptr {code.at(fold.far, access.cell, index)}")
        if self._kinds[i] == "mean":
            count = float(self._count // self._kept(i))
            value = code.put(f"fdiv double {value}, {count:e}")
        if fold.far != render.computed(fold.dtype):
            value = code.put(f"fptrunc double {value} to float")
        kind = render.stored_as(fold.dtype)
        code.store(kind, value, code.at(kind, access.value, index), free=True)

    # ------------------------------------------------------------ the walk
    def _walk(self, depth: int, places: Sequence[str]) -> None:
        size, strides = self._dims[depth]
        if depth == len(self._dims) - 1:
            self._row(size, strides, places)
            return
        with self._code.loop("0", str(size)) as loop:
            self._walk(depth + 1, [
                self._moved(i, place, loop.index, stride)
                for i, (place, stride) in enumerate(zip(places, strides, strict=True))
            ])  # fmt: skip

    def _moved(self, view: int, place: str, index: str, stride: int) -> str:
        """The place of what a view has at an index."""
        if not stride:
            return place
        code = self._code
        index = index if stride == 1 else code.put(f"mul i64 {index}, {stride}")
        return code.at(self._stored(view), place, index)

    def _stored(self, view: int) -> str:
        accesses = (*self._inputs, *self._whole)
        if view < len(accesses):
            return render.stored_as(accesses[view].dtype)
        return self._folds[view - len(accesses)].far

    def _row(self, size: int, strides: Sequence[int], places: Sequence[str]) -> None:
        """The innermost loop, and the folds along it."""
        code = self._code
        ready = [
            place if access.held or stride else render.loaded(code.put, access.dtype, place)
            for access, stride, place in zip(self._inputs, strides, places, strict=False)
        ]
        cells = len(self._inputs) + len(self._whole)
        along = [f for f in self._folds if not strides[cells + f.place]]

        def loop(start: str, end: str) -> list[str]:
            first = [(f.near, f.nothing(f.near)) for f in along]
            with code.loop(start, end, first, parallel=True, pairs=self._long) as columns:
                values = self._element(columns.index, strides, places, ready)
                columns.results = [
                    folded(code, f, f.near, part, self._widened(f, values[f.value], f.near))
                    for f, part in zip(along, columns.values, strict=True)
                ]
            return columns.results

        if not along or size <= BLOCK:
            totals = loop("0", str(size))
            self._into(along, [places[cells + f.place] for f in along], totals)
            return
        with code.loop("0", str(size), step=BLOCK) as blocks:
            far = code.put(f"add i64 {blocks.index}, {BLOCK}")
            end = code.put(f"call i64 @llvm.smin.i64(i64 {far}, i64 {size})")
            totals = loop(blocks.index, end)
            self._into(along, [places[cells + f.place] for f in along], totals)

    def _into(self, folds: Sequence[Fold], cells: Sequence[str], values: Sequence[str]) -> None:
        """Folds what a block gave into cells."""
        code = self._code
        for f, cell, value in zip(folds, cells, values, strict=True):
            if f.near != f.far:
                value = code.put(f"fpext {f.near} {value} to {f.far}")
            old = code.put(f"load {f.far}, ptr {cell}")
            code.store(f.far, folded(code, f, f.far, old, value), cell)

    def _element(
        self, index: str, strides: Sequence[int], places: Sequence[str], ready: Sequence[str]
    ) -> list[str]:
        """Loads, computes and stores one element; the values of all results."""
        code, inputs = self._code, {}
        for i, access in enumerate(self._inputs):
            value = ready[i]
            if strides[i] and not access.held:
                place = self._moved(i, places[i], index, strides[i])
                value = render.loaded(code.put_free, access.dtype, place)
            inputs[f"x{i}"] = value
        values = render.body(code.put, self._line, inputs)
        at = len(self._inputs)
        for i, access in enumerate(self._whole):
            place = self._moved(at + i, places[at + i], index, strides[at + i])
            assert access.store is not None
            access.store(values[i], place)
        at += len(self._whole)
        for f in self._folds:
            if strides[at + f.place]:
                view = at + f.place
                place = self._moved(view, places[view], index, strides[view])
                old = code.put_free(f"load {f.far}, ptr {place}")
                value = self._widened(f, values[f.value], f.far)
                code.store(f.far, folded(code, f, f.far, old, value), place, free=True)
        return values

    def _widened(self, fold: Fold, value: str, kind: str) -> str:
        own = render.computed(fold.dtype)
        return value if own == kind else self._code.put(f"fpext {own} {value} to {kind}")


def _merged(
    shape: Sequence[int], strides: Sequence[Sequence[int]]
) -> list[tuple[int, tuple[int, ...]]]:
    """The dimensions, those in one where all views walk alike; at least one."""
    found: list[tuple[int, tuple[int, ...]]] = []
    for d, size in enumerate(shape):
        steps = tuple(s[d] if s else 0 for s in strides)
        if size == 1:
            continue
        if found:
            before, outer = found[-1]
            if all(far == near * size for far, near in zip(outer, steps, strict=True)):
                found[-1] = before * size, steps
                continue
        found.append((size, steps))
    return found or [(1, (0,) * len(strides))]
