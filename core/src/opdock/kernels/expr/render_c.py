"""Scalar expressions as C: one renderer for every dialect that a device's compiler reads.

A `Dialect` says what the dialects do not share: names of types, qualifiers, how a 16-bit float is
loaded and stored. `render` turns a `Line` into statements; `elementwise_source` puts a kernel with
broadcasting around them. Values are computed in their own type, 16-bit floats in 32 bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from opdock import dtypes
from opdock.dtypes import DType
from opdock.kernels.expr.functions import DIVISION_BY_ZERO, NEGATIVE_POWER
from opdock.kernels.expr.lowering import CAST, INPUT, NUMBER, Line, Step

__all__ = [
    "ERRORS", "RENDERED", "Dialect", "Rendered", "can_render", "elementwise_source", "helpers",
    "render",
]  # fmt: skip

ERRORS: Final[dict[int, str]] = {1: DIVISION_BY_ZERO, 2: NEGATIVE_POWER}
"""What a kernel that took a `flag` means by the number that it left there."""

_HALVES: Final = frozenset({dtypes.float16, dtypes.bfloat16})
RENDERED: Final[frozenset[DType]] = dtypes.REALS | {dtypes.bool_}
"""The element types that can be rendered."""


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """What sets one C dialect apart.

    Attributes:
        name: for messages.
        types: the name of each element type as it is stored, by DType name; bool and bfloat16 are
            stored as unsigned integers.
        kernel: what introduces a kernel, before its name.
        pointer: the qualifier of pointers to device memory, with a space behind it.
        function: what introduces a helper function, with a space behind it.
        index: the number of the work item, as an expression.
        prelude: text before everything else; it defines `od_load_half(p, i)`,
            `od_store_half(p, i, v)`, `od_round_half(v)`, `od_float_bits(v)` and
            `od_bits_float(v)`.
        single: the suffix of math functions of single precision ("f", or empty where they are
            overloaded).
    """

    name: str
    types: Mapping[str, str]
    kernel: str
    pointer: str
    function: str
    index: str
    prelude: str
    single: str = ""

    def stored(self, dtype: DType) -> str:
        """The C type of an element in memory."""
        return self.types[dtype.name]

    def computed(self, dtype: DType) -> str:
        """The C type in which an element is computed."""
        return "float" if dtype in _HALVES else self.types[dtype.name]

    def load(self, dtype: DType, pointer: str, index: str) -> str:
        """The expression that reads an element."""
        if dtype is dtypes.float16:
            return f"od_load_half({pointer}, {index})"
        if dtype is dtypes.bfloat16:
            return f"od_from_bf16({pointer}[{index}])"
        if dtype is dtypes.bool_:
            return f"({pointer}[{index}] != 0)"
        return f"{pointer}[{index}]"

    def store(self, dtype: DType, pointer: str, index: str, value: str) -> str:
        """The statement that writes an element."""
        if dtype is dtypes.float16:
            return f"od_store_half({pointer}, {index}, {value});"
        if dtype is dtypes.bfloat16:
            return f"{pointer}[{index}] = od_to_bf16({value});"
        return f"{pointer}[{index}] = {value};"

    def number(self, dtype: DType, value: float) -> str:
        """A literal of the type in which `dtype` is computed."""
        if dtype is dtypes.bool_:
            return "1" if value else "0"
        kind = self.computed(dtype)
        if dtype.is_integer:
            if isinstance(value, float) and not value.is_integer():
                raise ValueError(f"The number {value} is not a {dtype.name}.")
            whole = int(value)
            if whole == int(dtypes.int64.min):
                return f"({kind})(-{-whole - 1}L - 1)"
            suffix = "UL" if dtype.is_unsigned else "L"
            return f"({kind}){whole}{suffix}" if whole >= 0 else f"({kind})({whole}L)"
        if math.isnan(value):
            return f"({kind})NAN"
        if math.isinf(value):
            return f"({kind})INFINITY" if value > 0 else f"(-({kind})INFINITY)"
        text = repr(float(value))
        text += "f" if kind == "float" else ""
        return f"({text})" if text.startswith("-") else text


@dataclass(frozen=True, slots=True)
class Rendered:
    """Statements, and the C expressions of the line's results once they have run."""

    statements: tuple[str, ...]
    results: tuple[str, ...]


