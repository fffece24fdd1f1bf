"""A cluster as a module of LLVM assembly: loops around the line's body, in shares.

`@core` computes a block of rows and columns. What is folded along a row is folded in blocks: in its
own type within a block, then in double precision. What is folded across rows goes into scratch
memory of the share, in bands of rows if it is a value for each column; the shares' folds are
folded at the end (`team.py`).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Final

from opdock.plugin import DType
from opdock_cpu.jit import render
from opdock_cpu.jit.mathematics import definition
from opdock_cpu.jit.plan import Code, Fold, Layout, Plan, long, metadata
from opdock_cpu.jit.team import ATTRIBUTES, entry_point, finished, folded, pointers, share

__all__ = ["BLOCK", "module"]

BLOCK: Final = 1024
"""Elements of a row summed in their own type before they are added in double precision."""
BAND: Final = 16
"""The same for the elements of a column, which are added up one by one."""


@functools.lru_cache(maxsize=128)
def module(
    entry: str, line: Any, names: tuple[str, ...], inputs: tuple[DType, ...],
    outputs: tuple[DType, ...], layout: Layout, kinds: tuple[str, ...] = (),
) -> str:  # fmt: skip
    """The assembly of a cluster, written once for all that are alike.

    Its entry point takes a pointer for each input and each output, then scratch memory for the
    shares' folds (doubles), `Plan.sizes` (int64), and the address of the words of a call, which
    say how many shares there are and who computes them. A result that is not folded may lie where
    an input of its type lies that varies along all dimensions.

    Args:
        entry: the name of the entry point.
        line: the typed steps.
        names, inputs: the inputs' names and types.
        outputs: the results' types; the last ones are folded, one for each of `kinds`.
        layout: how memory is walked.
        kinds: the folds: "sum", "mean", "max", "min" or "prod" each.
    """
    plan = Plan(line, names, inputs, outputs, layout, kinds)
    parts = [definition(name, kind) for name, kind in sorted(render.needs(line))]
    parts += [_core(plan), share(plan), entry_point(plan, entry)]
    return "\n".join([*parts, metadata()])


# ---------------------------------------------------------------- the loops
def _core(plan: Plan) -> str:
    code = Code()
    sizes = [code.size(d) for d in range(plan.layout.rank)]
    some = code.put("icmp slt i64 %r0, %r1")
    some = code.put(f"and i1 {some}, {code.put('icmp slt i64 %c0, %c1')}")
    code.add(f"br i1 {some}, label %start, label %done")
    code.block("start")
    banded = [f for f in plan.shared if f.banded]
    with code.loop("%r0", "%r1", step=BAND) as bands:
        end = _end(code, bands.index, BAND, "%r1")
        with code.loop(bands.index, end) as rows:
            _row(code, plan, sizes, rows.index)
        for fold in banded:
            _flushed(code, fold)
    code.add("br label %done")
    code.block("done")
    code.add("ret void")
    names = [f"ptr %{p}" for p in pointers(plan)]
    own = [f"ptr noalias %mine{f.place}" for f in plan.shared]
    own += [f"ptr noalias %band{f.place}" for f in banded]
    params = ", ".join([*names, "ptr noalias %sizes", *own])
    bounds = "i64 %r0, i64 %r1, i64 %c0, i64 %c1"
    return code.function(f"define internal void @core({params}, {bounds}) {ATTRIBUTES}")


def _end(code: Code, start: str, step: int, last: str) -> str:
    far = code.put(f"add i64 {start}, {step}")
    return code.put(f"call i64 @llvm.smin.i64(i64 {far}, i64 {last})")


def _flushed(code: Code, fold: Fold) -> None:
    """Folds a band into the share's results, and starts another."""
    with code.loop("%c0", "%c1", parallel=True) as columns:
        place = code.at(fold.near, f"%band{fold.place}", columns.index)
        value = code.put_free(f"load {fold.near}, ptr {place}")
        code.store(fold.near, fold.nothing(fold.near), place, free=True)
        cell = code.at(fold.far, f"%mine{fold.place}", columns.index)
        _into_cell(code, fold, fold.far, cell, _widened(code, fold.near, fold.far, value), True)


