"""Stretches of small steps as one call of generated code.

There is a function for each kind of stage, and a table that says for each stage which function
computes it, and where: so a hundred equal layers take the code of one. The entry point finds the
arrays by itself, in the objects that it is given, since to ask each array where its elements are
takes longer than most stages.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opdock.plugin import STRETCH, KernelTable, NodeSig, codegen, note
from opdock_cpu.jit import llvm, objects, render
from opdock_cpu.jit.compiled import address, ffi, request
from opdock_cpu.jit.mathematics import definition
from opdock_cpu.jit.nests import Access, nest
from opdock_cpu.jit.places import Places, views, whole
from opdock_cpu.jit.plan import Code, metadata
from opdock_cpu.jit.products import Tile, multiply
from opdock_cpu.jit.staged import Staged
from opdock_cpu.jit.team import ATTRIBUTES

__all__ = ["source", "table"]

table = KernelTable()
Array = np.ndarray[Any, Any]
Stage = codegen.Part | codegen.Product


def _lines(stretch: codegen.Stretch) -> list[Any]:
    """The lines of its parts, each once."""
    found = {id(s.line): s.line for s in stretch.stages if isinstance(s, codegen.Part)}
    return list(found.values())


def _when(sig: NodeSig) -> bool | str:
    if not llvm.available():
        return llvm.why_not()
    if (why := objects.why_not()) is not None:
        return why
    stretch: codegen.Stretch = sig.attrs["stretch"]
    items = (*stretch.inputs, *stretch.results, *stretch.temporaries)
    answers = map(render.generated, {item.dtype for item in items})
    lines = map(render.renders, _lines(stretch))
    return next((a for a in (*answers, *lines) if a is not True), True)


# ---------------------------------------------------------------- the kernel
@table.binder(STRETCH, when=_when, out=True)
def stretch(sig: NodeSig) -> Callable[..., Any]:
    """The stretch as generated code; NumPy serves until it is there."""
    return _Stretch(sig.attrs["stretch"])


class _Stretch:
    """A stretch that is bound: any number of threads may call it."""

    def __init__(self, stretch: codegen.Stretch) -> None:
        places = Places(stretch)
        models, found = kinds(stretch)
        self._function = request(lambda name: source(name, stretch, models))
        self._words = np.array(places.words(found), np.int64)
        self._outs = [(i.shape, i.dtype.np) for i in stretch.results]
        self._ins = [(i.shape, i.dtype.np) for i in stretch.inputs]
        self._scratch = places.scratch
        self._free: list[Array] = []  # memory for what stages compute for each other
        self._plain = Staged(stretch)
        self._call: Callable[[int], int] | None = None
        note(f"generated code, {len(stretch.stages)} stages a call")

    def __call__(self, *args: Any) -> Any:
        """The results: one array, or a tuple; the last argument says where they may go."""
        out, shapes = args[-1], self._outs
        if len(shapes) == 1:
            results = [np.empty(*shapes[0]) if out is None else out]
        elif out is None:
            results = [np.empty(*s) for s in shapes]
        else:
            results = [np.empty(*s) if o is None else o for s, o in zip(shapes, out, strict=True)]
        if self._call is None:
            if self._function.address is None:
                self._plain(args[:-1], results)
                return results[0] if len(results) == 1 else tuple(results)
            self._call = self._bound()
        try:
            scratch = self._free.pop()
        except IndexError:
            scratch = np.empty(self._scratch, np.uint8)
        passed = [scratch, *args[:-1], *results]
        if self._call(id(passed)):
            self._slowly(scratch, args[:-1], results)
        self._free.append(scratch)
        return results[0] if len(results) == 1 else tuple(results)

    def _slowly(self, scratch: Array, args: Sequence[Any], results: Sequence[Array]) -> None:
        """The same where something is a number, or its elements do not lie in a row."""
        assert self._call is not None
        types = (dtype for _, dtype in self._ins)
        given = [np.ascontiguousarray(a, t) for a, t in zip(args, types, strict=True)]
        made = [np.empty(*s) for s in self._outs]
        passed = [scratch, *given, *made]
        self._call(id(passed))
        for result, value in zip(results, made, strict=True):
            result[...] = value

    def _bound(self) -> Callable[[int], int]:
        count = 1 + len(self._ins) + len(self._outs)
        place = self._function.address
        assert place is not None
        call = _caller()(place)
        words, length, kind = address(self._words), len(self._words), objects.kind()
        return lambda passed: call(passed, count, words, length, kind)


@functools.cache
def _caller() -> Callable[[int], Any]:
    """Makes an address callable with five numbers, for a number."""
    import _cffi_backend as cffi

    number = cffi.new_primitive_type("int64_t")
    kind = cffi.new_function_type((number,) * 5, number)
    return lambda place: ffi().cast(kind, place)


# ---------------------------------------------------------------- the code
def kinds(stretch: codegen.Stretch) -> tuple[list[Stage], list[int]]:
    """A stage of each kind, and for each stage which kind it is."""
    known: dict[Any, int] = {}
    lines: dict[int, Any] = {}
    models: list[Stage] = []
    found = []
    dtypes = {}
    for kind, items in (("x", stretch.inputs), ("y", stretch.results), ("s", stretch.temporaries)):
        for i, item in enumerate(items):
            dtypes[f"{kind}{i}"] = item.dtype._enum
    for stage in stretch.stages:
        taken = tuple([(v.strides, dtypes[v.name]) for v in views(stage)])
        key = stage.shape, taken, _line(stage, lines)
        place = known.setdefault(key, len(models))
        if place == len(models):
            models.append(stage)
        found.append(place)
    return models, found


def _line(stage: Stage, known: dict[int, Any]) -> Any:
    """All that the code of a stage depends on but for what it reads and writes."""
    if isinstance(stage, codegen.Product):
        return None
    key = known.get(id(stage.line))
    if key is None:
        # 1, 1.0 and True are equal and not the same number, and neither are zeros of both signs.
        key = known[id(stage.line)] = (
            tuple([(s.op, s.args, s.dtype._enum, type(s.value), repr(s.value))
                   for s in stage.line.steps]), stage.line.results,
        )  # fmt: skip
    return key, stage.folds


def source(entry: str, stretch: codegen.Stretch, models: Sequence[Stage]) -> str:
    """The module of a stretch: `entry(list, count, words, count, array type)`.

    In the list are arrays: scratch memory, inputs, results. The words are for each stage its kind,
    and for each of its views which array it is of and where there; then those of its folds. It
    returns 0, or 1 where something is no array whose elements lie in a row: nothing is done then.
    """
    needed = sorted({need for line in _lines(stretch) for need in render.needs(line)})
    tiles: set[Tile] = set()
    functions = [_stage(f"k{i}", stretch, stage, tiles) for i, stage in enumerate(models)]
    parts = [definition(name, kind) for name, kind in needed]
    parts += [tile.function() for tile in sorted(tiles)]
    return "\n".join([*parts, *functions, _entry(entry, len(models)), metadata()])


def _stage(name: str, stretch: codegen.Stretch, stage: Stage, tiles: set[Tile]) -> str:
    """The function of a kind of stage: of the arrays and its words, to those of the next."""
    code = Code()
    words = iter(range(1, 1 << 20, 2))

    def place() -> str:
        at = next(words)
        which = code.put(f"load i64, ptr {code.at('i64', '%words', str(at))}")
        base = code.put(f"load ptr, ptr {code.at('ptr', '%arrays', which)}")
        offset = code.put(f"load i64, ptr {code.at('i64', '%words', str(at + 1))}")
        return code.at("i8", base, offset)

    def access(view: codegen.View) -> Access:
        dtype = whole(stretch, view.name).dtype

        def store(value: str, to: str) -> None:
            written = render.stored(code.put, dtype, value)
            code.store(render.stored_as(dtype), written, to, free=True)

        return Access(place(), dtype, view.strides, store=store)

    found = [access(view) for view in views(stage)]
    if isinstance(stage, codegen.Product):
        a, b, c = found
        tiles |= multiply(code, stage, render.stored_as(c.dtype), a.value, b.value, c.value)
    else:
        inputs, results = found[: len(stage.inputs)], found[len(stage.inputs) :]
        at = len(results) - len(stage.folds)
        results[at:] = [result._replace(cell=place()) for result in results[at:]]
        nest(code, stage, inputs, results)
    code.add(f"ret ptr {code.at('i64', '%words', str(next(words)))}")
    return code.function(
        f"define internal ptr @{name}(ptr %arrays, ptr %words) noinline {ATTRIBUTES}"
    )


def _entry(name: str, count: int) -> str:
    code = Code()
    code.add("%list = inttoptr i64 %from to ptr", "%first = inttoptr i64 %table to ptr",
             "%arrays = alloca ptr, i64 %count")  # fmt: skip
    end = code.at("i64", "%first", "%length")
    listed = objects.items(code, "%list")
    with code.loop("0", "%count") as each:
        thing = code.put(f"load ptr, ptr {code.at('ptr', listed, each.index)}")
        elements = objects.memory(code, thing, "odd", "found")
        code.store("ptr", elements, code.at("ptr", "%arrays", each.index))
    code.add("br label %head")
    before = code.here
    code.block("head")
    # What follows the words of a stage are those of the next.
    code.add("%words = phi ptr " + ", ".join(
        [f"[%first, %{before}]", *(f"[%next{i}, %do{i}]" for i in range(count))]
    ))  # fmt: skip
    code.add(f"%more = icmp ult ptr %words, {end}", "br i1 %more, label %take, label %out")
    code.block("take")
    kind = code.put("load i64, ptr %words")
    cases = " ".join(f"i64 {i}, label %do{i}" for i in range(count))
    code.add(f"switch i64 {kind}, label %out [{cases}]")
    for i in range(count):
        code.block(f"do{i}")
        code.add(f"%next{i} = call ptr @k{i}(ptr %arrays, ptr %words)", "br label %head")
    code.block("out")
    code.add("ret i64 0")
    code.block("odd")
    code.add("ret i64 1")
    head = (f"define i64 @{name}(i64 %from, i64 %count, i64 %table, i64 %length, i64 %array)"
            f" {ATTRIBUTES}")  # fmt: skip
    return code.function(head)