# ---------------------------------------------------------------- functions
_Spell = Callable[[Dialect, DType, Sequence[str]], str]
_MATH: Final = frozenset(
    ("exp", "expm1", "log", "log1p", "sqrt", "sin", "cos", "tan", "asin", "acos", "atan", "sinh",
     "cosh", "tanh", "asinh", "acosh", "atanh", "atan2", "floor", "ceil", "trunc", "erf", "erfc",
     "lgamma", "nextafter")
)  # fmt: skip
_INFIX: Final = {
    "add": "+", "sub": "-", "mul": "*", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==",
    "ne": "!=", "bitand": "&", "bitor": "|", "bitxor": "^",
}  # fmt: skip
_FLAGGED: Final = {"div": "od_div", "floordiv": "od_floordiv", "mod": "od_mod", "fmod": "od_fmod",
                   "pow": "od_pow"}  # fmt: skip


def _call(dialect: Dialect, dtype: DType, name: str, *args: str) -> str:
    suffix = dialect.single if dialect.computed(dtype) == "float" else ""
    return f"{name}{suffix}({', '.join(args)})"


def _divide(d: Dialect, t: DType, a: Sequence[str]) -> str:
    return f"{a[0]} / {a[1]}"


def _floor_divide(d: Dialect, t: DType, a: Sequence[str]) -> str:
    return _call(d, t, "floor", f"{a[0]} / {a[1]}")


def _absolute(d: Dialect, t: DType, a: Sequence[str]) -> str:
    if t.is_floating:
        return _call(d, t, "fabs", a[0])
    return a[0] if t.is_unsigned else f"({a[0]} < 0 ? -{a[0]} : {a[0]})"


def _sign(d: Dialect, t: DType, a: Sequence[str]) -> str:
    (x,) = a
    # No zero is negative, and nan stays.
    rest = f"({x} < 0 ? -1 : {x} == 0 ? 0 : {x})" if t.is_floating else f"-({x} < 0)"
    return f"({x} > 0 ? 1 : {'0' if t.is_unsigned else rest})"


def _shift(symbol: str) -> _Spell:
    def spell(d: Dialect, t: DType, a: Sequence[str]) -> str:
        last = t.size * 8 - 1
        low = "" if t.is_unsigned else f"{a[1]} < 0 ? 0 : "
        amount = f"({low}{a[1]} > {last} ? {last} : {a[1]})"
        unsigned = d.types[f"uint{t.size * 8}"]
        return f"({unsigned}){a[0]} << {amount}" if symbol == "<<" else f"{a[0]} >> {amount}"

    return spell


def _unsigned(d: Dialect, t: DType, a: Sequence[str]) -> str:
    return f"od_popcount(({d.types[f'uint{t.size * 8}']}){a[0]})"


# A NaN on either side must win, which C's fmax does not do.
_OTHERS: Final[dict[str, _Spell]] = {
    "div": _divide,
    "floordiv": _floor_divide,
    "mod": lambda d, t, a: f"od_fmod_floor_{d.computed(t)}({a[0]}, {a[1]})",
    "fmod": lambda d, t, a: _call(d, t, "fmod", *a),
    "pow": lambda d, t, a: _call(d, t, "pow", *a),
    "neg": lambda d, t, a: f"-{a[0]}",
    "abs": _absolute,
    "sign": _sign,
    "max": lambda d, t, a: f"({a[0]} > {a[1]} || {a[0]} != {a[0]} ? {a[0]} : {a[1]})",
    "min": lambda d, t, a: f"({a[0]} < {a[1]} || {a[0]} != {a[0]} ? {a[0]} : {a[1]})",
    "rint": lambda d, t, a: _call(d, t, "rint", *a) if t.is_floating else a[0],
    "isnan": lambda d, t, a: f"{a[0]} != {a[0]}",
    "isinf": lambda d, t, a: f"{_call(d, t, 'fabs', a[0])} == INFINITY",
    "isfinite": lambda d, t, a: f"{_call(d, t, 'fabs', a[0])} < INFINITY",
    "where": lambda d, t, a: f"({a[0]} ? {a[1]} : {a[2]})",
    "bitnot": lambda d, t, a: f"!{a[0]}" if t is dtypes.bool_ else f"~{a[0]}",
    "shl": _shift("<<"),
    "shr": _shift(">>"),
    "popcount": _unsigned,
    "conj": lambda d, t, a: a[0],
}


def _knows(function: str) -> bool:
    return function in _MATH or function in _INFIX or function in _OTHERS


def can_render(line: Line) -> bool:
    """Whether every function and type of a line has a spelling in C."""
    return all(s.dtype in RENDERED for s in line.steps) and all(map(_knows, line.functions))


