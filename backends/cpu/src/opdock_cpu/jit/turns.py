"""Loops of small turns, as generated code that makes many turns in a call.

What goes from turn to turn is in registers if it is one number, and in memory of the caller's
otherwise. A turn first finds out whether it can be made, and only then changes anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np

from opdock.plugin import TURNS, KernelTable, NodeSig, codegen, dtypes, note
from opdock_cpu.jit import llvm, render
from opdock_cpu.jit.compiled import Function, address, caller, ffi, request
from opdock_cpu.jit.mathematics import definition
from opdock_cpu.jit.nests import Access, nest
from opdock_cpu.jit.plan import Code, metadata
from opdock_cpu.jit.products import Tile, multiply
from opdock_cpu.jit.team import ATTRIBUTES

__all__ = ["source", "table"]

table = KernelTable()
_HALVES: Final = frozenset({dtypes.float16, dtypes.bfloat16})


def _lines(turns: codegen.Turns) -> list[Any]:
    parts = (turns.condition, turns.places, *turns.before, *turns.stages)
    return [part.line for part in parts if isinstance(part, codegen.Part)]


def _when(sig: NodeSig) -> bool | str:
    if not llvm.available():
        return llvm.why_not()
    wanted: codegen.Turns = sig.attrs["turns"]
    items = (*wanted.variables, *wanted.arrays, *wanted.pops, *wanted.pushes, *wanted.temporaries)
    types = {item.dtype for item in items}
    types |= {step.dtype for line in _lines(wanted) for step in line.steps}
    if types & _HALVES:
        return "numbers of 16 bits would be rounded less often"
    answers = (*map(render.generated, types), *map(render.renders, _lines(wanted)))
    return next((a for a in answers if a is not True), True)


@table.binder(TURNS, when=_when)
class Turns:
    """The turns of a loop as generated code."""

    def __init__(self, sig: NodeSig) -> None:
        self._turns: codegen.Turns = sig.attrs["turns"]
        note("generated code, many turns a call")

    @cached_property
    def _scratch(self) -> int:
        return _Turn(self._turns).scratch

    @cached_property
    def _function(self) -> Function:
        return request(lambda name: source(name, self._turns))

    @property
    def ready(self) -> bool:
        """Whether the code is there; where it fails to compile, it never is."""
        return self._function.address is not None

    def __call__(
        self, variables: Sequence[Any], arrays: Sequence[codegen.Rows], pops: Sequence[Any],
        pushes: Sequence[Any], most: int,
    ) -> int:  # fmt: skip
        """Makes at most so many turns; returns how many."""
        words = [0, *map(address, variables)]
        for rows in arrays:
            words += [address(rows.values), address(rows.marks), len(rows.values), rows.mark]
        for items in pops:
            words += [address(items), len(items)]
        words += map(address, pushes)
        scratch = np.empty(self._scratch, np.uint8)
        words.append(address(scratch))
        passed, entry = np.array(words, np.int64), self._function.address
        assert entry is not None
        caller(1)(entry)(ffi().from_buffer(passed), most)
        return int(passed[0])


def _whole(part: codegen.Part) -> int:
    """How many results are not folded."""
    return len(part.results) - len(part.folds)


def _bytes(item: codegen.Item) -> int:
    """The memory of a temporary, in whole lines."""
    return -(-int(np.prod(item.shape, dtype=int)) * item.dtype.size // 64) * 64


def _cell_bytes(item: codegen.Item) -> int:
    return -(-int(np.prod(item.shape, dtype=int)) * 8 // 64) * 64


# ---------------------------------------------------------------- the code
def source(entry: str, turns: codegen.Turns) -> str:
    """The module of a loop: `entry(words, most)` makes turns, and says in the first word how many.

    The other words say where the variables, arrays and lists are.
    """
    needed = sorted({need for line in _lines(turns) for need in render.needs(line)})
    parts = [definition(name, kind) for name, kind in needed]
    turn = _Turn(turns)
    function = turn.function(entry)
    parts += [tile.function() for tile in sorted(turn.tiles)]
    return "\n".join([*parts, function, metadata()])


class _Turn:
    """The function of a loop, as it is written.

    Its blocks: `head`, where a turn begins; `take`, when the condition holds; one for each array,
    which looks at the place; `turn`, which makes the turn; `exit`, for whatever ends it all.
    """

    def __init__(self, turns: codegen.Turns) -> None:
        self._turns = turns
        self._code = Code()
        self._values: dict[str, str] = {}
        """What a name stands for: a number, or the place of the first element."""
        self._words = 1
        self._cells: dict[int, list[str]] = {}
        """By the identity of a part, where what it folds is kept meanwhile."""
        self.tiles: set[Tile] = set()
        """The functions that products call."""

    @property
    def scratch(self) -> int:
        """The bytes of temporaries and of what is folded."""
        return sum(size for _, size in self._laid_out())

    def _laid_out(self) -> list[tuple[str, int]]:
        """The names of temporaries, and "" for each fold, with their bytes."""
        turns = self._turns
        found = [(f"s{i}", _bytes(item)) for i, item in enumerate(turns.temporaries)]
        for part in (*turns.before, *turns.stages):
            if isinstance(part, codegen.Part):
                sizes = (_cell_bytes(self._item(r.name)) for r in part.results[_whole(part) :])
                found += [("", size) for size in sizes]
        return found

    def _temporaries(self) -> None:
        """Finds places for what a turn keeps for itself."""
        scratch, offset = self._word("ptr"), 0
        places = []
        for name, size in self._laid_out():
            places.append(self._code.at("i8", scratch, str(offset)))
            if name:
                self._values[name] = places[-1]
            offset += size
        cells = iter(places[len(self._turns.temporaries) :])
        for part in (*self._turns.before, *self._turns.stages):
            if isinstance(part, codegen.Part):
                self._cells[id(part)] = [next(cells) for _ in part.folds]

    def function(self, entry: str) -> str:
        """The whole function."""
        code, turns = self._code, self._turns
        kept = self._variables()
        arrays = [[self._word("ptr"), self._word("ptr"), self._word(), self._word()]
                  for _ in turns.arrays]  # fmt: skip
        pops = [(self._word("ptr"), self._word()) for _ in turns.pops]
        pushes = [self._word("ptr") for _ in turns.pushes]
        self._temporaries()
        for stage in turns.before:
            self._stage(stage, {})
        before = code.here
        code.add("br label %head")
        code.block("head")
        top = len(code.lines)
        self._ask()
        code.block("take")
        for i, ((items, count), item) in enumerate(zip(pops, turns.pops, strict=True)):
            last = code.put(f"sub i64 {count}, 1")
            self._found(f"p{i}", item, items, code.put(f"sub i64 {last}, %k"))
        self._look(arrays)
        for i, (items, item) in enumerate(zip(pushes, turns.pushes, strict=True)):
            self._values[f"l{i}"] = self._element(item, items, "%k")
        left: dict[str, str] = {}
        for stage in turns.stages:
            self._stage(stage, left)
        for i, (_, marks, _, mark) in enumerate(arrays):
            code.store("i8", code.put(f"trunc i64 {mark} to i8"), code.at("i8", marks, f"%i{i}"))
        code.add("br label %next")
        code.block("next")
        code.add("%following = add i64 %k, 1", "br label %head")
        code.lines[top:top] = [f"  %k = phi i64 [0, %{before}], [%following, %next]", *(
            f"  %{name} = phi {render.computed(item.dtype)} [{first}, %{before}],"
            f" [{left.get(name, f'%{name}')}, %next]"
            for name, (item, first, _) in kept.items()
        )]  # fmt: skip
        code.block("exit")
        for name, (item, _, place) in kept.items():
            value = render.stored(code.put, item.dtype, f"%{name}")
            code.store(render.stored_as(item.dtype), value, place)
        code.store("i64", "%k", "%words")
        code.add("ret void")
        return code.function(f"define void @{entry}(ptr %words, i64 %most) {ATTRIBUTES}")

    # ------------------------------------------------------------ what there is
    def _word(self, kind: str = "i64") -> str:
        place = self._code.at("i64", "%words", str(self._words))
        self._words += 1
        return self._code.put(f"load {kind}, ptr {place}")

    def _variables(self) -> dict[str, tuple[codegen.Item, str, str]]:
        """The numbers that change: what they are, where a call begins, and where they are."""
        kept = {}
        for i, item in enumerate(self._turns.variables):
            name, place = f"v{i}", self._word("ptr")
            if item.shape:
                self._values[name] = place
                continue
            first = render.loaded(self._code.put, item.dtype, place)
            self._values[name] = f"%{name}" if item.changes else first
            if item.changes:
                kept[name] = item, first, place
        return kept

    def _element(self, item: codegen.Item, items: str, index: str) -> str:
        """Where an element of many is."""
        offset = self._code.put(f"mul i64 {index}, {int(np.prod(item.shape, dtype=int))}")
        return self._code.at(render.stored_as(item.dtype), items, offset)

    def _found(self, name: str, item: codegen.Item, items: str, index: str) -> None:
        """An element that a turn reads."""
        place = self._element(item, items, index)
        if not item.shape:
            place = render.loaded(self._code.put, item.dtype, place)
        self._values[name] = place

    # ------------------------------------------------------------ whether a turn is made
    def _line(self, part: codegen.Part) -> list[str]:
        """The results of a line of numbers."""
        inputs = {}
        for i, view in enumerate(part.inputs):
            access = self._access(view)
            value = access.value
            if not access.held:
                value = render.loaded(self._code.put, access.dtype, value)
            inputs[f"x{i}"] = value
        return render.body(self._code.put, part.line, inputs)

    def _ask(self) -> None:
        code = self._code
        more = code.put("icmp slt i64 %k, %most")
        more = code.put(f"and i1 {more}, {self._line(self._turns.condition)[0]}")
        code.add(f"br i1 {more}, label %take, label %exit")

    def _look(self, arrays: Sequence[Sequence[str]]) -> None:
        """Leaves, unless each place is one that a turn may read or write."""
        code = self._code
        indices = self._line(self._turns.places)
        for i, ((values, marks, count, _), item) in enumerate(
            zip(arrays, self._turns.arrays, strict=True)
        ):
            code.add(f"%i{i} = sext i32 {indices[i]} to i64")
            inside = code.put(f"icmp ult i64 %i{i}, {count}")
            code.add(f"br i1 {inside}, label %look{i}, label %exit")
            code.block(f"look{i}")
            mark = code.put(f"load i8, ptr {code.at('i8', marks, f'%i{i}')}")
            if item.changes:
                bars = codegen.READ | codegen.CLEARED | (0 if item.adds else codegen.WRITTEN)
                free = code.put(f"icmp eq i8 {code.put(f'and i8 {mark}, {bars}')}, 0")
                self._values[f"t{i}"] = code.put(f"icmp ne i8 {mark}, 0")
                self._values[f"a{i}"] = self._element(item, values, f"%i{i}")
            else:
                there = codegen.WRITTEN | codegen.CLEARED
                free = code.put(f"and i8 {mark}, {there}")
                free = code.put(f"icmp eq i8 {free}, {codegen.WRITTEN}")
            code.add(f"br i1 {free}, label %found{i}, label %exit")
            code.block(f"found{i}")
            if not item.changes:
                self._found(f"a{i}", item, values, f"%i{i}")

    # ------------------------------------------------------------ a turn
    def _stage(self, stage: codegen.Part | codegen.Product, left: dict[str, str]) -> None:
        """One stage; adds the variables that are numbers, as it leaves them."""
        code = self._code
        if isinstance(stage, codegen.Product):
            a, b, c = (self._access(view) for view in (stage.a, stage.b, stage.result))
            kind = render.stored_as(c.dtype)
            self.tiles |= multiply(code, stage, kind, a.value, b.value, c.value)
            return
        inputs = [self._access(view) for view in stage.inputs]
        if stage.shape or stage.folds:
            results = [self._access(view, writes=True) for view in stage.results]
            at = _whole(stage)
            results[at:] = [
                result._replace(cell=cell)
                for result, cell in zip(results[at:], self._cells[id(stage)], strict=True)
            ]
            nest(code, stage, inputs, results)
            return
        for view, value in zip(stage.results, self._line(stage), strict=True):
            name = view.name
            if name[0] == "v" and not self._item(name).shape:
                left[name] = value
            else:
                self._store(name, value, self._access(view).value, free=False)

    def _access(self, view: codegen.View, writes: bool = False) -> Access:
        """Where a view begins."""
        name, item = view.name, self._item(view.name)
        value, code = self._values[name], self._code
        if not item.shape and name[0] != "s" and not (name[0] in "al" and item.changes):
            return Access(value, item.dtype, view.strides, held=name[0] != "l")
        if view.offset:
            value = code.at(render.stored_as(item.dtype), value, str(view.offset))

        def store(result: str, place: str) -> None:
            self._store(name, result, place, free=True)

        return Access(value, item.dtype, view.strides, store=store if writes else None)

    def _item(self, name: str) -> codegen.Item:
        turns = self._turns
        found = {"v": turns.variables, "a": turns.arrays, "p": turns.pops, "l": turns.pushes,
                 "s": turns.temporaries}  # fmt: skip
        return found[name[0]][int(name[1:])]

    def _store(self, name: str, value: str, place: str, free: bool) -> None:
        """Writes a result, or adds it to the element that is there; `free` as `Code.store`."""
        code, item = self._code, self._item(name)
        if item.adds:
            put, kind = code.put_free if free else code.put, render.computed(item.dtype)
            old = render.loaded(put, item.dtype, place)
            add = "fadd" if item.dtype.is_floating else "add"
            total = code.put(f"{add} {kind} {old}, {value}")
            there = self._values[f"t{name[1:]}"]
            value = code.put(f"select i1 {there}, {kind} {total}, {kind} {value}")
        written = render.stored(code.put, item.dtype, value)
        code.store(render.stored_as(item.dtype), written, place, free)
