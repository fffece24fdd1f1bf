"""A cluster as a module of LLVM assembly: loops around the line's body, and their threads.

The cluster's dimensions are merged where all inputs agree; the last one is the inner loop, which
LLVM vectorizes, and the others make up the rows. `@core` computes a block of rows and columns.
`@task` is what each thread of GNU's OpenMP runtime calls, and the entry point starts them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from opdock.plugin import DType
from opdock_cpu.jit import render
from opdock_cpu.jit.mathematics import definition, number

__all__ = ["BLOCK", "Layout", "module"]

BLOCK = 1024
"""Elements summed in their own type before they are added in double precision."""

_ATTRIBUTES = '"prefer-vector-width"="512" nounwind'
_IDENTITY = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "max": float("-inf"), "min": float("inf")}


@dataclass(frozen=True, slots=True)
class Layout:
    """How a cluster walks through memory; sizes are not part of it.

    Attributes:
        varies: for each input, whether it varies along each merged dimension.
        ends: how a reduction lies: "" for none, "rows" (each row becomes one value), "columns"
            (rows are folded into one) or "all".
    """

    varies: tuple[tuple[bool, ...], ...]
    ends: str

    @property
    def rank(self) -> int:
        """The number of merged dimensions."""
        return len(self.varies[0])


class _Code:
    """Instructions with fresh names."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._count = 0

    def put(self, text: str) -> str:
        """An instruction; its value's name."""
        self._count += 1
        name = f"%t{self._count}"
        self.lines.append(f"  {name} = {text}")
        return name

    def add(self, *lines: str) -> None:
        """Lines as they are."""
        self.lines.extend(lines)

    def name(self, name: str, kind: str, value: str) -> None:
        """Gives a value a second name, by which a phi knows it before it is there."""
        self.add(f"  {name} = select i1 true, {kind} {value}, {kind} {value}")


@dataclass(frozen=True, slots=True)
class _Plan:
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

    @property
    def folds(self) -> str:
        """How the folded results lie; "" without any."""
        return self.layout.ends if self.kinds else ""

    @property
    def shared(self) -> bool:
        """Whether threads fold the same results, each into scratch memory of its own."""
        return self.folds in ("all", "columns")

    def start(self, f: int, kind: str = "double") -> str:
        """The fold of nothing."""
        return number(_IDENTITY[self.kinds[f]], kind)


def module(
    entry: str, line: Any, names: Sequence[str], inputs: Sequence[DType],
    outputs: Sequence[DType], layout: Layout, kinds: Sequence[str] = (), threaded: bool = True,
) -> str:  # fmt: skip
    """The assembly of a cluster.

    Its entry point takes a pointer for each input and each output, then scratch memory for the
    threads' folds (doubles), the sizes of the merged dimensions (int64), and a number of threads.

    Args:
        entry: the name of the entry point.
        line: the typed steps.
        names, inputs: the inputs' names and types.
        outputs: the results' types; the last ones are folded, one for each of `kinds`.
        layout: how memory is walked.
        kinds: the folds: "sum", "mean", "max", "min" or "prod" each.
        threaded: whether GOMP_parallel can be called.
    """
    plan = _Plan(line, names, inputs, outputs, layout, kinds)
    parts = [definition(name, kind) for name, kind in sorted(render.needs(line))]
    parts += [_core(plan), _entry(plan, entry, threaded)]
    if threaded:
        parts.append(_task(plan))
        parts.append("declare void @GOMP_parallel(ptr, ptr, i32, i32)\n"
                     "declare i32 @omp_get_thread_num()\ndeclare i32 @omp_get_num_threads()\n")
    return "\n".join(parts)


def _pointers(plan: _Plan) -> list[str]:
    names = [f"%x{i}" for i in range(len(plan.inputs))]
    return [*names, *(f"%y{i}" for i in range(len(plan.outputs))), "%scratch", "%sizes"]


