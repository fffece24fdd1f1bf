"""Loops that are written in Python as LLVM assembly.

What such a function may consist of: assignments, `for` over a range, `while`, `if`, `break`,
`continue`; elements of flat arrays, arithmetic, comparisons, `and`, `or`, `not`; and the functions
of `CALLS`. Whole numbers are int64, as an index is; a real number has the type of the array that it
comes from, and a literal that of what it meets, as with NumPy's scalars. A parameter is in double
precision, and a variable keeps the type of its first value.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from opdock.plugin import DType, as_dtype, dtypes
from opdock_cpu.jit import render
from opdock_cpu.jit.mathematics import BINARY, DEFINED, definition, number

__all__ = ["CALLS", "Parameters", "core", "known", "parameters"]

_ELEMENTS: Final = frozenset({
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "float16", "float32",
    "float64",
})  # fmt: skip
_WHOLE: Final = "i64"
_REAL: Final = ("float", "double")
_ARITHMETIC: Final[dict[type[ast.operator], tuple[str, str]]] = {
    ast.Add: ("add", "fadd"), ast.Sub: ("sub", "fsub"), ast.Mult: ("mul", "fmul"),
    ast.BitAnd: ("and", ""), ast.BitOr: ("or", ""), ast.BitXor: ("xor", ""),
    ast.RShift: ("ashr", ""),
}  # fmt: skip
_TESTS: Final[dict[type[ast.cmpop], tuple[str, str]]] = {
    ast.Lt: ("slt", "olt"), ast.LtE: ("sle", "ole"), ast.Gt: ("sgt", "ogt"),
    ast.GtE: ("sge", "oge"), ast.Eq: ("eq", "oeq"), ast.NotEq: ("ne", "une"),
}  # fmt: skip
_ROUNDED: Final = ("floor", "ceil")
CALLS: Final = frozenset(
    {
        "int",
        "double",
        "single",
        "isnan",
        "min",
        "max",
        "abs",
        "sqrt",
        *_ROUNDED,
        *(DEFINED.keys() - BINARY),
    }
)
"""Functions of Python and of `math`; `single` and `double` are numpy.float32 and float64."""


@dataclass(frozen=True)
class Parameters:
    """What a function takes behind the range of its outer loop.

    Attributes:
        tree: the function.
        arrays, wholes, reals: the names of flat arrays, whole and real numbers.
    """

    tree: ast.FunctionDef
    arrays: tuple[str, ...]
    wholes: tuple[str, ...]
    reals: tuple[str, ...]


def parameters(function: Callable[..., None]) -> Parameters:
    """What a function takes: `begin` and `end`, then arrays and numbers, each annotated."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    assert isinstance(tree, ast.FunctionDef)
    kinds: dict[str, list[str]] = {"Array": [], "int": [], "float": []}
    for arg in tree.args.args[2:]:
        kinds[ast.unparse(arg.annotation) if arg.annotation else ""].append(arg.arg)
    arrays, wholes, reals = (tuple(kinds[k]) for k in ("Array", "int", "float"))
    return Parameters(tree, arrays, wholes, reals)


def known(elements: Sequence[np.dtype[Any]]) -> bool:
    """Whether there are loops over arrays of these types."""
    return all(e.isnative and e.name in _ELEMENTS for e in elements)


def core(about: Parameters, elements: Sequence[np.dtype[Any]]) -> str:
    """The function `@core(arrays..., whole numbers, real numbers, begin, end)` and its helpers.

    Args:
        about: the function.
        elements: the type of each array's elements.

    Raises:
        TypeError: the function has something in it that is not translated.
    """
    types = [as_dtype(e) for e in elements]
    return _Translation(about, dict(zip(about.arrays, types, strict=True))).text()


@dataclass(frozen=True, slots=True)
class _Value:
    """A value: its LLVM type and its name; a literal has no type of its own yet."""

    kind: str
    name: str
    literal: float | None = None