def _spell(dialect: Dialect, step: Step, operand: DType, args: Sequence[str]) -> str:
    name = step.op
    if operand.is_integer and name in _FLAGGED:
        return f"{_FLAGGED[name]}_{operand.name}({args[0]}, {args[1]}, flag)"
    if name in _INFIX:
        return f"{args[0]} {_INFIX[name]} {args[1]}"
    if name in _MATH:
        return _call(dialect, operand, name, *args)
    if name in _OTHERS:
        return _OTHERS[name](dialect, operand, args)
    raise ValueError(f"'{name}' has no spelling in {dialect.name}.")


def _convert(dialect: Dialect, source: DType, target: DType, value: str) -> str:
    if target is dtypes.bool_:
        return f"{value} != 0"
    if target is dtypes.float16:
        return f"od_round_half((float){value})"
    if target is dtypes.bfloat16:
        return f"od_from_bf16(od_to_bf16((float){value}))"
    if source.is_floating and target.is_integer and target.size < 4:
        # Through a wide integer, so that what does not fit wraps instead of being undefined.
        return f"({dialect.stored(target)})({dialect.types['int64']}){value}"
    return f"({dialect.computed(target)}){value}"


def render(line: Line, dialect: Dialect, loads: Mapping[str, str]) -> Rendered:
    """The statements that compute a line.

    Args:
        line: the typed steps.
        dialect: the C to write.
        loads: input name -> the C expression of its value in the type it is computed in.

    Raises:
        ValueError: a function or a type has no spelling.
    """
    statements = []
    for i, step in enumerate(line.steps):
        if step.dtype not in RENDERED:
            raise ValueError(f"{step.dtype.name} has no spelling in {dialect.name}.")
        args = [f"v{a}" for a in step.args]
        if step.op == INPUT:
            value = loads[step.value]
        elif step.op == NUMBER:
            value = dialect.number(step.dtype, step.value)
        elif step.op == CAST:
            value = _convert(dialect, line.steps[step.args[0]].dtype, step.dtype, args[0])
        else:
            value = _spell(dialect, step, line.steps[step.args[-1]].dtype, args)
        kind = dialect.computed(step.dtype)
        # C computes small integers as int; the initialization rounds back to the type.
        statements.append(f"{kind} v{i} = {value};")
    return Rendered(tuple(statements), tuple(f"v{r}" for r in line.results))


# ---------------------------------------------------------------- helper functions
_BF16: Final = """
@float od_from_bf16(ushort_t x) { return od_bits_float((uint_t)x << 16); }
@ushort_t od_to_bf16(float x) {
  uint_t b = od_float_bits(x);
  if (x != x) return 0x7fc0;
  return (ushort_t)((b + 0x7fff + ((b >> 16) & 1)) >> 16);
}
"""
_POPCOUNT: Final = """
@int od_popcount(ulong_t x) {
  int n = 0;
  while (x) { x &= x - 1; ++n; }
  return n;
}
"""
_FLOOR_MOD: Final = """
@T od_fmod_floor_T(T a, T b) {
  T m = FMOD(a, b);
  return m != 0 && (b < 0) != (m < 0) ? m + b : m;
}
"""
# The quotient of the smallest number and -1 does not fit, and traps on some processors.
_INTEGER: Final = """
@T od_div_N(T a, T b, $int* flag) {
  if (b == 0) { *flag = 1; return 0; }
  return b == (T)-1 && SIGNED ? (T)(0 - (U)a) : a / b;
}
@T od_fmod_N(T a, T b, $int* flag) {
  if (b == 0) { *flag = 1; return 0; }
  return b == (T)-1 && SIGNED ? 0 : a % b;
}
@T od_mod_N(T a, T b, $int* flag) {
  T m = od_fmod_N(a, b, flag);
  return m != 0 && (b < 0) != (m < 0) ? m + b : m;
}
@T od_floordiv_N(T a, T b, $int* flag) {
  T q = od_div_N(a, b, flag);
  return b != 0 && od_fmod_N(a, b, flag) != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}
@T od_pow_N(T a, T b, $int* flag) {
  U r = 1, x = (U)a;
  if (b < 0) { *flag = 2; return 0; }
  for (; b; b >>= 1) { if (b & 1) r *= x; x *= x; }
  return (T)r;
}
"""


