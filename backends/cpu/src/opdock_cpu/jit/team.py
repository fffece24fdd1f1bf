"""The threads of generated loops: their shares of the work, and what becomes of their folds.

The entry point starts a team (`forks.py`), each thread of which does its share, or goes
through the shares of a team by itself: the order of additions, and so every bit, is the same.
"""

from __future__ import annotations

from typing import Final

from opdock_cpu.jit import forks, render
from opdock_cpu.jit.plan import Code, Fold, Plan

__all__ = ["ATTRIBUTES", "entry_point", "finished", "folded", "pointers", "task"]

ATTRIBUTES: Final = '"prefer-vector-width"="512" nounwind'
"""Of every function with loops that are to be vectorized."""


def pointers(plan: Plan) -> list[str]:
    """The names of inputs and results."""
    names = [f"x{i}" for i in range(len(plan.inputs))]
    return [*names, *(f"y{i}" for i in range(len(plan.outputs)))]


# ---------------------------------------------------------------- folds
def folded(code: Code, fold: Fold, kind: str, a: str, b: str) -> str:
    """The fold of two values of an LLVM type."""
    if fold.kind == "sum":
        return code.put(f"fadd reassoc {kind} {a}, {b}")
    if fold.kind == "prod":
        return code.put(f"fmul reassoc {kind} {a}, {b}")
    name = "maximum" if fold.kind == "max" else "minimum"
    suffix = "f32" if kind == "float" else "f64"
    return code.put(f"call {kind} @llvm.{name}.{suffix}({kind} {a}, {kind} {b})")


def finished(code: Code, plan: Plan, fold: Fold, total: str, index: str) -> None:
    """Rounds a folded value to the type of each result that it is, and stores it."""
    for i, place in enumerate(plan.ends):
        if place != fold.place:
            continue
        value = total
        if plan.kinds[i] == "mean":
            count = code.put(f"sitofp i64 {code.size(plan.count_at(i))} to double")
            value = code.put(f"fdiv double {value}, {count}")
        if fold.far != render.computed(fold.dtype):
            value = code.put(f"fptrunc double {value} to float")
        kind = render.stored_as(fold.dtype)
        value = render.stored(code.put, fold.dtype, value)
        code.store(kind, value, code.at(kind, f"%y{plan.whole + i}", index))


# ---------------------------------------------------------------- the entry point
def entry_point(plan: Plan, name: str, threaded: bool) -> str:
    """The function that is called: it starts the threads, or does the work itself."""
    code = Code()
    code.add("%team = call i64 @llvm.abs.i64(i64 %threads, i1 false)")
    rows, width = _extent(code, plan)
    if plan.shared:
        _cleared(code, plan)
    if threaded:
        code.add(f"br i1 {code.put('icmp sgt i64 %team, 1')}, label %several, label %alone")
        code.block("several")
        _several(code, plan)
        code.block("alone")
    _called(code, plan, [f"%{p}" for p in pointers(plan)], "%scratch", ["0", rows, "0", width])
    code.add("br label %join")
    code.block("join")
    for fold in plan.shared:
        _combined(code, plan, fold)
    code.add("ret void")
    params = ", ".join(f"ptr %{p}" for p in (*pointers(plan), "scratch", "sizes"))
    return code.function(f"define void @{name}({params}, i64 %threads) {ATTRIBUTES}")


def _extent(code: Code, plan: Plan) -> tuple[str, str]:
    """The number of rows, and that of columns."""
    *outer, width = (code.size(d) for d in range(plan.layout.rank))
    rows = "1"
    for size in outer:
        rows = code.put(f"mul i64 {rows}, {size}")
    return rows, width


def _called(
    code: Code, plan: Plan, values: list[str], scratch: str, bounds: list[str]
) -> None:  # fmt: skip
    """Calls `@core` on a share of the work, with a thread's scratch memory."""
    own = [_mine(code, plan, scratch, f) for f in plan.shared]
    own += [_band(code, plan, scratch, f) for f in plan.shared if f.banded]
    passed = [f"ptr {v}" for v in (*values, "%sizes", *own)] + [f"i64 {b}" for b in bounds]
    code.add(f"call void @core({', '.join(passed)})")