# ---------------------------------------------------------------- the loops
def _core(plan: _Plan) -> str:
    code = _Code()
    params = ", ".join(f"ptr noalias {p}" for p in _pointers(plan))
    bounds = "i64 %r0, i64 %r1, i64 %c0, i64 %c1, i64 %tid"
    sizes = [_size(code, d) for d in range(plan.layout.rank)]
    width, folds = sizes[-1], plan.folds
    count = range(len(plan.kinds))
    if plan.shared:
        per_fold = width if folds == "columns" else "1"
        for f in count:
            nth = code.put(f"add i64 {code.put(f'mul i64 %tid, {len(plan.kinds)}')}, {f}")
            shift = code.put(f"mul i64 {nth}, {per_fold}")
            code.add(f"  %mine{f} = getelementptr double, ptr %scratch, i64 {shift}")
    code.add("  %some = icmp slt i64 %r0, %r1", "  br i1 %some, label %row, label %done", "row:",
             "  %r = phi i64 [%r0, %entry], [%rnext, %rowend]")
    if folds == "all":
        for f in count:
            code.add(f"  %grand{f} = phi double [{plan.start(f)}, %entry], [%total{f}, %rowend]")
    places = _row_places(code, plan, sizes)
    base = code.put(f"mul i64 %r, {width}")
    code.add("  %any = icmp slt i64 %c0, %c1")
    if folds in ("all", "rows"):
        _folding_row(code, plan, places, base)
    else:
        _plain_row(code, plan, places, base)
    code.add("  %rnext = add i64 %r, 1", "  %more = icmp slt i64 %rnext, %r1",
             "  br i1 %more, label %row, label %done", "done:")
    if folds == "all":
        for f in count:
            code.add(f"  %last{f} = phi double [{plan.start(f)}, %entry], [%total{f}, %rowend]")
        for f in count:
            code.add(f"  store double %last{f}, ptr %mine{f}")
    code.add("  ret void", "}")
    head = f"define internal void @core({params}, {bounds}) {_ATTRIBUTES} {{\nentry:"
    return "\n".join([head, *code.lines]) + "\n"


def _size(code: _Code, d: int) -> str:
    at = code.put(f"getelementptr i64, ptr %sizes, i64 {d}")
    return code.put(f"load i64, ptr {at}")


def _row_places(code: _Code, plan: _Plan, sizes: list[str]) -> list[str]:
    """For each input, a pointer to its first element of this row."""
    rank, indices, rest = plan.layout.rank, {}, "%r"
    if any(not all(v[:-1]) and any(v[:-1]) for v in plan.layout.varies):
        for d in range(rank - 2, 0, -1):
            indices[d] = code.put(f"urem i64 {rest}, {sizes[d]}")
            rest = code.put(f"udiv i64 {rest}, {sizes[d]}")
    indices[0] = rest
    places = []
    for i, varies in enumerate(plan.layout.varies):
        kind = render.stored_as(plan.inputs[i])
        if rank > 1 and all(varies[:-1]):
            offset = "%r"
        else:
            offset = ""
            for d in range(rank - 1):
                if varies[d]:
                    scaled = code.put(f"mul i64 {offset}, {sizes[d]}") if offset else ""
                    offset = code.put(f"add i64 {scaled}, {indices[d]}") if offset else indices[d]
        if not offset:
            places.append(f"%x{i}")
            continue
        if varies[-1]:
            offset = code.put(f"mul i64 {offset}, {sizes[-1]}")
        places.append(code.put(f"getelementptr {kind}, ptr %x{i}, i64 {offset}"))
    return places


def _element(code: _Code, plan: _Plan, places: list[str], base: str, column: str) -> list[str]:
    """Loads, computes and stores one element; the values of all results."""
    inputs = {}
    for i, (name, dtype) in enumerate(zip(plan.names, plan.inputs, strict=True)):
        pointer = places[i]
        if plan.layout.varies[i][-1]:
            kind = render.stored_as(dtype)
            pointer = code.put(f"getelementptr {kind}, ptr {pointer}, i64 {column}")
        inputs[name] = render.loaded(code.put, dtype, pointer)
    values = render.body(code.put, plan.line, inputs)
    if plan.whole:
        at = code.put(f"add i64 {base}, {column}")
        for i in range(plan.whole):
            kind = render.stored_as(plan.outputs[i])
            value = render.stored(code.put, plan.outputs[i], values[i])
            place = code.put(f"getelementptr {kind}, ptr %y{i}, i64 {at}")
            code.add(f"  store {kind} {value}, ptr {place}")
    return values