def helpers(dialect: Dialect, code: str) -> str:
    """The prelude, and the helper functions that occur in `code`."""
    parts = [_BF16] if "_bf16" in code else []
    parts += [_POPCOUNT] if "od_popcount" in code else []
    for kind in ("float", "double"):
        if f"od_fmod_floor_{kind}" in code:
            suffix = dialect.single if kind == "float" else ""
            parts.append(_FLOOR_MOD.replace("T", kind).replace("FMOD", f"fmod{suffix}"))
    for dtype in sorted(dtypes.INTS, key=lambda t: t.name):
        if any(f"{f}_{dtype.name}(" in code for f in _FLAGGED.values()):
            parts.append(_integer_helpers(dialect, dtype))
    text = "\n".join([dialect.prelude, *parts])
    for short, full in (("ushort_t", "uint16"), ("uint_t", "uint32"), ("ulong_t", "uint64")):
        text = text.replace(short, dialect.types[full])
    return text.replace("@", dialect.function).replace("$", dialect.pointer)


def _integer_helpers(dialect: Dialect, dtype: DType) -> str:
    text = _INTEGER.replace("SIGNED", "0" if dtype.is_unsigned else "1")
    text = text.replace("_N", f"_{dtype.name}")
    # Small unsigned types would be computed as int, whose overflow is undefined.
    wide = dialect.types[f"uint{max(dtype.size, 4) * 8}"]
    return text.replace("U", wide).replace("T", dialect.stored(dtype))


# ---------------------------------------------------------------- elementwise kernels
def elementwise_source(
    name: str,
    line: Line,
    dialect: Dialect,
    inputs: Sequence[tuple[str, DType]],
    outputs: Sequence[DType],
    patterns: Sequence[tuple[bool, ...]],
    *,
    index: str = "int64",
    lined: bool = False,
) -> str:
    """A kernel that computes a line for each element of a broadcast.

    Its parameters are the inputs, the outputs, `flag` if the line may raise, the number of elements
    in the type `index`, and for each dimension of the patterns but the first its size.

    Args:
        name: the kernel's name.
        line: the typed steps.
        dialect: the C to write.
        inputs: the names and types of the arguments, in order.
        outputs: the types of the results.
        patterns: for each input and collapsed dimension, whether the input varies along it; an
            input without any dimension is a scalar.
        index: the type of indices: "int32" is faster where it suffices.
        lined: whether a work item computes all of the last dimension: `n` is how often then.
    """
    rank = len(patterns[0]) if patterns else 1
    long = dialect.types[index]
    place = dialect.pointer
    params = [f"{place}const {dialect.stored(t)}* x{i}" for i, (_, t) in enumerate(inputs)]
    params += [f"{place}{dialect.stored(t)}* y{i}" for i, t in enumerate(outputs)]
    if line.may_raise:
        params.append(f"{dialect.pointer}int* flag")
    params += [f"{long} n"] + [f"{long} n{d}" for d in range(1, rank)]
    lines = [f"{long} i = {dialect.index};", "if (i >= n) return;"]
    needed = rank > 1 and any(not all(p) and any(p) for p in patterns)
    if lined:
        last = rank - 1
        lines[0] = f"{long} row = {dialect.index}, rest = row;"
        lines[1] = "if (row >= n) return;"
        rank = last
    elif needed:
        lines.append(f"{long} rest = i;")
    if lined or needed:
        for d in range(rank - 1, 0, -1):
            lines += [f"{long} i{d} = rest % n{d};", f"rest /= n{d};"]
        lines.append(f"{long} i0 = rest;")
    if lined:
        walk = f"{long} i{last} = 0, i = row * n{last}; i{last} < n{last}; ++i{last}, ++i"
        lines.append(f"for ({walk}) {{")
    loads = {}
    for j, ((text, dtype), pattern) in enumerate(zip(inputs, patterns, strict=True)):
        loads[text] = dialect.load(dtype, f"x{j}", _offset(pattern))
    body = render(line, dialect, loads)
    lines += body.statements
    for j, (dtype, value) in enumerate(zip(outputs, body.results, strict=True)):
        lines.append(dialect.store(dtype, f"y{j}", "i", value))
    if lined:
        lines.append("}")
    inner = "\n  ".join(lines)
    head = f"{helpers(dialect, inner)}\n{dialect.kernel} {name}({', '.join(params)})"
    return f"{head} {{\n  {inner}\n}}\n"


def _offset(pattern: tuple[bool, ...]) -> str:
    if all(pattern):
        return "i"
    text = ""
    for d, varies in enumerate(pattern):
        if varies:
            text = f"({text}) * n{d} + i{d}" if text else f"i{d}"
    return text or "0"
