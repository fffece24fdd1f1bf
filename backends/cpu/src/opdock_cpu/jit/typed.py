"""Values of LLVM's types, and instructions that compute with them as Python and NumPy do.

Whole numbers are int64. A literal takes the type of what it meets, as with NumPy's scalars.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Final

from opdock_cpu.jit.mathematics import ANGLES, BINARY, DEFINED, definition, number

__all__ = ["CALLS", "REAL", "WHOLE", "Instructions", "Value"]

WHOLE: Final = "i64"
REAL: Final = ("float", "double")
_ARITHMETIC: Final[dict[type[ast.operator], tuple[str, str]]] = {
    ast.Add: ("add", "fadd"), ast.Sub: ("sub", "fsub"), ast.Mult: ("mul", "fmul"),
    ast.BitAnd: ("and", ""), ast.BitOr: ("or", ""), ast.BitXor: ("xor", ""),
    ast.RShift: ("ashr", ""), ast.LShift: ("shl", ""),
}  # fmt: skip
_TESTS: Final[dict[type[ast.cmpop], tuple[str, str]]] = {
    ast.Lt: ("slt", "olt"), ast.LtE: ("sle", "ole"), ast.Gt: ("sgt", "ogt"),
    ast.GtE: ("sge", "oge"), ast.Eq: ("eq", "oeq"), ast.NotEq: ("ne", "une"),
}  # fmt: skip
_ROUNDED: Final = ("floor", "ceil")
CALLS: Final = frozenset({
    "int", "double", "single", "isnan", "min", "max", "abs", "sqrt", "lower", "nearest", *_ROUNDED,
    *ANGLES, *(DEFINED.keys() - {"pow"}),  # which is not exact enough in double precision
})  # fmt: skip
"""Functions of Python and of `math`; `single`, `double`, `lower`, `nearest` are NumPy's float32,
float64, floor and rint."""


@dataclass(frozen=True, slots=True)
class Value:
    """A value: its LLVM type and its name; a literal has no type of its own yet."""

    kind: str
    name: str
    literal: float | None = None


class Instructions:
    """Instructions of one function, as they are written.

    Attributes:
        lines: all of them, labels among them.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._functions: set[tuple[str, str]] = set()
        self._count = 0

    def definitions(self) -> list[str]:
        """The mathematical functions that they call."""
        return [definition(*key) for key in sorted(self._functions)]

    def put(self, text: str) -> str:
        """An instruction; its value's name."""
        self._count += 1
        self.lines.append(f"  %v{self._count} = {text}")
        return f"%v{self._count}"

    def add(self, text: str) -> None:
        """An instruction without a value."""
        self.lines.append(f"  {text}")

    def labels(self, *names: str) -> list[str]:
        """Names for blocks, or for variables, that nothing else has."""
        self._count += 1
        return [f"{name}{self._count}" for name in names]

    def start(self, label: str) -> None:
        """Begins a block that nothing falls into."""
        self.lines.append(f"{label}:")

    def block(self, label: str) -> None:
        """Begins a block that what was written last goes on into."""
        self.add(f"br label %{label}")
        self.start(label)

    def branch(self, test: Value, yes: str, no: str) -> None:
        """Goes on in one of two blocks; the first begins here."""
        self.add(f"br i1 {self.truth(test).name}, label %{yes}, label %{no}")
        self.start(yes)

    # ------------------------------------------------------------ arithmetic
    def binary(self, op: ast.operator, a: Value, b: Value) -> Value:
        """An operator of two values."""
        a, b, kind = self._met(a, b, real=isinstance(op, ast.Div))
        if isinstance(op, ast.Div):
            return Value(kind, self.put(f"fdiv {kind} {a.name}, {b.name}"))
        if isinstance(op, (ast.FloorDiv, ast.Mod)) and kind == WHOLE:
            return self._floored(isinstance(op, ast.Mod), a.name, b.name)
        how = _ARITHMETIC.get(type(op), ("", ""))[kind in REAL]
        if not how or (kind == "i1" and how in ("add", "sub", "mul")):
            raise TypeError(f"no {type(op).__name__} of {kind}")
        return Value(kind, self.put(f"{how} {kind} {a.name}, {b.name}"))

    def _floored(self, rest: bool, a: str, b: str) -> Value:
        """Quotient or remainder, rounded down as Python's."""
        remainder = self.put(f"srem i64 {a}, {b}")
        uneven = self.put(f"icmp ne i64 {remainder}, 0")
        crossed = self.put(f"icmp slt i64 {self.put(f'xor i64 {remainder}, {b}')}, 0")
        lower = self.put(f"and i1 {uneven}, {crossed}")
        if rest:
            more = self.put(f"select i1 {lower}, i64 {b}, i64 0")
            return Value(WHOLE, self.put(f"add i64 {remainder}, {more}"))
        quotient = self.put(f"sdiv i64 {a}, {b}")
        less = self.put(f"sext i1 {lower} to i64")
        return Value(WHOLE, self.put(f"add i64 {quotient}, {less}"))

    def unary(self, op: ast.unaryop, a: Value) -> Value:
        """An operator of one value."""
        if isinstance(op, ast.Not):
            return Value("i1", self.put(f"xor i1 {self.truth(a).name}, 1"))
        if not isinstance(op, ast.USub):
            raise TypeError(f"not translated: {type(op).__name__}")
        if a.literal is not None:
            less = -a.literal
            return Value(a.kind, number(less, a.kind) if a.kind in REAL else str(less), less)
        if a.kind in REAL:
            return Value(a.kind, self.put(f"fneg {a.kind} {a.name}"))
        return Value(a.kind, self.put(f"sub {a.kind} 0, {a.name}"))

    def compare(self, test: ast.cmpop, a: Value, b: Value) -> Value:
        """A comparison."""
        a, b, kind = self._met(a, b)
        word = f"fcmp {_TESTS[type(test)][1]}" if kind in REAL else f"icmp {_TESTS[type(test)][0]}"
        return Value("i1", self.put(f"{word} {kind} {a.name}, {b.name}"))

    def pick(self, test: Value, a: Value, b: Value) -> Value:
        """One of two values, without a branch.

        Stored where one of them was loaded from, this must not become a store under a mask, as
        LLVM has it for AVX2: many processors take twenty cycles for one. `freeze` keeps it apart.
        """
        condition = self.truth(test).name
        a, b, kind = self._met(a, b)
        one, other = (
            self.put(f"freeze {kind} {v.name}") if kind in REAL and v.literal is None else v.name
            for v in (a, b)
        )
        return Value(kind, self.put(f"select i1 {condition}, {kind} {one}, {kind} {other}"))

    def call(self, name: str, args: list[Value]) -> Value:
        """A function of `CALLS`."""
        if name in ("min", "max"):
            return self._extreme(name, *args)
        if name in BINARY:
            return self._of_two(name, *args)
        (a,) = args
        if name in ("double", "single"):
            value = self.converted(a, "double" if name == "double" else "float")
            return Value(value.kind, value.name)
        if name == "int":
            return self.whole(a)
        if name == "isnan":
            return self.compare(ast.NotEq(), a, a)
        if name == "abs" and a.kind == WHOLE:
            return Value(WHOLE, self.put(f"call i64 @llvm.abs.i64(i64 {a.name}, i1 0)"))
        a = a if a.kind in REAL else self.converted(a, "double")
        if name in ANGLES and a.kind != "float":
            raise TypeError(f"{name} is one of single precision alone")
        k, suffix = a.kind, "f32" if a.kind == "float" else "f64"
        if name in DEFINED or name in ANGLES:
            self._functions.add((name, k))
            return Value(k, self.put(f"call {k} @od_{name}_{k}({k} {a.name})"))
        how = {"abs": "fabs", "lower": "floor", "nearest": "rint"}.get(name, name)
        found = Value(k, self.put(f"call {k} @llvm.{how}.{suffix}({k} {a.name})"))
        return self.whole(found) if name in _ROUNDED else found

    def _of_two(self, name: str, a: Value, b: Value) -> Value:
        a, b, k = self._met(a, b, real=True)
        self._functions.add((name, k))
        return Value(k, self.put(f"call {k} @od_{name}_{k}({k} {a.name}, {k} {b.name})"))

    def _extreme(self, name: str, a: Value, b: Value) -> Value:
        """As Python's: the second where it is the larger or smaller, else the first."""
        a, b, _ = self._met(a, b)
        return self.pick(self.compare(ast.Gt() if name == "max" else ast.Lt(), b, a), b, a)

    # ------------------------------------------------------------ types
    def _met(self, a: Value, b: Value, real: bool = False) -> tuple[Value, Value, str]:
        """Both values in the type in which they are computed with."""
        firm = [v.kind for v in (a, b) if v.literal is None or v.kind == WHOLE]
        weak = [v.kind for v in (a, b)]
        reals = [k for k in firm if k in REAL] or [k for k in weak if k in REAL]
        if reals or real:
            kind = "double" if "double" in reals or not reals else "float"
        else:
            kind = WHOLE if WHOLE in weak else "i1"
        return self.converted(a, kind), self.converted(b, kind), kind

    def converted(self, value: Value, kind: str) -> Value:
        """A value in another type."""
        old, name = value.kind, value.name
        if old == kind:
            return value
        if value.literal is not None and kind in REAL:
            return Value(kind, number(value.literal, kind), value.literal)
        if kind in REAL and old in REAL:
            how = "fpext" if kind == "double" else "fptrunc"
            return Value(kind, self.put(f"{how} {old} {name} to {kind}"))
        if kind in REAL:
            how = "uitofp" if old == "i1" else "sitofp"
            return Value(kind, self.put(f"{how} {old} {name} to {kind}"))
        if kind == "i1" and value.literal in (0, 1):
            return Value(kind, "true" if value.literal else "false")
        if kind == WHOLE and old == "i1":
            return Value(kind, self.put(f"zext i1 {name} to i64"))
        raise TypeError(f"a value of type {old} where {kind} is wanted")

    def whole(self, value: Value) -> Value:
        """A whole number; one that is not is cut off towards zero."""
        if value.kind not in REAL:
            return self.converted(value, WHOLE)
        # What does not fit is any number, but never poison.
        whole = self.put(f"fptosi {value.kind} {value.name} to i64")
        return Value(WHOLE, self.put(f"freeze i64 {whole}"))

    def truth(self, value: Value) -> Value:
        """A value by which something is decided."""
        if value.kind != "i1":
            raise TypeError("a comparison is wanted where something is decided")
        return value
