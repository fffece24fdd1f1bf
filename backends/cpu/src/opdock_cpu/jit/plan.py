"""What generated loops compute and how they walk through memory; and instructions as they are put.

A cluster's dimensions are merged where all inputs and folds agree. The last one is the inner loop,
which LLVM vectorizes, and the others make up the rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from opdock.plugin import DType
from opdock_cpu.jit import render
from opdock_cpu.jit.mathematics import DEFINED, number

__all__ = ["Code", "Fold", "Layout", "Loop", "Plan", "long"]

_IDENTITY: Final = {"sum": 0.0, "prod": 1.0, "max": float("-inf"), "min": float("inf")}
_LONG: Final = 3
"""Mathematical functions of a long element."""
_ITERATION: Final = "!llvm.access.group !0"
_METADATA: Final = """!0 = distinct !{}
!1 = distinct !{!1, !2}
!2 = !{!"llvm.loop.parallel_accesses", !0}
!3 = distinct !{!3, !2, !4}
!4 = !{!"llvm.loop.interleave.count", i32 2}
"""


@dataclass(frozen=True, slots=True)
class Layout:
    """How a cluster walks through memory; sizes are not part of it.

    Attributes:
        varies: for each input, whether it varies along each merged dimension.
        kept: for each folded result, whether each merged dimension stays.
    """

    varies: tuple[tuple[bool, ...], ...]
    kept: tuple[tuple[bool, ...], ...] = ()

    @property
    def rank(self) -> int:
        """The number of merged dimensions."""
        return len(self.varies[0])


# ---------------------------------------------------------------- what is computed
@dataclass(frozen=True, slots=True)
class Fold:
    """One value that is folded; a sum and a mean of the same elements are one fold.

    Attributes:
        place: its place among the folds.
        kind: "sum", "prod", "max" or "min".
        value: which of the line's results it takes.
        dtype: the type of the elements.
        kept: whether each merged dimension stays.
    """

    place: int
    kind: str
    value: int
    dtype: DType
    kept: tuple[bool, ...]

    @property
    def by_rows(self) -> bool:
        """Whether the elements of a row are folded into one."""
        return not self.kept[-1]

    @property
    def shared(self) -> bool:
        """Whether results take elements of several rows, and so of several shares."""
        return len(self.kept) == 1 or not (self.by_rows and all(self.kept[:-1]))

    @property
    def banded(self) -> bool:
        """Whether each column is folded in bands of rows, in the elements' own type."""
        return not self.by_rows and not any(self.kept[:-1]) and self.near != self.far

    @property
    def cell(self) -> str:
        """The type of what rows are folded into."""
        return self.near if self.banded else self.far

    @property
    def near(self) -> str:
        """The type in which a block of elements is folded."""
        # The roundings of a long product of numbers near 1 add up instead of cancelling.
        return "double" if self.kind == "prod" else render.computed(self.dtype)

    @property
    def far(self) -> str:
        """The type in which blocks are folded: extremes are not rounded."""
        return "double" if self.kind in ("sum", "prod") else render.computed(self.dtype)

    def nothing(self, kind: str) -> str:
        """The fold of nothing, in an LLVM type."""
        return number(_IDENTITY[self.kind], kind)


def long(line: Any) -> bool:
    """Whether an element takes so many steps, one waiting for the other, that two go better."""
    return sum(step.op in DEFINED for step in line.steps) >= _LONG


@dataclass(frozen=True)
class Plan:
    """A cluster: the typed steps, its inputs and results, and the walk."""

    line: Any
    names: Sequence[str]
    inputs: Sequence[DType]
    outputs: Sequence[DType]
    layout: Layout
    kinds: Sequence[str]

    @property
    def whole(self) -> int:
        """How many results are written element by element."""
        return len(self.outputs) - len(self.kinds)

    @cached_property
    def ends(self) -> list[int]:
        """For each folded result, the place of its fold."""
        found: dict[tuple[Any, ...], int] = {}
        return [found.setdefault(key, len(found)) for key in self._keys()]

    @cached_property
    def folds(self) -> list[Fold]:
        """The folds, each once."""
        folds: list[Fold] = []
        for i, (key, place) in enumerate(zip(self._keys(), self.ends, strict=True)):
            if place == len(folds):
                at = self.whole + i
                folds.append(Fold(place, key[1], at, self.outputs[at], key[2]))
        return folds

    def _keys(self) -> list[tuple[int, str, tuple[bool, ...]]]:
        steps = self.line.results[self.whole :]
        kinds = ("sum" if k == "mean" else k for k in self.kinds)
        return list(zip(steps, kinds, self.layout.kept, strict=True))

    @property
    def shared(self) -> list[Fold]:
        """The folds for which each share has scratch memory."""
        return [f for f in self.folds if f.shared]

    # The sizes that the code gets: those of the merged dimensions, how many elements go into each
    # folded result, and for each shared fold how many results it has and where they start in a
    # share's scratch memory, behind which are those of the band; last, how much of it there is.
    def count_at(self, end: int) -> int:
        """Where the number of elements of a folded result stands among the sizes."""
        return self.layout.rank + end

    def slots_at(self, fold: Fold) -> int:
        """Where the number of a shared fold's results stands; their start is next to it."""
        return self.layout.rank + len(self.kinds) + 2 * self.shared.index(fold)

    @property
    def scratch_at(self) -> int:
        """Where the size of a share's scratch memory stands."""
        return self.layout.rank + len(self.kinds) + 2 * len(self.shared)

    def sizes(self, dims: Sequence[int], counts: Sequence[int]) -> list[int]:
        """All sizes.

        Args:
            dims: those of the merged dimensions.
            counts: how many elements go into each folded result.
        """
        starts, total = [], 0
        for fold in self.shared:
            slots = 1
            for n, kept in zip(dims, fold.kept, strict=True):
                slots *= n if kept else 1
            starts += [slots, total]
            total += slots * (1 + fold.banded)
        return [*dims, *counts, *starts, total]