def _several(code: Code, plan: Plan) -> None:
    """The shares of a team: each on a thread of its own, or all in turn."""
    args = forks.packed(code, [*pointers(plan), "scratch", "sizes"])
    code.add(f"br i1 {code.put('icmp sgt i64 %threads, 0')}, label %fork, label %turns")
    code.block("fork")
    forks.started(code, args)
    code.add("br label %join")
    code.block("turns")
    with code.loop("0", "%team") as turn:
        code.add(f"call void @share(ptr {args}, i64 {turn.index}, i64 %team)")
    code.add("br label %join")


# ---------------------------------------------------------------- scratch memory
def _scratch(code: Code, plan: Plan, scratch: str, thread: str) -> str:
    """The scratch memory of a thread."""
    return code.at("double", scratch, code.put(f"mul i64 {thread}, {code.size(plan.scratch_at)}"))


def _mine(code: Code, plan: Plan, scratch: str, fold: Fold) -> str:
    """A fold's results in a thread's scratch memory."""
    return code.at("double", scratch, code.size(plan.slots_at(fold) + 1))


def _band(code: Code, plan: Plan, scratch: str, fold: Fold) -> str:
    """The results of a fold's present band: they come next."""
    return code.at("double", _mine(code, plan, scratch, fold), code.size(plan.slots_at(fold)))


def _cleared(code: Code, plan: Plan) -> None:
    """Sets all of scratch to the folds of nothing: a team can be smaller than was asked for."""
    with code.loop("0", "%team") as team:
        own = _scratch(code, plan, "%scratch", team.index)
        for fold in plan.shared:
            places = [(fold.far, _mine(code, plan, own, fold))]
            places += [(fold.near, _band(code, plan, own, fold))] * fold.banded
            with code.loop("0", code.size(plan.slots_at(fold))) as slots:
                for kind, place in places:
                    code.store(kind, fold.nothing(kind), code.at(kind, place, slots.index))


def _combined(code: Code, plan: Plan, fold: Fold) -> None:
    """Folds what the threads left in scratch; a thread that did nothing left the identity."""
    with code.loop("0", code.size(plan.slots_at(fold))) as slots:
        nothing = [(fold.far, fold.nothing(fold.far))]
        with code.loop("0", "%team", nothing) as team:
            own = _mine(code, plan, _scratch(code, plan, "%scratch", team.index), fold)
            value = code.put(f"load {fold.far}, ptr {code.at(fold.far, own, slots.index)}")
            team.results = [folded(code, fold, fold.far, team.values[0], value)]
        finished(code, plan, fold, team.results[0], slots.index)


# ---------------------------------------------------------------- one thread
def task(plan: Plan) -> str:
    """What a thread of a team runs, and `@share`: rows where there are enough, else columns."""
    code = Code()
    *values, scratch, sizes = forks.unpacked(code, len(pointers(plan)) + 2)
    code.add(f"%sizes = select i1 true, ptr {sizes}, ptr {sizes}")
    rows, width = _extent(code, plan)
    following = code.put("add i64 %tid, 1")
    across = "true"  # a row that becomes one value by itself has one thread
    if all(f.shared for f in plan.folds):
        across = code.put(f"icmp sge i64 {rows}, {code.put('mul i64 %team, 4')}")
    bounds = [
        code.put(f"select i1 {across}, i64 {a}, i64 {b}")
        for a, b in (
            (forks.part(code, rows, "%tid"), "0"), (forks.part(code, rows, following), rows),
            ("0", forks.part(code, width, "%tid")), (width, forks.part(code, width, following)),
        )
    ]  # fmt: skip
    if plan.shared:
        scratch = _scratch(code, plan, scratch, "%tid")
    _called(code, plan, values, scratch, bounds)
    code.add("ret void")
    return code.function(forks.SHARE) + forks.TASK