class _Row:
    """What is known when a row starts.

    Attributes:
        inputs: for each input its first element's place, or its value if it is one for the row.
        base: the place of the row's first element in a whole result.
        cells: for each shared fold, where this row's results start.
    """

    def __init__(self, code: Code, plan: Plan, sizes: list[str], row: str) -> None:
        self._code, self._sizes, self._row = code, sizes, row
        layout = plan.layout
        patterns = [*layout.varies, *(f.kept for f in plan.shared)]
        self._indices = self._split(patterns)
        self.base = code.put(f"mul i64 {row}, {sizes[-1]}")
        self.inputs = []
        for i, (dtype, varies) in enumerate(zip(plan.inputs, layout.varies, strict=True)):
            place = self._place(render.stored_as(dtype), f"%x{i}", varies)
            value = place if varies[-1] else render.loaded(code.put, dtype, place)
            self.inputs.append(value)
        self.cells = {
            f.place: self._place(f.cell, f"%{'band' if f.banded else 'mine'}{f.place}", f.kept)
            for f in plan.shared
        }

    def _split(self, patterns: Sequence[tuple[bool, ...]]) -> dict[int, str]:
        """The index along each outer dimension, where some of them are left out somewhere."""
        if all(all(p[:-1]) or not any(p[:-1]) for p in patterns):
            return {}
        code, rest, indices = self._code, self._row, {}
        for d in range(len(self._sizes) - 2, 0, -1):
            indices[d] = code.put(f"urem i64 {rest}, {self._sizes[d]}")
            rest = code.put(f"udiv i64 {rest}, {self._sizes[d]}")
        indices[0] = rest
        return indices

    def _place(self, kind: str, pointer: str, varies: tuple[bool, ...]) -> str:
        """The first element of the row in an array that does not vary along all dimensions."""
        code, outer = self._code, varies[:-1]
        if not any(outer):
            return pointer
        offset = self._row if all(outer) else ""
        for d in range(len(outer)) if not offset else ():
            if outer[d]:
                scaled = code.put(f"mul i64 {offset}, {self._sizes[d]}") if offset else ""
                index = self._indices[d]
                offset = code.put(f"add i64 {scaled}, {index}") if offset else index
        if varies[-1]:
            offset = code.put(f"mul i64 {offset}, {self._sizes[-1]}")
        return code.at(kind, pointer, offset)


def _row(code: Code, plan: Plan, sizes: list[str], row: str) -> None:
    here = _Row(code, plan, sizes, row)
    along = [f for f in plan.folds if f.by_rows]
    if not along:
        with code.loop("%c0", "%c1", parallel=True, pairs=long(plan.line)) as columns:
            _element(code, plan, here, columns.index)
        return
    nothing = [(f.far, f.nothing(f.far)) for f in along]
    with code.loop("%c0", "%c1", nothing, step=BLOCK) as blocks:
        end = _end(code, blocks.index, BLOCK, "%c1")
        first = [(f.near, f.nothing(f.near)) for f in along]
        with code.loop(blocks.index, end, first, parallel=True) as columns:
            values = _element(code, plan, here, columns.index)
            columns.results = [
                folded(code, f, f.near, part, _as(code, f, values[f.value], f.near))
                for f, part in zip(along, columns.values, strict=True)
            ]
        blocks.results = [
            folded(code, f, f.far, total, _widened(code, f.near, f.far, part))
            for f, total, part in zip(along, blocks.values, columns.results, strict=True)
        ]
    for f, total in zip(along, blocks.results, strict=True):
        if f.shared:
            _into_cell(code, f, f.far, here.cells[f.place], total)
        else:
            finished(code, plan, f, total, row)


def _element(code: Code, plan: Plan, here: _Row, column: str) -> list[str]:
    """Loads, computes and stores one element; the values of all results."""
    inputs = {}
    for i, (name, dtype) in enumerate(zip(plan.names, plan.inputs, strict=True)):
        value = here.inputs[i]
        if plan.layout.varies[i][-1]:
            place = code.at(render.stored_as(dtype), value, column)
            value = render.loaded(code.put_free, dtype, place)
        inputs[name] = value
    values = render.body(code.put, plan.line, inputs)
    if plan.whole:
        at = code.put(f"add i64 {here.base}, {column}")
        for i in range(plan.whole):
            kind = render.stored_as(plan.outputs[i])
            value = render.stored(code.put, plan.outputs[i], values[i])
            code.store(kind, value, code.at(kind, f"%y{i}", at), free=True)
    for f in plan.folds:
        if not f.by_rows:
            cell = code.at(f.cell, here.cells[f.place], column)
            _into_cell(code, f, f.cell, cell, _as(code, f, values[f.value], f.cell), free=True)
    return values


def _into_cell(
    code: Code, fold: Fold, kind: str, cell: str, value: str, free: bool = False
) -> None:  # fmt: skip
    """Folds a value into one in scratch memory, both of an LLVM type."""
    put = code.put_free if free else code.put
    old = put(f"load {kind}, ptr {cell}")
    code.store(kind, folded(code, fold, kind, old, value), cell, free)


def _as(code: Code, fold: Fold, value: str, kind: str) -> str:
    return _widened(code, render.computed(fold.dtype), kind, value)


def _widened(code: Code, old: str, new: str, value: str) -> str:
    return value if old == new else code.put(f"fpext {old} {value} to {new}")
