"""The shares of generated loops: who computes them, and what becomes of their folds.

The entry point gets the words of a call (`crew.py`), in which is into how many shares the work is
divided. Threads of the crew take them in any order, or the caller goes through them by itself: the
order of additions, and so every bit, is the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from opdock_cpu.jit import render
from opdock_cpu.jit.crew_source import Call
from opdock_cpu.jit.plan import Code, Fold, Plan

__all__ = [
    "ATTRIBUTES",
    "chunk",
    "divided",
    "entry_point",
    "finished",
    "folded",
    "pointers",
    "share",
    "spread",
]

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
def divided(code: Code, pointers: list[str]) -> None:
    """Computes all shares of a call: `@share(args, share, shares)` of the same module.

    The words of the call are at `%call`, an address. The block that follows is open for more.

    Args:
        code: the entry point so far.
        pointers: what stands in `args`, in order; the words come last.
    """
    words = code.put("inttoptr i64 %call to ptr")
    args = code.put(f"alloca [{len(pointers) + 1} x ptr]")
    for i, name in enumerate([*pointers, words]):
        code.store("ptr", name, code.at("ptr", args, str(i)))
    entry = code.put(f"load ptr, ptr {code.at('i64', words, str(Call.ENTRY))}")
    code.add(f"br i1 {code.put(f'icmp ne ptr {entry}, null')}, label %several, label %alone")
    code.block("several")
    code.add(f"call void {entry}(ptr {words}, ptr @chunk, ptr {args})", "br label %join")
    code.block("alone")
    shares = _shares(code, words)
    with code.loop("0", shares) as turn:
        code.add(f"call void @share(ptr {args}, i64 {turn.index}, i64 {shares})")
    code.add("br label %join")
    code.block("join")


def chunk(passed: int) -> str:
    """`@chunk(args, share)`, which the crew calls; `args` as `divided` puts them."""
    code = Code()
    words = code.put(f"load ptr, ptr {code.at('ptr', '%args', str(passed))}")
    code.add(f"call void @share(ptr %args, i64 %i, i64 {_shares(code, words)})", "ret void")
    return code.function("define internal void @chunk(ptr %args, i64 %i) nounwind")


def spread(name: str, pointers: Sequence[str], count: tuple[int, int]) -> str:
    """All that a module needs besides `@core(pointers..., from, to)`, which computes some turns.

    Args:
        name: that of the entry point, which takes the pointers and the words of a call.
        pointers: their names.
        count: where the number of turns stands: which of the pointers, and there which int64.
    """
    code = Code()
    passed = [code.put(f"load ptr, ptr {code.at('ptr', '%args', str(i))}") for i, _ in enumerate(
        pointers)]  # fmt: skip
    turns = code.put(f"load i64, ptr {code.at('i64', passed[count[0]], str(count[1]))}")
    bounds = [
        code.put(f"sdiv i64 {code.put(f'mul i64 {turns}, {which}')}, %team")
        for which in ("%tid", code.put("add i64 %tid, 1"))
    ]
    arguments = [*(f"ptr {p}" for p in passed), *(f"i64 {b}" for b in bounds)]
    code.add(f"call void @core({', '.join(arguments)})", "ret void")
    head = "define internal void @share(ptr %args, i64 %tid, i64 %team) nounwind"
    entry = Code()
    divided(entry, [f"%{p}" for p in pointers])
    entry.add("ret void")
    words = ", ".join(f"ptr %{p}" for p in pointers)
    start = entry.function(f"define void @{name}({words}, i64 %call) nounwind")
    return "\n".join([code.function(head), chunk(len(pointers)), start])


def _shares(code: Code, words: str) -> str:
    return code.put(f"load i64, ptr {code.at('i64', words, str(Call.CHUNKS))}")


def entry_point(plan: Plan, name: str) -> str:
    """The function that is called."""
    code = Code()
    if plan.shared:
        code.add("%words = inttoptr i64 %call to ptr")
        team = _shares(code, "%words")
        _cleared(code, plan, team)
    divided(code, [f"%{p}" for p in (*pointers(plan), "scratch", "sizes")])
    for fold in plan.shared:
        _combined(code, plan, fold, team)
    code.add("ret void")
    params = ", ".join(f"ptr %{p}" for p in (*pointers(plan), "scratch", "sizes"))
    return code.function(f"define void @{name}({params}, i64 %call) {ATTRIBUTES}")


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
    """Calls `@core` on a share of the work, with its scratch memory."""
    own = [_mine(code, plan, scratch, f) for f in plan.shared]
    own += [_band(code, plan, scratch, f) for f in plan.shared if f.banded]
    passed = [f"ptr {v}" for v in (*values, "%sizes", *own)] + [f"i64 {b}" for b in bounds]
    code.add(f"call void @core({', '.join(passed)})")


# ---------------------------------------------------------------- scratch memory
def _scratch(code: Code, plan: Plan, scratch: str, share: str) -> str:
    """The scratch memory of a share."""
    return code.at("double", scratch, code.put(f"mul i64 {share}, {code.size(plan.scratch_at)}"))


def _mine(code: Code, plan: Plan, scratch: str, fold: Fold) -> str:
    """A fold's results in a share's scratch memory."""
    return code.at("double", scratch, code.size(plan.slots_at(fold) + 1))


def _band(code: Code, plan: Plan, scratch: str, fold: Fold) -> str:
    """The results of a fold's present band: they come next."""
    return code.at("double", _mine(code, plan, scratch, fold), code.size(plan.slots_at(fold)))


