"""A line's steps as LLVM assembly: the body of the innermost loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from opdock.plugin import DType, codegen, dtypes
from opdock_cpu.jit.mathematics import BINARY, DEFINED, EXP_NORMAL, defined, number

__all__ = [
    "Emit",
    "body",
    "computed",
    "generated",
    "loaded",
    "needs",
    "renders",
    "stored",
    "stored_as",
]

_HALVES = frozenset({dtypes.float16, dtypes.bfloat16})
_TYPES = {
    "bool": "i1", "int8": "i8", "uint8": "i8", "int16": "i16", "uint16": "i16", "int32": "i32",
    "uint32": "i32", "int64": "i64", "uint64": "i64", "float16": "float", "bfloat16": "float",
    "float32": "float", "float64": "double",
}  # fmt: skip
_STORED = {**_TYPES, "bool": "i8", "float16": "half", "bfloat16": "i16"}
Emit = Callable[[str], str]
"""Puts an instruction and returns the name of its value."""


def computed(dtype: DType) -> str:
    """The LLVM type of a value; 16-bit floats are computed as float."""
    return _TYPES[dtype.name]


def stored_as(dtype: DType) -> str:
    """The LLVM type of an element in memory."""
    return _STORED[dtype.name]


def loaded(put: Emit, dtype: DType, pointer: str) -> str:
    """The value of the element at a pointer."""
    raw = put(f"load {stored_as(dtype)}, ptr {pointer}")
    if dtype is dtypes.bool_:
        return put(f"icmp ne i8 {raw}, 0")
    if dtype is dtypes.float16:
        return put(f"fpext half {raw} to float")
    if dtype is dtypes.bfloat16:
        return _from_bfloat16(put, raw)
    return raw


def stored(put: Emit, dtype: DType, value: str) -> str:
    """A value in the type in which it is stored."""
    if dtype is dtypes.bool_:
        return put(f"zext i1 {value} to i8")
    if dtype is dtypes.float16:
        return put(f"fptrunc float {value} to half")
    if dtype is dtypes.bfloat16:
        return _to_bfloat16(put, value)
    return value


def _from_bfloat16(put: Emit, raw: str) -> str:
    wide = put(f"zext i16 {raw} to i32")
    return put(f"bitcast i32 {put(f'shl i32 {wide}, 16')} to float")


def _to_bfloat16(put: Emit, value: str) -> str:
    bits = put(f"bitcast float {value} to i32")
    odd = put(f"and i32 {put(f'lshr i32 {bits}, 16')}, 1")
    rounded = put(f"add i32 {put(f'add i32 {bits}, 32767')}, {odd}")
    upper = put(f"trunc i32 {put(f'lshr i32 {rounded}, 16')} to i16")
    nan = put(f"fcmp uno float {value}, {value}")
    return put(f"select i1 {nan}, i16 32704, i16 {upper}")


# ---------------------------------------------------------------- functions
_FLOAT_INFIX = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
_WHOLE_INFIX = {"add": "add", "sub": "sub", "mul": "mul"}
_BITS = {"bitand": "and", "bitor": "or", "bitxor": "xor"}
_FLOAT_TESTS = {"lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge", "eq": "oeq", "ne": "une"}
_INTRINSICS = {"sqrt": "sqrt", "floor": "floor", "ceil": "ceil", "trunc": "trunc", "rint": "rint",
               "abs": "fabs"}  # fmt: skip


def _suffix(kind: str) -> str:
    return "f32" if kind == "float" else "f64"


def _intrinsic(put: Emit, name: str, kind: str, value: str) -> str:
    return put(f"call {kind} @llvm.{name}.{_suffix(kind)}({kind} {value})")


def _float(put: Emit, name: str, kind: str, a: list[str]) -> str:
    """A function of real numbers; "" where there is none that vectorizes."""
    if name in _FLOAT_INFIX:
        return put(f"{_FLOAT_INFIX[name]} {kind} {a[0]}, {a[1]}")
    if name in _FLOAT_TESTS:
        return put(f"fcmp {_FLOAT_TESTS[name]} {kind} {a[0]}, {a[1]}")
    if name in _INTRINSICS:
        return _intrinsic(put, _INTRINSICS[name], kind, a[0])
    if defined(name, kind):
        given = a[: 2 if name in BINARY else 1]
        return put(f"call {kind} @od_{name}_{kind}({', '.join(f'{kind} {v}' for v in given)})")
    if name == "neg":
        return put(f"fneg {kind} {a[0]}")
    if name in ("max", "min"):
        # The first where it is a NaN or wins, else the second: a NaN on either side comes out.
        wins = put(f"fcmp {'ogt' if name == 'max' else 'olt'} {kind} {a[0]}, {a[1]}")
        nan = put(f"fcmp uno {kind} {a[0]}, {a[0]}")
        first = put(f"or i1 {wins}, {nan}")
        return put(f"select i1 {first}, {kind} {a[0]}, {kind} {a[1]}")
    if name == "floordiv":
        return _intrinsic(put, "floor", kind, put(f"fdiv {kind} {a[0]}, {a[1]}"))
    if name == "isnan":
        return put(f"fcmp uno {kind} {a[0]}, {a[0]}")
    if name in ("isinf", "isfinite"):
        size, infinity = _intrinsic(put, "fabs", kind, a[0]), number(float("inf"), kind)
        return put(f"fcmp {'oeq' if name == 'isinf' else 'olt'} {kind} {size}, {infinity}")
    if name == "sign":
        zero, one, less = (number(v, kind) for v in (0.0, 1.0, -1.0))
        up, down = (put(f"fcmp {t} {kind} {a[0]}, {zero}") for t in ("ogt", "olt"))
        nan = put(f"fcmp uno {kind} {a[0]}, {a[0]}")
        rest = put(f"select i1 {nan}, {kind} {a[0]}, {kind} {zero}")  # no zero is negative
        rest = put(f"select i1 {down}, {kind} {less}, {kind} {rest}")
        return put(f"select i1 {up}, {kind} {one}, {kind} {rest}")
    return ""


def _whole(put: Emit, name: str, dtype: DType, a: list[str]) -> str:
    """A function of integers and truth values; "" where there is none."""
    kind, signed = computed(dtype), "u" if dtype.is_unsigned or dtype is dtypes.bool_ else "s"
    tests = {"lt": f"{signed}lt", "le": f"{signed}le", "gt": f"{signed}gt", "ge": f"{signed}ge",
             "eq": "eq", "ne": "ne"}  # fmt: skip
    if name in tests:
        return put(f"icmp {tests[name]} {kind} {a[0]}, {a[1]}")
    if name in _BITS:
        return put(f"{_BITS[name]} {kind} {a[0]}, {a[1]}")
    if name == "bitnot":
        return put(f"xor {kind} {a[0]}, -1")
    if dtype is dtypes.bool_:
        return ""
    if name in _WHOLE_INFIX:
        return put(f"{_WHOLE_INFIX[name]} {kind} {a[0]}, {a[1]}")
    if name in ("max", "min"):
        return put(f"call {kind} @llvm.{signed}{name}.{kind}({kind} {a[0]}, {kind} {a[1]})")
    if name == "neg":
        return put(f"sub {kind} 0, {a[0]}")
    if name == "abs":
        return a[0] if signed == "u" else put(f"call {kind} @llvm.abs.{kind}({kind} {a[0]}, i1 0)")
    if name == "sign":
        up = put(f"zext i1 {put(f'icmp {signed}gt {kind} {a[0]}, 0')} to {kind}")
        down = put(f"zext i1 {put(f'icmp {signed}lt {kind} {a[0]}, 0')} to {kind}")
        return put(f"sub {kind} {up}, {down}")
    return ""


def _applied(put: Emit, name: str, dtype: DType, a: list[str]) -> str:
    if name == "where":
        return put(f"select i1 {a[0]}, {computed(dtype)} {a[1]}, {computed(dtype)} {a[2]}")
    if name == "conj":
        return a[0]
    if dtype.is_floating:
        return _float(put, name, computed(dtype), a)
    return _whole(put, name, dtype, a)


def _converted(put: Emit, source: DType, target: DType, value: str) -> str:
    old, new = computed(source), computed(target)
    unsigned = source.is_unsigned or source is dtypes.bool_
    if target in _HALVES:
        narrow = _converted(put, source, dtypes.float32, value)
        bits = stored(put, target, narrow)
        if target is dtypes.float16:
            return put(f"fpext half {bits} to float")
        return _from_bfloat16(put, bits)
    if target is dtypes.bool_:
        if source.is_floating:
            return put(f"fcmp une {old} {value}, {number(0.0, old)}")
        return put(f"icmp ne {old} {value}, 0")
    if source.is_floating and target.is_floating:
        if old == new:
            return value
        return put(f"{'fpext' if new == 'double' else 'fptrunc'} {old} {value} to {new}")
    if source.is_floating:
        return _to_whole(put, old, target, value)
    if target.is_floating:
        return put(f"{'uitofp' if unsigned else 'sitofp'} {old} {value} to {new}")
    if old == new:
        return value
    wider = target.size > source.size or old == "i1"
    how = ("zext" if unsigned else "sext") if wider else "trunc"
    return put(f"{how} {old} {value} to {new}")


def _to_whole(put: Emit, old: str, target: DType, value: str) -> str:
    # What does not fit is whatever the processor gives, as in NumPy, but never poison.
    wide = computed(target) if target.size >= 4 and not target.is_unsigned else "i64"
    whole = put(f"freeze {wide} {put(f'fptosi {old} {value} to {wide}')}")
    new = computed(target)
    return whole if wide == new else put(f"trunc {wide} {whole} to {new}")


def generated(dtype: DType) -> bool | str:
    """True, or that there is no code for an element type."""
    return dtype.name in _TYPES or f"{dtype.name} is not generated"


def renders(line: Any) -> bool | str:
    """True, or the first reason why a line has no code that vectorizes."""
    for step in line.steps:
        answer = generated(step.dtype)
        if answer is not True:
            return answer
    for step in line.steps:
        if step.op in (codegen.INPUT, codegen.NUMBER, codegen.CAST):
            continue
        operand = line.steps[step.args[-1]].dtype
        if not _applied(lambda _: "%x", step.op, operand, ["%x"] * 3):
            return f"'{step.op}' of {operand.name} does not vectorize"
    return True


def needs(line: Any) -> set[tuple[str, str]]:
    """The mathematical functions that a line calls, with the LLVM type of each."""
    return {
        (name, computed(line.steps[step.args[0]].dtype))
        for name, step in zip(_names(line), line.steps, strict=True)
        if step.op in DEFINED
    }


_SEEN = 2.0**-60
"""A number beside which an exponential that is not a normal number is nothing."""


def _names(line: Any) -> list[str]:
    """What computes each step: there is a quicker exponential for sums with a number."""
    hidden = set(line.results)
    for step in line.steps:
        numbers = [line.steps[a] for a in step.args if line.steps[a].op == codegen.NUMBER]
        if step.op not in ("add", "sub") or not any(abs(n.value) >= _SEEN for n in numbers):
            hidden.update(step.args)
    return [
        EXP_NORMAL if step.op == "exp" and i not in hidden else step.op
        for i, step in enumerate(line.steps)
    ]


def body(put: Emit, line: Any, inputs: Mapping[str, str]) -> list[str]:
    """Puts the instructions of a line; the values of its results.

    Args:
        put: takes instructions.
        line: the typed steps.
        inputs: the values of the inputs, by name.
    """
    values: list[str] = []
    for name, step in zip(_names(line), line.steps, strict=True):
        args = [values[a] for a in step.args]
        if step.op == codegen.INPUT:
            value = inputs[step.value]
        elif step.op == codegen.NUMBER:
            value = _constant(step.dtype, step.value)
        elif step.op == codegen.CAST:
            value = _converted(put, line.steps[step.args[0]].dtype, step.dtype, args[0])
        else:
            value = _applied(put, name, line.steps[step.args[-1]].dtype, args)
        values.append(value)
    return [values[r] for r in line.results]


def _constant(dtype: DType, value: Any) -> str:
    if dtype is dtypes.bool_:
        return "1" if value else "0"
    if dtype.is_integer:
        return str(int(value))
    return number(float(value), computed(dtype))