def _plain_row(code: _Code, plan: _Plan, places: list[str], base: str) -> None:
    """One row whose elements do not depend on each other; folded rows go into scratch."""
    code.add("  br i1 %any, label %col, label %rowend", "col:",
             "  %j = phi i64 [%c0, %row], [%jnext, %col]")
    values = _element(code, plan, places, base, "%j")
    for f, how in enumerate(plan.kinds):
        place = code.put(f"getelementptr double, ptr %mine{f}, i64 %j")
        old = code.put(f"load double, ptr {place}")
        wide = _doubled(code, plan, f, values[plan.whole + f])
        code.add(f"  store double {_folded(code, how, 'double', old, wide)}, ptr {place}")
    code.add("  %jnext = add i64 %j, 1", "  %jmore = icmp slt i64 %jnext, %c1",
             "  br i1 %jmore, label %col, label %rowend", "rowend:")


def _folding_row(code: _Code, plan: _Plan, places: list[str], base: str) -> None:
    """One row that is folded: in blocks of its own type, and blocks in double precision."""
    count = range(len(plan.kinds))
    types = [_fold_type(plan, f) for f in count]
    first = [f"%grand{f}" if plan.folds == "all" else plan.start(f) for f in count]
    code.add("  br i1 %any, label %block, label %rowend", "block:",
             "  %b = phi i64 [%c0, %row], [%bend, %blockend]")
    for f in count:
        code.add(f"  %acc{f} = phi double [{first[f]}, %row], [%accnext{f}, %blockend]")
    code.add(f"  %far = add i64 %b, {BLOCK}",
             "  %bend = call i64 @llvm.smin.i64(i64 %far, i64 %c1)", "  br label %col", "col:",
             "  %j = phi i64 [%b, %block], [%jnext, %col]")
    for f in count:
        code.add(f"  %part{f} = phi {types[f]} [{plan.start(f, types[f])}, %block], "
                 f"[%partnext{f}, %col]")
    values = _element(code, plan, places, base, "%j")
    for f, (how, kind) in enumerate(zip(plan.kinds, types, strict=True)):
        value = values[plan.whole + f]
        value = _doubled(code, plan, f, value) if kind == "double" else value
        code.name(f"%partnext{f}", kind, _folded(code, how, kind, f"%part{f}", value))
    code.add("  %jnext = add i64 %j, 1", "  %jmore = icmp slt i64 %jnext, %bend",
             "  br i1 %jmore, label %col, label %blockend", "blockend:")
    for f, (how, kind) in enumerate(zip(plan.kinds, types, strict=True)):
        wide = f"%partnext{f}"
        if kind != "double":
            wide = code.put(f"fpext {kind} {wide} to double")
        code.name(f"%accnext{f}", "double", _folded(code, how, "double", f"%acc{f}", wide))
    code.add("  %bmore = icmp slt i64 %bend, %c1",
             "  br i1 %bmore, label %block, label %rowend", "rowend:")
    for f in count:
        code.add(f"  %total{f} = phi double [{first[f]}, %row], [%accnext{f}, %blockend]")
    if plan.folds == "rows":
        for f in count:
            _finished(code, plan, f, f"%total{f}", "%r")


def _fold_type(plan: _Plan, f: int) -> str:
    # The roundings of a long product of numbers near 1 add up instead of cancelling.
    return "double" if plan.kinds[f] == "prod" else render.computed(plan.outputs[plan.whole + f])


def _doubled(code: _Code, plan: _Plan, f: int, value: str) -> str:
    kind = render.computed(plan.outputs[plan.whole + f])
    return value if kind == "double" else code.put(f"fpext {kind} {value} to double")


