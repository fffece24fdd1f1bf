"""Loops of small turns, as generated code that makes many turns in a call.

What goes from turn to turn is in registers if it is one number, and in memory of the caller's
otherwise. A turn first finds out whether it can be made, and only then changes anything.

Where the rows of what is computed go their ways apart, threads share them. Then all turns are found
out first, by the numbers that they depend on, and each share makes them for its own rows.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np

from opdock.plugin import TURNS, KernelTable, NodeSig, codegen, dtypes, note
from opdock_cpu.crew import Loop, why_none
from opdock_cpu.jit import llvm, render
from opdock_cpu.jit.compiled import Function, address, caller, ffi, request
from opdock_cpu.jit.mathematics import definition
from opdock_cpu.jit.plan import Code, metadata
from opdock_cpu.jit.team import chunk, divided
from opdock_cpu.jit.turn_code import Begin, Count, Left, Scratch, Share, Turn
from opdock_cpu.threads import threads

__all__ = ["source", "table"]

table = KernelTable()
_HALVES: Final = frozenset({dtypes.float16, dtypes.bfloat16})
_MOST_PRODUCTS: Final = 1 << 20
"""Multiplications of a turn above which oneDNN does better, where rows do not go apart."""
_ROWS: Final = 8
"""Rows of a share, at the least: as many as a tile has."""
_WORTH: Final = 1 << 12
"""Elements of a turn from which threads share its rows."""
_MOST_SHARES: Final = min(16, max(4, 2 * (os.cpu_count() or 1)))
"""What the machine has decides, not how many threads a session may have."""
_BEGIN: Final = -1
"""In the place of how many turns there may be: what is the same in all of them is computed."""
_ZEROS: Final = "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)"


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
    multiplied = sum(math.prod(s.shape) for s in wanted.stages if isinstance(s, codegen.Product))
    if multiplied > _MOST_PRODUCTS and _shares(wanted) == 1:
        return "its products are large: a library computes them sooner"
    answers = (*map(render.generated, types), *map(render.renders, _lines(wanted)))
    return next((a for a in answers if a is not True), True)


def _shares(turns: codegen.Turns) -> int:
    """Into how many shares the rows are divided."""
    if turns.work < _WORTH or why_none():
        return 1
    most = min(_MOST_SHARES, turns.apart // _ROWS)
    return next((n for n in range(most, 1, -1) if turns.apart % n == 0), 1)


@table.binder(TURNS, when=_when)
class Turns:
    """The turns of a loop as generated code."""

    def __init__(self, sig: NodeSig) -> None:
        self._turns: codegen.Turns = sig.attrs["turns"]
        self._shares, self._loop = _shares(self._turns), Loop()
        most = min(self._shares, threads())
        on = f" on up to {most} threads" if most > 1 else ""
        note(f"generated code, many turns a call{on}")

    @cached_property
    def _scratch(self) -> int:
        return Scratch(self._turns).size

    @cached_property
    def _function(self) -> Function:
        return request(lambda name: source(name, self._turns, self._shares))

    @property
    def ready(self) -> bool:
        """Whether the code is there; where it fails to compile, it never is."""
        return self._function.address is not None

    def __call__(self, variables: Sequence[Any]) -> _Some:
        """What makes turns of the variables."""
        entry = self._function.address
        assert entry is not None
        call = caller(1)(entry)
        return _Some(call, variables, self._scratch, self._shares, self._loop)


class _Some:
    """Makes turns of the same variables, call by call."""

    def __init__(
        self, call: Any, variables: Sequence[Any], scratch: int, shares: int, loop: Loop
    ) -> None:
        self._call, self._shares, self._loop = call, shares, loop
        self._variables, self._scratch = variables, np.empty(scratch, np.uint8)
        self._words = [0, 0, address(self._scratch), *map(address, variables)]
        call(ffi().from_buffer(np.array(self._words, np.int64)), _BEGIN)

    def __call__(
        self, arrays: Sequence[codegen.Rows], pops: Sequence[Any], pushes: Sequence[Any], most: int
    ) -> int:
        """Makes at most so many turns; returns how many."""
        words = list(self._words)
        for rows in arrays:
            words += [address(rows.values), address(rows.marks), len(rows.values), rows.mark]
        for items in pops:
            words += [address(items), len(items)]
        words += map(address, pushes)
        passed = np.array(words, np.int64)
        held = None
        if self._shares > 1:
            held = self._loop.begin(self._shares, threads())
            passed[1] = held.address
        self._call(ffi().from_buffer(passed), most)
        if held is not None:
            self._loop.end(held)
        return int(passed[0])


# ---------------------------------------------------------------- the code
def source(entry: str, turns: codegen.Turns, shares: int = 1) -> str:
    """The module of a loop: `entry(words, most)` makes turns, and says in the first word how many.

    The second word is the address of the words of a call of the crew's, where there are shares; the
    others say where scratch memory, the variables, arrays and lists are. With `_BEGIN` for `most`
    only the first of these need be there.

    Args:
        entry: the name of the function.
        turns: the loop.
        shares: into how many the rows are divided.
    """
    needed = sorted({need for line in _lines(turns) for need in render.needs(line)})
    writers: list[Begin | Turn] = [Begin(turns)]
    if shares == 1:
        writers.append(Turn(turns))
    else:
        writers += [Count(turns), Share(turns, turns.apart // shares)]
    functions = [writer.function() for writer in writers]
    tiles = sorted({tile for writer in writers for tile in writer.tiles})
    parts = [definition(name, kind) for name, kind in needed]
    parts += [*functions, *(tile.function() for tile in tiles)]
    parts.append(_entry(entry, turns) if shares == 1 else _shared_entry(entry, turns))
    return "\n".join([_ZEROS, *parts, metadata()])


def _entered(code: Code) -> None:
    """Puts what begins each call; what makes turns comes next."""
    begins = code.put(f"icmp eq i64 %most, {_BEGIN}")
    code.add(f"br i1 {begins}, label %begin, label %go")
    code.block("begin")
    code.add("call void @begin(ptr %words)", "ret void")
    code.block("go")


def _entry(entry: str, turns: codegen.Turns) -> str:
    code = Code()
    _entered(code)
    code.add("call void @turn(ptr %words, i64 %most)", "ret void")
    return code.function(f"define void @{entry}(ptr %words, i64 %most) nounwind")


def _shared_entry(entry: str, turns: codegen.Turns) -> str:
    code = Code()
    _entered(code)
    code.add("call void @turn(ptr %words, i64 %most)",
             f"%call = load i64, ptr {code.at('i64', '%words', '1')}")  # fmt: skip
    divided(code, ["%words"])
    Left(turns, code).put()
    code.add("ret void")
    start = code.function(f"define void @{entry}(ptr %words, i64 %most) nounwind")
    return "\n".join([chunk(1), start])