def _cleared(code: Code, plan: Plan, shares: str) -> None:
    """Sets all of scratch to the folds of nothing."""
    with code.loop("0", shares) as team:
        own = _scratch(code, plan, "%scratch", team.index)
        for fold in plan.shared:
            places = [(fold.far, _mine(code, plan, own, fold))]
            places += [(fold.near, _band(code, plan, own, fold))] * fold.banded
            with code.loop("0", code.size(plan.slots_at(fold))) as slots:
                for kind, place in places:
                    code.store(kind, fold.nothing(kind), code.at(kind, place, slots.index))


def _combined(code: Code, plan: Plan, fold: Fold, shares: str) -> None:
    """Folds what the shares left in scratch, in their order."""
    with code.loop("0", code.size(plan.slots_at(fold))) as slots:
        nothing = [(fold.far, fold.nothing(fold.far))]
        with code.loop("0", shares, nothing) as team:
            own = _mine(code, plan, _scratch(code, plan, "%scratch", team.index), fold)
            value = code.put(f"load {fold.far}, ptr {code.at(fold.far, own, slots.index)}")
            team.results = [folded(code, fold, fold.far, team.values[0], value)]
        finished(code, plan, fold, team.results[0], slots.index)


# ---------------------------------------------------------------- one share
def share(plan: Plan) -> str:
    """`@share(args, share, shares)`, and `@chunk`: rows where there are enough, else columns."""
    code = Code()
    passed = len(pointers(plan)) + 2
    loaded = [code.put(f"load ptr, ptr {code.at('ptr', '%args', str(i))}") for i in range(passed)]
    *values, scratch, sizes = loaded
    code.add(f"%sizes = select i1 true, ptr {sizes}, ptr {sizes}")
    tid, team = "%tid", "%team"
    rows, width = _extent(code, plan)

    def part(total: str, which: str) -> str:
        return code.put(f"sdiv i64 {code.put(f'mul i64 {total}, {which}')}, {team}")

    following = code.put(f"add i64 {tid}, 1")
    across = "true"  # a row that becomes one value by itself is in one share
    if all(f.shared for f in plan.folds):
        across = code.put(f"icmp sge i64 {rows}, {code.put(f'mul i64 {team}, 4')}")
    bounds = [
        code.put(f"select i1 {across}, i64 {a}, i64 {b}")
        for a, b in (
            (part(rows, tid), "0"), (part(rows, following), rows),
            ("0", part(width, tid)), (width, part(width, following)),
        )
    ]  # fmt: skip
    if plan.shared:
        scratch = _scratch(code, plan, scratch, tid)
    _called(code, plan, values, scratch, bounds)
    code.add("ret void")
    head = "define internal void @share(ptr %args, i64 %tid, i64 %team) nounwind"
    return code.function(head) + chunk(passed)