# ---------------------------------------------------------------- instructions
@dataclass(slots=True)
class Loop:
    """A loop that is being written.

    Attributes:
        index: the name of its index.
        values: what is carried from one turn to the next, as a turn finds it.
        results: the same as a turn leaves it; the body sets them.
    """

    index: str
    values: list[str]
    results: list[str]


class Code:
    """Instructions with fresh names."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._count = 0
        self._block = "entry"

    def put(self, text: str) -> str:
        """An instruction; its value's name."""
        self._count += 1
        name = f"%t{self._count}"
        self.lines.append(f"  {name} = {text}")
        return name

    def put_free(self, text: str) -> str:
        """An instruction of a parallel loop's body: a load depends on no other turn's stores."""
        return self.put(f"{text}, {_ITERATION}" if text.startswith("load ") else text)

    def add(self, *lines: str) -> None:
        """Lines as they are."""
        self.lines.extend(f"  {line}" for line in lines)

    def store(self, kind: str, value: str, place: str, free: bool = False) -> None:
        """A store; with `free` one of a parallel loop's body."""
        self.add(f"store {kind} {value}, ptr {place}" + f", {_ITERATION}" * free)

    def at(self, kind: str, pointer: str, index: str) -> str:
        """The place of an element."""
        return self.put(f"getelementptr {kind}, ptr {pointer}, i64 {index}")

    def size(self, at: int) -> str:
        """One of the sizes."""
        return self.size_at(str(at))

    def size_at(self, index: str) -> str:
        """The size whose place is a value."""
        return self.put(f"load i64, ptr {self.at('i64', '%sizes', index)}")

    @property
    def here(self) -> str:
        """The block that is being written."""
        return self._block

    def block(self, name: str) -> None:
        """Starts a block."""
        self.lines.append(f"{name}:")
        self._block = name

    @contextmanager
    def loop(
        self, start: str, end: str, carried: Sequence[tuple[str, str]] = (), *, step: int = 1,
        parallel: bool = False, pairs: bool = False,
    ) -> Iterator[Loop]:  # fmt: skip
        """A loop, which turns at least once; what is put meanwhile is its body.

        Args:
            start, end: the range of the index.
            carried: type and first value of what goes from turn to turn.
            step: what the index grows by.
            parallel: whether no turn touches what another writes, but for what is carried.
            pairs: whether two vectors of parallel turns are computed side by side: where a turn is
                so long that the processor does not see the next one, it waits for each result.
        """
        self._count += 1
        name, before = f"l{self._count}", self._block
        self.add(f"br label %{name}")
        self.block(name)
        top = len(self.lines)
        loop = Loop(f"%{name}.i", [f"%{name}.{i}" for i in range(len(carried))], [])
        yield loop
        self.add(f"br label %{name}.end")
        self.block(f"{name}.end")
        self.add(f"%{name}.n = add i64 {loop.index}, {step}",
                 f"%{name}.m = icmp slt i64 %{name}.n, {end}",
                 f"br i1 %{name}.m, label %{name}, label %{name}.out"
                 + f", !llvm.loop !{3 if pairs else 1}" * parallel)  # fmt: skip
        first = [("i64", start, loop.index, f"%{name}.n")]
        phis = [(k, v, p, r) for (k, v), p, r in zip(
            carried, loop.values, loop.results, strict=True)]  # fmt: skip
        self.lines[top:top] = [
            f"  {phi} = phi {kind} [{value}, %{before}], [{result}, %{name}.end]"
            for kind, value, phi, result in first + phis
        ]
        self.block(f"{name}.out")

    def function(self, head: str) -> str:
        """The function of all that was put."""
        return "\n".join([f"{head} {{", "entry:", *self.lines, "}"]) + "\n"


def metadata() -> str:
    """What a module with parallel loops must end with."""
    return _METADATA
