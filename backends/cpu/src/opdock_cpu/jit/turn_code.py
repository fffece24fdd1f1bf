"""The functions of loops of small turns, as LLVM assembly."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from opdock.plugin import codegen
from opdock_cpu.jit import render
from opdock_cpu.jit.nests import Access, nest
from opdock_cpu.jit.plan import Code
from opdock_cpu.jit.products import Tile, laid_out, lay_out, multiply
from opdock_cpu.jit.team import ATTRIBUTES

__all__ = ["FIXED", "Begin", "Count", "Left", "Scratch", "Share", "Turn"]

FIXED: Final = 3
"""Words before those of the variables: how many turns, the crew's call, scratch memory."""
_LINE: Final = 64


def _whole(part: codegen.Part) -> int:
    """How many results are not folded."""
    return len(part.results) - len(part.folds)


class Scratch:
    """Where a loop keeps what is nobody else's.

    Attributes:
        size: how many bytes it takes.
        places: where what begins: temporaries by their names; by "panels" and the identity of a
            product its right matrix, laid out; by the identity of a part and a number what it
            folds; by "after" and a name where a number that changes is left.
    """

    def __init__(self, turns: codegen.Turns) -> None:
        self.size = 0
        self.places: dict[Any, int] = {}
        for i, item in enumerate(turns.temporaries):
            self._add(f"s{i}", math.prod(item.shape) * item.dtype.size)
        for part in (*turns.before, *turns.stages):
            if isinstance(part, codegen.Part):
                for i, view in enumerate(part.results[_whole(part) :]):
                    shape = turns.temporaries[int(view.name[1:])].shape
                    self._add((id(part), i), math.prod(shape) * 8)
        for stage in turns.stages:
            if isinstance(stage, codegen.Product):
                dtype = turns.temporaries[int(stage.result.name[1:])].dtype
                self._add(("panels", id(stage)), laid_out(stage, render.stored_as(dtype)))
        for i, item in enumerate(turns.variables):
            if item.changes and not item.shape:
                self._add(("after", f"v{i}"), item.dtype.size)

    def _add(self, key: Any, size: int) -> None:
        if size:
            self.places[key] = self.size
            self.size += -(-size // _LINE) * _LINE


# ---------------------------------------------------------------- functions
class _Writer:
    """A function of a loop, as it is written: what all of them have in common."""

    def __init__(self, turns: codegen.Turns, code: Code | None = None) -> None:
        self._turns = turns
        self._code = code or Code()
        self._values: dict[str, str] = {}
        """What a name stands for: a number, or the place of the first element."""
        self._words = FIXED
        self._scratch = Scratch(turns)
        self._memory = ""
        self.tiles: set[Tile] = set()
        """The functions that products call."""

    # ------------------------------------------------------------ what there is
    def _word(self, kind: str = "i64", at: int | None = None) -> str:
        if at is None:
            at, self._words = self._words, self._words + 1
        return self._code.put(f"load {kind}, ptr {self._code.at('i64', '%words', str(at))}")

    def _kept(self, key: Any) -> str:
        """A place in scratch memory."""
        return self._code.at("i8", self._memory, str(self._scratch.places[key]))

    def _variables(self) -> dict[str, tuple[codegen.Item, str, str]]:
        """Finds scratch memory and variables.

        Returns:
            The numbers that change: what they are, where a call begins, and where they are.
        """
        self._memory = self._word("ptr", FIXED - 1)
        for i, _ in enumerate(self._turns.temporaries):
            self._values[f"s{i}"] = self._kept(f"s{i}")
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
        offset = self._code.put(f"mul i64 {index}, {math.prod(item.shape)}")
        return self._code.at(render.stored_as(item.dtype), items, offset)

    def _found(self, name: str, item: codegen.Item, items: str, index: str) -> None:
        """An element that a turn reads."""
        place = self._element(item, items, index)
        if not item.shape:
            place = render.loaded(self._code.put, item.dtype, place)
        self._values[name] = place

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

    # ------------------------------------------------------------ what is computed
    def _stage(self, stage: codegen.Part | codegen.Product, left: dict[str, str]) -> None:
        """One stage; adds the variables that are numbers, as it leaves them."""
        code = self._code
        if isinstance(stage, codegen.Product):
            self._product(stage)
            return
        inputs = [self._access(view) for view in stage.inputs]
        if stage.shape or stage.folds:
            results = [self._access(view, writes=True) for view in stage.results]
            at = _whole(stage)
            results[at:] = [
                # Each has room for 8 bytes, whatever is folded there.
                result._replace(cell=self._from("i64", self._kept((id(stage), i)), row))
                for i, result in enumerate(results[at:])
                for row in result.strides[:1]
            ]
            nest(code, stage, self._walked(stage.shape), inputs, results)
            return
        for view, value in zip(stage.results, self._line(stage), strict=True):
            name = view.name
            if name[0] == "v" and not self._item(name).shape:
                left[name] = value
            else:
                self._put(name, value, view)

    def _put(self, name: str, value: str, view: codegen.View) -> None:
        """Writes one number into memory."""
        self._store(name, value, self._access(view).value, free=False)

    def _product(self, stage: codegen.Product) -> None:
        a, c = self._access(stage.a), self._access(stage.result)
        kind, rows = render.stored_as(c.dtype), ""
        if ("panels", id(stage)) in self._scratch.places:
            rows = self._kept(("panels", id(stage)))
        b = self._access(stage.b, steady=True)
        m, n, k = stage.shape
        here = replace(stage, shape=(self._walked((m,))[0], n, k))
        self.tiles |= multiply(self._code, here, kind, a.value, b.value, c.value, rows)

    def _walked(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """What of a shape is computed here: all of it."""
        return shape

    def _access(self, view: codegen.View, writes: bool = False, steady: bool = False) -> Access:
        """Where a view begins; `steady`: it has no rows, whatever its first dimension is."""
        name, item = view.name, self._item(view.name)
        value, code = self._values[name], self._code
        if not item.shape and name[0] != "s" and not (name[0] in "al" and item.changes):
            return Access(value, item.dtype, view.strides, held=name[0] != "l")
        if view.offset:
            value = code.at(render.stored_as(item.dtype), value, str(view.offset))
        if view.strides and view.strides[0] and not steady:
            value = self._from(render.stored_as(item.dtype), value, view.strides[0])

        def store(result: str, place: str) -> None:
            self._store(name, result, place, free=True)

        return Access(value, item.dtype, view.strides, store=store if writes else None)

    def _from(self, kind: str, place: str, row: int) -> str:
        """The first place that is computed here; rows are so far apart."""
        return place

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


class Begin(_Writer):
    """`begin(words)`: what is the same in all turns."""

    def function(self) -> str:
        """It."""
        code = self._code
        self._variables()
        for stage in self._turns.before:
            self._stage(stage, {})
        for stage in self._turns.stages:
            if isinstance(stage, codegen.Product) and ("panels", id(stage)) in self._scratch.places:
                b = self._access(stage.b)
                to = self._kept(("panels", id(stage)))
                lay_out(code, stage, render.stored_as(b.dtype), b.value, to)
        code.add("ret void")
        return code.function(f"define internal void @begin(ptr %words) {ATTRIBUTES}")


class Left(_Writer):
    """Numbers that change, which `Count` has left in scratch memory, to where they belong."""

    def put(self) -> None:
        """All of them."""
        for name, (item, _, place) in self._variables().items():
            kind = render.stored_as(item.dtype)
            value = self._code.put(f"load {kind}, ptr {self._kept(('after', name))}")
            self._code.store(kind, value, place)


class Turn(_Writer):
    """`turn(words, most)`: turns, one after the other.

    Its blocks: `head`, where a turn begins; `take`, when the condition holds; one for each array,
    which looks at the place; `next`, after a turn; `exit`, for whatever ends it all.
    """

    _HEAD = "@turn(ptr %words, i64 %most)"

    def function(self) -> str:
        """It."""
        code, turns = self._code, self._turns
        kept = self._variables()
        arrays = [[self._word("ptr"), self._word("ptr"), self._word(), self._word()]
                  for _ in turns.arrays]  # fmt: skip
        pops = [(self._word("ptr"), self._word()) for _ in turns.pops]
        pushes = [self._word("ptr") for _ in turns.pushes]
        self._ready()
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
            self._turned(stage, left)
        self._mark(arrays)
        code.add("br label %next")
        code.block("next")
        code.add("%following = add i64 %k, 1", "br label %head")
        code.lines[top:top] = [f"  %k = phi i64 [0, %{before}], [%following, %next]", *(
            f"  %{name} = phi {render.computed(item.dtype)} [{first}, %{before}],"
            f" [{left.get(name, f'%{name}')}, %next]"
            for name, (item, first, _) in kept.items()
        )]  # fmt: skip
        code.block("exit")
        self._leave(kept)
        code.add("ret void")
        return code.function(f"define internal void {self._HEAD} {ATTRIBUTES}")

    def _ready(self) -> None:
        """Before the first turn."""

    def _turned(self, stage: codegen.Part | codegen.Product, left: dict[str, str]) -> None:
        self._stage(stage, left)

    def _leave(self, kept: dict[str, tuple[codegen.Item, str, str]]) -> None:
        """Stores the numbers that change, and how many turns there were."""
        code = self._code
        for name, (item, _, place) in kept.items():
            value = render.stored(code.put, item.dtype, f"%{name}")
            code.store(render.stored_as(item.dtype), value, self._after(name, place))
        code.store("i64", "%k", "%words")

    def _after(self, name: str, place: str) -> str:
        """Where a number that changes is left."""
        return place

    def _ask(self) -> None:
        """Leaves, unless there is another turn."""
        code = self._code
        more = code.put("icmp slt i64 %k, %most")
        more = code.put(f"and i1 {more}, {self._line(self._turns.condition)[0]}")
        code.add(f"br i1 {more}, label %take, label %exit")

    def _look(self, arrays: Sequence[Sequence[str]]) -> None:
        """Leaves, unless each place is one that a turn may read or write."""
        code = self._code
        for i, ((values, marks, count, _), item) in enumerate(self._indexed(arrays)):
            inside = code.put(f"icmp ult i64 %i{i}, {count}")
            code.add(f"br i1 {inside}, label %look{i}, label %exit")
            code.block(f"look{i}")
            mark = code.put(f"load i8, ptr {code.at('i8', marks, f'%i{i}')}")
            if item.changes:
                bars = codegen.READ | codegen.CLEARED | (0 if item.adds else codegen.WRITTEN)
                free = code.put(f"icmp eq i8 {code.put(f'and i8 {mark}, {bars}')}, 0")
                self._values[f"t{i}"] = code.put(f"icmp ne i8 {mark}, 0")
            else:
                there = codegen.WRITTEN | codegen.CLEARED
                free = code.put(f"and i8 {mark}, {there}")
                free = code.put(f"icmp eq i8 {free}, {codegen.WRITTEN}")
            code.add(f"br i1 {free}, label %found{i}, label %exit")
            code.block(f"found{i}")
            self._take(i, item, values)

    def _indexed(self, arrays: Sequence[Sequence[str]]) -> Iterator[tuple[Sequence[str], Any]]:
        """Each array, when its index is there."""
        indices = self._line(self._turns.places)
        for i, (array, item) in enumerate(zip(arrays, self._turns.arrays, strict=True)):
            self._code.add(f"%i{i} = sext i32 {indices[i]} to i64")
            yield array, item

    def _take(self, i: int, item: codegen.Item, values: str) -> None:
        """The element that a turn reads or writes."""
        if item.changes:
            self._values[f"a{i}"] = self._element(item, values, f"%i{i}")
        else:
            self._found(f"a{i}", item, values, f"%i{i}")

    def _mark(self, arrays: Sequence[Sequence[str]]) -> None:
        code = self._code
        for i, (_, marks, _, mark) in enumerate(arrays):
            code.store("i8", code.put(f"trunc i64 {mark} to i8"), code.at("i8", marks, f"%i{i}"))


class Count(Turn):
    """The same, but of the numbers alone that decide which turns there are."""

    def _turned(self, stage: codegen.Part | codegen.Product, left: dict[str, str]) -> None:
        if not stage.shape:
            self._stage(stage, left)

    def _after(self, name: str, place: str) -> str:
        return self._kept(("after", name))

    def _take(self, i: int, item: codegen.Item, values: str) -> None:
        """The element; where none is there to add to, zeros are, so that shares only add."""
        super()._take(i, item, values)
        if item.adds:
            size = math.prod(item.shape) * item.dtype.size
            left = self._code.put(f"select i1 {self._values[f't{i}']}, i64 0, i64 {size}")
            place = self._values[f"a{i}"]
            self._code.add(
                f"call void @llvm.memset.p0.i64(ptr {place}, i8 0, i64 {left}, i1 false)"
            )


class Share(Turn):
    """`share(args, share, shares)`: all turns that there are, of some rows.

    Args:
        turns: the loop.
        rows: how many rows a share has.
    """

    _HEAD = "@share(ptr %args, i64 %share, i64 %shares)"

    def __init__(self, turns: codegen.Turns, rows: int) -> None:
        super().__init__(turns)
        self._rows = rows
        self._code.add("%words = load ptr, ptr %args")

    def _ready(self) -> None:
        self._code.add(f"%row = mul i64 %share, {self._rows}", "%made = load i64, ptr %words")

    def _ask(self) -> None:
        self._code.add("%more = icmp slt i64 %k, %made",
                       "br i1 %more, label %take, label %exit")  # fmt: skip

    def _look(self, arrays: Sequence[Sequence[str]]) -> None:
        for i, (array, item) in enumerate(self._indexed(arrays)):
            self._take(i, item, array[0])
            self._values[f"t{i}"] = "true"

    def _mark(self, arrays: Sequence[Sequence[str]]) -> None:
        """Who counted has done so."""

    def _put(self, name: str, value: str, view: codegen.View) -> None:
        """That too."""

    def _leave(self, kept: dict[str, tuple[codegen.Item, str, str]]) -> None:
        """Others may yet begin with the numbers as they were."""

    def _walked(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return (self._rows, *shape[1:]) if shape else shape

    def _from(self, kind: str, place: str, row: int) -> str:
        return self._code.at(kind, place, self._code.put(f"mul i64 %row, {row}"))