class _Translation:
    """One function for arrays of known types."""

    def __init__(self, about: Parameters, arrays: dict[str, DType]) -> None:
        self._about, self._arrays = about, arrays
        self._lines: list[str] = []
        self._allocated: list[str] = []
        self._variables: dict[str, str] = {}
        self._functions: set[tuple[str, str]] = set()
        self._targets: list[tuple[str, str]] = []
        self._count = 0

    def text(self) -> str:
        """The assembly."""
        about = self._about
        for name, pointer, kind, names in (
            ("whole", "%wholes", _WHOLE, about.wholes),
            ("real", "%reals", "double", about.reals),
        ):
            for i, parameter in enumerate(names):
                # In front of the whole numbers stands how many turns there are in all.
                at = self._put(f"getelementptr {kind}, ptr {pointer}, i64 {i + (name == 'whole')}")
                self._assign(parameter, _Value(kind, self._put(f"load {kind}, ptr {at}")))
        for arg in about.tree.args.args[:2]:
            self._assign(arg.arg, _Value(_WHOLE, f"%{arg.arg}.of"))
        self._body(about.tree.body)
        first, last = (arg.arg for arg in about.tree.args.args[:2])
        pointers = [f"ptr noalias %{name}.array" for name in about.arrays]
        head = ", ".join([
            *pointers, "ptr noalias %wholes", "ptr noalias %reals", f"i64 %{first}.of",
            f"i64 %{last}.of",
        ])  # fmt: skip
        lines = ["entry:", *self._allocated, *self._lines, "  ret void", "}"]
        parts = [definition(*key) for key in sorted(self._functions)]
        attributes = '"prefer-vector-width"="512" nounwind'
        parts.append(f"define internal void @core({head}) {attributes} {{\n" + "\n".join(lines))
        return "\n".join(parts)

    # ------------------------------------------------------------ instructions
    def _put(self, text: str) -> str:
        self._count += 1
        self._lines.append(f"  %v{self._count} = {text}")
        return f"%v{self._count}"

    def _add(self, text: str) -> None:
        self._lines.append(f"  {text}")

    def _labels(self, *names: str) -> list[str]:
        self._count += 1
        return [f"{name}{self._count}" for name in names]

    def _block(self, label: str) -> None:
        self._lines += [f"  br label %{label}", f"{label}:"]

    def _branch(self, test: _Value, yes: str, no: str) -> None:
        self._add(f"br i1 {self._truth(test).name}, label %{yes}, label %{no}")
        self._lines.append(f"{yes}:")

    # ------------------------------------------------------------ statements
    def _body(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            self._statement(statement)

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
                # All are there before the first is assigned.
                for target, value in zip(targets, [self._value(v) for v in values], strict=True):
                    self._into(target, value)
            case ast.Assign(targets=[target], value=value):
                self._into(target, self._value(value))
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self._into(target, self._value(value))
            case ast.AugAssign(target=target, op=op, value=value):
                self._into(target, self._binary(op, self._value(target), self._value(value)))
            case ast.If(test=test, body=body, orelse=other):
                self._if(test, lambda: self._body(body), lambda: self._body(other))
            case ast.While(test=test, body=body, orelse=[]):
                self._while(test, body)
            case ast.For(target=ast.Name(id=name), iter=ast.Call(args=args), body=body, orelse=[]):
                self._for(name, args, body)
            case ast.Break() | ast.Continue():
                again, out = self._targets[-1]
                self._add(f"br label %{out if isinstance(node, ast.Break) else again}")
                (after,) = self._labels("after")
                self._lines.append(f"{after}:")
            case ast.Expr(value=ast.Constant(value=str())):
                pass
            case _:
                raise TypeError(f"not translated: {ast.unparse(node)}")

    def _if(self, test: ast.expr, then: Callable[[], None], other: Callable[[], None]) -> None:
        yes, no, out = self._labels("then", "else", "out")
        self._branch(self._value(test), yes, no)
        then()
        self._add(f"br label %{out}")
        self._lines.append(f"{no}:")
        other()
        self._block(out)

    def _while(self, test: ast.expr, body: Sequence[ast.stmt]) -> None:
        top, turn, out = self._labels("while", "turn", "out")
        self._block(top)
        self._branch(self._value(test), turn, out)
        self._targets.append((top, out))
        self._body(body)
        self._targets.pop()
        self._add(f"br label %{top}")
        self._lines.append(f"{out}:")

    def _for(self, name: str, args: Sequence[ast.expr], body: Sequence[ast.stmt]) -> None:
        """A range's index goes up by a positive step, or down by -1."""
        start, stop, step = [*[ast.Constant(0)] * (len(args) == 1), *args, ast.Constant(1)][:3]
        by = ast.literal_eval(step)
        first, last = self._whole(self._value(start)), self._whole(self._value(stop))
        top, turn, again, out = self._labels("for", "turn", "again", "out")
        # The index of the loop is not the variable, which the body might change.
        hidden = f"{name}.{top}"
        self._assign(hidden, first)
        self._block(top)
        at = self._read(hidden)
        how = "slt" if by > 0 else "sgt"
        self._branch(_Value("i1", self._put(f"icmp {how} i64 {at.name}, {last.name}")), turn, out)
        self._assign(name, at)
        self._targets.append((again, out))
        self._body(body)
        self._targets.pop()
        self._block(again)
        # That it does not wrap around lets LLVM know how far it goes.
        self._assign(hidden, _Value(_WHOLE, self._put(f"add nsw i64 {at.name}, {by}")))
        self._add(f"br label %{top}")
        self._lines.append(f"{out}:")

    # ------------------------------------------------------------ variables and elements
    def _assign(self, name: str, value: _Value) -> None:
        kind = self._variables.get(name)
        if kind is None and value.kind in _REAL and value.literal is not None:
            raise TypeError(f"{name} starts as a literal: say whether single({value.literal})")
        if kind is None:
            kind = self._variables[name] = value.kind
            self._allocated.append(f"  %{name}.at = alloca {kind}")
        self._add(f"store {kind} {self._as(value, kind).name}, ptr %{name}.at")

    def _read(self, name: str) -> _Value:
        kind = self._variables[name]
        return _Value(kind, self._put(f"load {kind}, ptr %{name}.at"))

    def _element(self, node: ast.Subscript) -> tuple[DType, str]:
        assert isinstance(node.value, ast.Name)
        dtype = self._arrays[node.value.id]
        index = self._whole(self._value(node.slice))
        place = f"getelementptr inbounds {render.stored_as(dtype)}, ptr %{node.value.id}.array"
        return dtype, self._put(f"{place}, i64 {index.name}")

    def _into(self, target: ast.expr, value: _Value) -> None:
        if isinstance(target, ast.Name):
            self._assign(target.id, value)
            return
        assert isinstance(target, ast.Subscript)
        dtype, place = self._element(target)
        kind = _kind(dtype)
        found = self._as(value, kind).name
        if kind == _WHOLE and dtype is not dtypes.int64:
            found = self._put(f"trunc i64 {found} to {render.computed(dtype)}")
        stored = render.stored(self._put, dtype, found)
        self._add(f"store {render.stored_as(dtype)} {stored}, ptr {place}")

    def _load(self, node: ast.Subscript) -> _Value:
        dtype, place = self._element(node)
        value, kind = render.loaded(self._put, dtype, place), _kind(dtype)
        if kind == _WHOLE and dtype is not dtypes.int64:
            how = "zext" if dtype.is_unsigned else "sext"
            value = self._put(f"{how} {render.computed(dtype)} {value} to i64")
        return _Value(kind, value)

    # ------------------------------------------------------------ expressions
    def _value(self, node: ast.expr) -> _Value:
        match node:
            case ast.Constant(value=bool() as known):
                return _Value("i1", str(int(known)))
            case ast.Constant(value=int() as known):
                return _Value(_WHOLE, str(known), known)
            case ast.Constant(value=float() as known):
                return _Value("double", number(known, "double"), known)
            case ast.Name(id=name):
                return self._read(name)
            case ast.Subscript():
                return self._load(node)
            case ast.BinOp(left=left, op=op, right=right):
                return self._binary(op, self._value(left), self._value(right))
            case ast.UnaryOp(op=op, operand=operand):
                return self._unary(op, self._value(operand))
            case ast.Compare(left=left, ops=[test], comparators=[right]):
                return self._compare(test, self._value(left), self._value(right))
            case ast.BoolOp(op=op, values=[first, *others]):
                return self._both(isinstance(op, ast.And), first, others)
            case ast.IfExp(test=test, body=body, orelse=other):
                return self._choice(test, body, other)
            case ast.Call(func=ast.Name(id=name), args=args) if name in CALLS:
                return self._call(name, [self._value(a) for a in args])
        raise TypeError(f"not translated: {ast.unparse(node)}")

    def _binary(self, op: ast.operator, a: _Value, b: _Value) -> _Value:
        a, b, kind = self._met(a, b, real=isinstance(op, ast.Div))
        if isinstance(op, ast.Div):
            return _Value(kind, self._put(f"fdiv {kind} {a.name}, {b.name}"))
        if isinstance(op, (ast.FloorDiv, ast.Mod)) and kind == _WHOLE:
            return self._floored(isinstance(op, ast.Mod), a.name, b.name)
        how = _ARITHMETIC.get(type(op), ("", ""))[kind in _REAL]
        if not how or (kind == "i1" and how in ("add", "sub", "mul")):
            raise TypeError(f"no {type(op).__name__} of {kind}")
        return _Value(kind, self._put(f"{how} {kind} {a.name}, {b.name}"))

    def _floored(self, rest: bool, a: str, b: str) -> _Value:
        """Quotient or remainder, rounded down as Python's."""
        remainder = self._put(f"srem i64 {a}, {b}")
        uneven = self._put(f"icmp ne i64 {remainder}, 0")
        crossed = self._put(f"icmp slt i64 {self._put(f'xor i64 {remainder}, {b}')}, 0")
        lower = self._put(f"and i1 {uneven}, {crossed}")
        if rest:
            more = self._put(f"select i1 {lower}, i64 {b}, i64 0")
            return _Value(_WHOLE, self._put(f"add i64 {remainder}, {more}"))
        quotient = self._put(f"sdiv i64 {a}, {b}")
        less = self._put(f"sext i1 {lower} to i64")
        return _Value(_WHOLE, self._put(f"add i64 {quotient}, {less}"))

    def _unary(self, op: ast.unaryop, a: _Value) -> _Value:
        if isinstance(op, ast.Not):
            return _Value("i1", self._put(f"xor i1 {self._truth(a).name}, 1"))
        if not isinstance(op, ast.USub):
            raise TypeError(f"not translated: {type(op).__name__}")
        if a.literal is not None:
            less = -a.literal
            return _Value(a.kind, number(less, a.kind) if a.kind in _REAL else str(less), less)
        if a.kind in _REAL:
            return _Value(a.kind, self._put(f"fneg {a.kind} {a.name}"))
        return _Value(a.kind, self._put(f"sub {a.kind} 0, {a.name}"))

    def _compare(self, test: ast.cmpop, a: _Value, b: _Value) -> _Value:
        a, b, kind = self._met(a, b)
        word = f"fcmp {_TESTS[type(test)][1]}" if kind in _REAL else f"icmp {_TESTS[type(test)][0]}"
        return _Value("i1", self._put(f"{word} {kind} {a.name}, {b.name}"))

    def _both(self, every: bool, first: ast.expr, others: Sequence[ast.expr]) -> _Value:
        """`and` and `or`: what comes later is computed only where it counts."""
        (held,) = self._labels("held")
        self._assign(held, self._truth(self._value(first)))
        for other in others:
            yes, no, out = self._labels("yes", "no", "out")
            more, done = (yes, no) if every else (no, yes)
            self._add(f"br i1 {self._read(held).name}, label %{yes}, label %{no}")
            self._lines.append(f"{more}:")
            self._assign(held, self._truth(self._value(other)))
            self._add(f"br label %{out}")
            self._lines.append(f"{done}:")
            self._block(out)
        return self._read(held)

    def _choice(self, test: ast.expr, body: ast.expr, other: ast.expr) -> _Value:
        (held,) = self._labels("held")
        self._if(
            test,
            lambda: self._assign(held, self._value(body)),
            lambda: self._assign(held, self._value(other)),
        )
        return self._read(held)

    def _call(self, name: str, args: list[_Value]) -> _Value:
        if name in ("min", "max"):
            return self._extreme(name, *args)
        (a,) = args
        if name in ("double", "single"):
            value = self._as(a, "double" if name == "double" else "float")
            return _Value(value.kind, value.name)
        if name == "int":
            return self._whole(a)
        if name == "isnan":
            return self._compare(ast.NotEq(), a, a)
        if name == "abs" and a.kind == _WHOLE:
            return _Value(_WHOLE, self._put(f"call i64 @llvm.abs.i64(i64 {a.name}, i1 0)"))
        a = a if a.kind in _REAL else self._as(a, "double")
        k, suffix = a.kind, "f32" if a.kind == "float" else "f64"
        if name in DEFINED:
            self._functions.add((name, k))
            return _Value(k, self._put(f"call {k} @od_{name}_{k}({k} {a.name})"))
        how = "fabs" if name == "abs" else name
        found = _Value(k, self._put(f"call {k} @llvm.{how}.{suffix}({k} {a.name})"))
        return self._whole(found) if name in _ROUNDED else found

    def _extreme(self, name: str, a: _Value, b: _Value) -> _Value:
        """As Python's: the second where it is the larger or smaller, else the first."""
        a, b, kind = self._met(a, b)
        second = self._compare(ast.Gt() if name == "max" else ast.Lt(), b, a)
        return _Value(kind, self._put(f"select i1 {second.name}, {kind} {b.name}, {kind} {a.name}"))

    # ------------------------------------------------------------ types
    def _met(self, a: _Value, b: _Value, real: bool = False) -> tuple[_Value, _Value, str]:
        """Both values in the type in which they are computed with."""
        firm = [v.kind for v in (a, b) if v.literal is None or v.kind == _WHOLE]
        weak = [v.kind for v in (a, b)]
        reals = [k for k in firm if k in _REAL] or [k for k in weak if k in _REAL]
        if reals or real:
            kind = "double" if "double" in reals or not reals else "float"
        else:
            kind = _WHOLE if _WHOLE in weak else "i1"
        return self._as(a, kind), self._as(b, kind), kind

    def _as(self, value: _Value, kind: str) -> _Value:
        old, name = value.kind, value.name
        if old == kind:
            return value
        if value.literal is not None and kind in _REAL:
            return _Value(kind, number(value.literal, kind), value.literal)
        if kind in _REAL and old in _REAL:
            how = "fpext" if kind == "double" else "fptrunc"
            return _Value(kind, self._put(f"{how} {old} {name} to {kind}"))
        if kind in _REAL:
            how = "uitofp" if old == "i1" else "sitofp"
            return _Value(kind, self._put(f"{how} {old} {name} to {kind}"))
        if kind == _WHOLE and old == "i1":
            return _Value(kind, self._put(f"zext i1 {name} to i64"))
        raise TypeError(f"a value of type {old} where {kind} is wanted")

    def _whole(self, value: _Value) -> _Value:
        """A whole number; one that is not is cut off towards zero."""
        if value.kind not in _REAL:
            return self._as(value, _WHOLE)
        # What does not fit is any number, but never poison.
        whole = self._put(f"fptosi {value.kind} {value.name} to i64")
        return _Value(_WHOLE, self._put(f"freeze i64 {whole}"))

    def _truth(self, value: _Value) -> _Value:
        if value.kind != "i1":
            raise TypeError("a comparison is wanted where something is decided")
        return value


def _kind(dtype: DType) -> str:
    """In which type an element is computed with."""
    if dtype is dtypes.bool_:
        return "i1"
    return render.computed(dtype) if dtype.is_floating else _WHOLE