def _folded(code: _Code, how: str, kind: str, a: str, b: str) -> str:
    if how in ("sum", "mean"):
        return code.put(f"fadd reassoc {kind} {a}, {b}")
    if how == "prod":
        return code.put(f"fmul reassoc {kind} {a}, {b}")
    name = "maximum" if how == "max" else "minimum"
    suffix = "f32" if kind == "float" else "f64"
    return code.put(f"call {kind} @llvm.{name}.{suffix}({kind} {a}, {kind} {b})")


def _finished(code: _Code, plan: _Plan, f: int, total: str, index: str) -> None:
    """Rounds a folded value to the result's type and stores it."""
    dtype, at = plan.outputs[plan.whole + f], plan.whole + f
    if plan.kinds[f] == "mean":
        place = code.put(f"getelementptr i64, ptr %sizes, i64 {plan.layout.rank}")
        count = code.put(f"sitofp i64 {code.put(f'load i64, ptr {place}')} to double")
        total = code.put(f"fdiv double {total}, {count}")
    if render.computed(dtype) == "float":
        total = code.put(f"fptrunc double {total} to float")
    kind = render.stored_as(dtype)
    value = render.stored(code.put, dtype, total)
    place = code.put(f"getelementptr {kind}, ptr %y{at}, i64 {index}")
    code.add(f"  store {kind} {value}, ptr {place}")


# ---------------------------------------------------------------- threads
def _rows(code: _Code, plan: _Plan) -> str:
    sizes = [_size(code, d) for d in range(plan.layout.rank - 1)]
    rows = "1"
    for size in sizes:
        rows = code.put(f"mul i64 {rows}, {size}")
    return rows


def _entry(plan: _Plan, entry: str, threaded: bool) -> str:
    code = _Code()
    pointers = _pointers(plan)
    rows = _rows(code, plan)
    width = _size(code, plan.layout.rank - 1)
    passed = ", ".join(f"ptr {p}" for p in pointers)
    if plan.shared:
        _cleared(code, plan, width)
    alone = f"  call void @core({passed}, i64 0, i64 {rows}, i64 0, i64 {width}, i64 0)"
    if threaded:
        code.add("  %many = icmp sgt i64 %threads, 1", "  br i1 %many, label %fork, label %alone",
                 "fork:", f"  %args = alloca [{len(pointers)} x ptr]")
        for i, pointer in enumerate(pointers):
            place = code.put(f"getelementptr ptr, ptr %args, i64 {i}")
            code.add(f"  store ptr {pointer}, ptr {place}")
        count = code.put("trunc i64 %threads to i32")
        code.add(f"  call void @GOMP_parallel(ptr @task, ptr %args, i32 {count}, i32 0)",
                 "  br label %join", "alone:", alone, "  br label %join", "join:")
    else:
        code.add(alone, "  br label %join", "join:")
    if plan.shared:
        _combined(code, plan, width)
    code.add("  ret void", "}")
    params = ", ".join(f"ptr {p}" for p in pointers)
    head = f"define void @{entry}({params}, i64 %threads) {_ATTRIBUTES} {{\nentry:"
    return "\n".join([head, *code.lines]) + "\n"


def _cleared(code: _Code, plan: _Plan, width: str) -> None:
    """Sets all of scratch to the folds of nothing: a team can be smaller than was asked for."""
    columns = width if plan.folds == "columns" else "1"
    row = code.put(f"mul i64 {columns}, {len(plan.kinds)}")
    code.add("  br label %team", "team:", "  %w = phi i64 [0, %entry], [%wnext, %teamend]")
    start = code.put(f"mul i64 %w, {row}")
    before = "team"
    for f in range(len(plan.kinds)):
        offset = code.put(f"add i64 {start}, {code.put(f'mul i64 {columns}, {f}')}")
        code.add(f"  br label %clear{f}", f"clear{f}:",
                 f"  %k{f} = phi i64 [0, %{before}], [%knext{f}, %clear{f}]")
        at = code.put(f"add i64 {offset}, %k{f}")
        place = code.put(f"getelementptr double, ptr %scratch, i64 {at}")
        code.add(f"  store double {plan.start(f)}, ptr {place}",
                 f"  %knext{f} = add i64 %k{f}, 1",
                 f"  %kmore{f} = icmp slt i64 %knext{f}, {columns}",
                 f"  br i1 %kmore{f}, label %clear{f}, label %cleared{f}", f"cleared{f}:")
        before = f"cleared{f}"
    code.add("  br label %teamend", "teamend:", "  %wnext = add i64 %w, 1",
             "  %wmore = icmp slt i64 %wnext, %threads",
             "  br i1 %wmore, label %team, label %ready", "ready:")


def _combined(code: _Code, plan: _Plan, width: str) -> None:
    """Folds what the threads left in scratch; a thread that did nothing left the identity."""
    columns = width if plan.folds == "columns" else "1"
    row = code.put(f"mul i64 {columns}, {len(plan.kinds)}")
    before = "join"
    for f, how in enumerate(plan.kinds):
        offset = code.put(f"mul i64 {columns}, {f}")
        code.add(f"  br label %slot{f}", f"slot{f}:",
                 f"  %s{f} = phi i64 [0, %{before}], [%snext{f}, %slotend{f}]",
                 f"  br label %each{f}", f"each{f}:",
                 f"  %t{f}_ = phi i64 [0, %slot{f}], [%tnext{f}, %each{f}]",
                 f"  %sofar{f} = phi double [{plan.start(f)}, %slot{f}], [%both{f}, %each{f}]")
        at = code.put(f"add i64 {code.put(f'mul i64 %t{f}_, {row}')}, {offset}")
        at = code.put(f"add i64 {at}, %s{f}")
        place = code.put(f"getelementptr double, ptr %scratch, i64 {at}")
        value = code.put(f"load double, ptr {place}")
        code.name(f"%both{f}", "double", _folded(code, how, "double", f"%sofar{f}", value))
        code.add(f"  %tnext{f} = add i64 %t{f}_, 1",
                 f"  %tmore{f} = icmp slt i64 %tnext{f}, %threads",
                 f"  br i1 %tmore{f}, label %each{f}, label %slotend{f}", f"slotend{f}:")
        _finished(code, plan, f, f"%both{f}", f"%s{f}")
        code.add(f"  %snext{f} = add i64 %s{f}, 1",
                 f"  %smore{f} = icmp slt i64 %snext{f}, {columns}",
                 f"  br i1 %smore{f}, label %slot{f}, label %out{f}", f"out{f}:")
        before = f"out{f}"


def _task(plan: _Plan) -> str:
    """One thread's share: rows where there are enough of them, else columns."""
    code = _Code()
    names = []
    for i, _ in enumerate(_pointers(plan)):
        place = code.put(f"getelementptr ptr, ptr %args, i64 {i}")
        names.append(code.put(f"load ptr, ptr {place}"))
    code.add(f"  %sizes = select i1 true, ptr {names[-1]}, ptr {names[-1]}")
    tid = code.put(f"zext i32 {code.put('call i32 @omp_get_thread_num()')} to i64")
    team = code.put(f"zext i32 {code.put('call i32 @omp_get_num_threads()')} to i64")
    rows, width = _rows(code, plan), _size(code, plan.layout.rank - 1)

    def share(total: str, which: str) -> str:
        return code.put(f"sdiv i64 {code.put(f'mul i64 {total}, {which}')}, {team}")

    following = code.put(f"add i64 {tid}, 1")
    r0, r1, c0, c1 = (
        share(rows, tid), share(rows, following), share(width, tid), share(width, following)
    )  # fmt: skip
    if plan.folds == "rows":
        across = "true"
    else:
        across = code.put(f"icmp sge i64 {rows}, {code.put(f'mul i64 {team}, 4')}")
    bounds = [
        code.put(f"select i1 {across}, i64 {a}, i64 {b}")
        for a, b in ((r0, "0"), (r1, rows), ("0", c0), (width, c1))
    ]
    passed = ", ".join(f"ptr {n}" for n in names)
    code.add(f"  call void @core({passed}, " + ", ".join(f"i64 {b}" for b in bounds)
             + f", i64 {tid})", "  ret void", "}")  # fmt: skip
    return "\n".join(["define internal void @task(ptr %args) nounwind {", *code.lines]) + "\n"
