"""Loops that are written in Python as LLVM assembly.

What such a function may consist of: assignments, `for` over a range, `while`, `if`, `break`,
`continue`; elements of flat arrays, arithmetic, comparisons, `and`, `or`, `not`; the functions of
`CALLS`, and others of its module that consist of the same. Those are written in the place of each
call: their parameters have the types of what is passed, and they may end with one `return`, of one
value or of several. A number of the module is a literal, and a `for` over a tuple of them, for
instance coefficients, is as many bodies, one after the other.

Whole numbers are int64, as an index is; a real number has the type of the array that it comes from,
and a literal that of what it meets, as with NumPy's scalars. A parameter is in double precision,
and a variable keeps the type of its first value.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FunctionType, MappingProxyType
from typing import Any, Final

import numpy as np

from opdock.plugin import DType, as_dtype, codegen, dtypes
from opdock_cpu.jit import render
from opdock_cpu.jit.mathematics import number
from opdock_cpu.jit.typed import CALLS, REAL, WHOLE, Instructions, Value

__all__ = ["CALLS", "Parameters", "core", "known", "parameters"]

_ELEMENTS: Final = frozenset({
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "float16", "float32",
    "float64",
})  # fmt: skip
_NOTHING: Final[Mapping[str, int]] = MappingProxyType({})


@dataclass(frozen=True)
class Parameters:
    """What a function takes behind the range of its outer loop.

    Attributes:
        tree: the function.
        arrays, wholes, reals: the names of flat arrays, whole and real numbers.
        names: what the names of its module stand for.
    """

    tree: ast.FunctionDef
    arrays: tuple[str, ...]
    wholes: tuple[str, ...]
    reals: tuple[str, ...]
    names: Mapping[str, Any]


def parameters(function: Callable[..., None]) -> Parameters:
    """What a function takes: `begin` and `end`, then arrays and numbers, each annotated."""
    tree = _source(function)
    kinds: dict[str, list[str]] = {"Array": [], "int": [], "float": []}
    for arg in tree.args.args[2:]:
        kinds[ast.unparse(arg.annotation) if arg.annotation else ""].append(arg.arg)
    arrays, wholes, reals = (tuple(kinds[k]) for k in ("Array", "int", "float"))
    return Parameters(tree, arrays, wholes, reals, inspect.unwrap(function).__globals__)


def _source(function: Callable[..., Any]) -> ast.FunctionDef:
    (tree,) = codegen.tree_of(textwrap.dedent(inspect.getsource(function))).body
    assert isinstance(tree, ast.FunctionDef)
    return tree


def known(elements: Sequence[np.dtype[Any]]) -> bool:
    """Whether there are loops over arrays of these types."""
    return all(e.isnative and e.name in _ELEMENTS for e in elements)


def core(
    about: Parameters, elements: Sequence[np.dtype[Any]], fixed: Mapping[str, int] = _NOTHING
) -> str:
    """The function `@core(arrays..., whole numbers, real numbers, begin, end)` and its helpers.

    Args:
        about: the function.
        elements: the type of each array's elements.
        fixed: whole numbers that the code says itself, whatever it gets for them.

    Raises:
        TypeError: the function has something in it that is not translated.
    """
    types = [as_dtype(e) for e in elements]
    return _Translation(about, dict(zip(about.arrays, types, strict=True)), fixed).text()


@dataclass(frozen=True)
class _Scope:
    """What names mean in the function that is being written.

    Attributes:
        names: those of its module.
        prefix: what distinguishes its variables from those of other calls.
        arrays: the type of each array's elements, and its pointer.
        literals: parameters and variables of unrolled loops that are no variables in the code.
    """

    names: Mapping[str, Any]
    prefix: str
    arrays: dict[str, tuple[DType, str]]
    literals: dict[str, Value] = field(default_factory=dict)


class _Translation:
    """One function for arrays of known types."""

    def __init__(
        self, about: Parameters, arrays: dict[str, DType], fixed: Mapping[str, int]
    ) -> None:
        self._about, self._code = about, Instructions()
        pointers = {name: (dtype, f"%{name}.array") for name, dtype in arrays.items()}
        literals = {name: _literal(value) for name, value in fixed.items()}
        self._scope = _Scope(about.names, "", pointers, literals)
        self._open: list[Any] = []
        self._allocated: list[str] = []
        self._variables: dict[str, str] = {}
        self._targets: list[tuple[str, str]] = []

    def text(self) -> str:
        """The assembly."""
        about, code = self._about, self._code
        for name, pointer, kind, names in (
            ("whole", "%wholes", WHOLE, about.wholes),
            ("real", "%reals", "double", about.reals),
        ):
            for i, parameter in enumerate(names):
                if parameter in self._scope.literals:
                    continue
                # In front of the whole numbers stands how many turns there are in all.
                at = code.put(f"getelementptr {kind}, ptr {pointer}, i64 {i + (name == 'whole')}")
                self._assign(parameter, Value(kind, code.put(f"load {kind}, ptr {at}")))
        for arg in about.tree.args.args[:2]:
            self._assign(arg.arg, Value(WHOLE, f"%{arg.arg}.of"))
        self._body(about.tree.body)
        first, last = (arg.arg for arg in about.tree.args.args[:2])
        pointers = [f"ptr noalias %{name}.array" for name in about.arrays]
        head = ", ".join([
            *pointers, "ptr noalias %wholes", "ptr noalias %reals", f"i64 %{first}.of",
            f"i64 %{last}.of",
        ])  # fmt: skip
        lines = ["entry:", *self._allocated, *code.lines, "  ret void", "}"]
        attributes = '"prefer-vector-width"="512" nounwind'
        text = f"define internal void @core({head}) {attributes} {{\n" + "\n".join(lines)
        return "\n".join([*code.definitions(), text])

    # ------------------------------------------------------------ statements
    def _body(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            self._statement(statement)

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=value):
                # All are there before the first is assigned.
                for target, one in zip(targets, self._several(value), strict=True):
                    self._into(target, one)
            case ast.Assign(targets=[target], value=value):
                self._into(target, self._value(value))
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self._into(target, self._value(value))
            case ast.AugAssign(target=target, op=op, value=value):
                found = self._value(target), self._value(value)
                self._into(target, self._code.binary(op, *found))
            case ast.If(test=test, body=body, orelse=other):
                self._if(test, lambda: self._body(body), lambda: self._body(other))
            case ast.While(test=test, body=body, orelse=[]):
                self._while(test, body)
            case ast.For(target=ast.Name(id=name), iter=ast.Call(args=args), body=body, orelse=[]):
                self._for(name, args, body)
            case ast.For(target=ast.Name(id=name), iter=ast.Name(id=of), body=body, orelse=[]):
                for one in self._scope.names[of]:
                    self._scope.literals[name] = _literal(one)
                    self._body(body)
                del self._scope.literals[name]
            case ast.Break() | ast.Continue():
                again, out = self._targets[-1]
                self._code.add(f"br label %{out if isinstance(node, ast.Break) else again}")
                self._code.start(*self._code.labels("after"))
            case ast.Expr(value=ast.Constant(value=str())):
                pass
            case ast.Expr(value=ast.Call() as call):
                self._several(call)
            case _:
                raise TypeError(f"not translated: {ast.unparse(node)}")

    def _if(self, test: ast.expr, then: Callable[[], None], other: Callable[[], None]) -> None:
        code = self._code
        yes, no, out = code.labels("then", "else", "out")
        code.branch(self._value(test), yes, no)
        then()
        code.add(f"br label %{out}")
        code.start(no)
        other()
        code.block(out)

    def _while(self, test: ast.expr, body: Sequence[ast.stmt]) -> None:
        code = self._code
        top, turn, out = code.labels("while", "turn", "out")
        code.block(top)
        code.branch(self._value(test), turn, out)
        self._targets.append((top, out))
        self._body(body)
        self._targets.pop()
        code.add(f"br label %{top}")
        code.start(out)

    def _for(self, name: str, args: Sequence[ast.expr], body: Sequence[ast.stmt]) -> None:
        """A range's index goes up by a positive step, or down by -1."""
        code = self._code
        start, stop, step = [*[ast.Constant(0)] * (len(args) == 1), *args, ast.Constant(1)][:3]
        by = ast.literal_eval(step)
        first, last = code.whole(self._value(start)), code.whole(self._value(stop))
        top, turn, again, out = code.labels("for", "turn", "again", "out")
        # The index of the loop is not the variable, which the body might change.
        hidden = f"{name}.{top}"
        self._assign(hidden, first)
        code.block(top)
        at = self._read(hidden)
        how = "slt" if by > 0 else "sgt"
        code.branch(Value("i1", code.put(f"icmp {how} i64 {at.name}, {last.name}")), turn, out)
        self._assign(name, at)
        self._targets.append((again, out))
        self._body(body)
        self._targets.pop()
        code.block(again)
        # That it does not wrap around lets LLVM know how far it goes.
        self._assign(hidden, Value(WHOLE, code.put(f"add nsw i64 {at.name}, {by}")))
        code.add(f"br label %{top}")
        code.start(out)

    # ------------------------------------------------------------ variables and elements
    def _assign(self, name: str, value: Value) -> None:
        if name in self._scope.literals:
            raise TypeError(f"{name} stands for a literal, which cannot change")
        place = self._scope.prefix + name
        kind = self._variables.get(place)
        if kind is None and value.kind in REAL and value.literal is not None:
            raise TypeError(f"{name} starts as a literal: say whether single({value.literal})")
        if kind is None:
            kind = self._variables[place] = value.kind
            self._allocated.append(f"  %{place}.at = alloca {kind}")
        self._code.add(f"store {kind} {self._code.converted(value, kind).name}, ptr %{place}.at")

    def _read(self, name: str) -> Value:
        if name in self._scope.literals:
            return self._scope.literals[name]
        place = self._scope.prefix + name
        kind = self._variables.get(place)
        if kind is None:
            return _literal(self._scope.names[name])
        return Value(kind, self._code.put(f"load {kind}, ptr %{place}.at"))

    def _element(self, node: ast.Subscript) -> tuple[DType, str]:
        assert isinstance(node.value, ast.Name)
        dtype, pointer = self._scope.arrays[node.value.id]
        index = self._code.whole(self._value(node.slice))
        place = f"getelementptr inbounds {render.stored_as(dtype)}, ptr {pointer}"
        return dtype, self._code.put(f"{place}, i64 {index.name}")

    def _into(self, target: ast.expr, value: Value) -> None:
        if isinstance(target, ast.Name):
            self._assign(target.id, value)
            return
        assert isinstance(target, ast.Subscript)
        dtype, place = self._element(target)
        code, kind = self._code, _kind(dtype)
        found = code.converted(value, kind).name
        if kind == WHOLE and dtype is not dtypes.int64:
            found = code.put(f"trunc i64 {found} to {render.computed(dtype)}")
        stored = render.stored(code.put, dtype, found)
        code.add(f"store {render.stored_as(dtype)} {stored}, ptr {place}")

    def _load(self, node: ast.Subscript) -> Value:
        dtype, place = self._element(node)
        value, kind = render.loaded(self._code.put, dtype, place), _kind(dtype)
        if kind == WHOLE and dtype is not dtypes.int64:
            how = "zext" if dtype.is_unsigned else "sext"
            value = self._code.put(f"{how} {render.computed(dtype)} {value} to i64")
        return Value(kind, value)

    # ------------------------------------------------------------ expressions
    def _value(self, node: ast.expr) -> Value:
        match node:
            case ast.Constant(value=bool() | int() | float() as known):
                return _literal(known)
            case ast.Name(id=name):
                return self._read(name)
            case ast.Subscript():
                return self._load(node)
            case ast.BinOp(left=left, op=op, right=right):
                return self._code.binary(op, self._value(left), self._value(right))
            case ast.UnaryOp(op=op, operand=operand):
                return self._code.unary(op, self._value(operand))
            case ast.Compare(left=left, ops=[test], comparators=[right]):
                return self._code.compare(test, self._value(left), self._value(right))
            case ast.BoolOp(op=op, values=[first, *others]):
                return self._both(isinstance(op, ast.And), first, others)
            case ast.IfExp(test=test, body=body, orelse=other):
                return self._choice(test, body, other)
            case ast.Call(func=ast.Name(id=name), args=args) if name in CALLS:
                return self._code.call(name, [self._value(a) for a in args])
            case ast.Call():
                match self._several(node):
                    case [found]:
                        return found
        raise TypeError(f"not translated: {ast.unparse(node)}")

    def _several(self, node: ast.expr) -> list[Value]:
        """The values of a tuple, or of what a function of the module returns."""
        match node:
            case ast.Tuple(elts=values):
                return [self._value(v) for v in values]
            case ast.Call(func=ast.Name(id=name), args=args):
                function = self._scope.names.get(name)
                if isinstance(function, FunctionType) and function not in self._open:
                    return self._called(function, args)
        raise TypeError(f"not translated: {ast.unparse(node)}")

    def _called(self, function: FunctionType, args: Sequence[ast.expr]) -> list[Value]:
        """What a function returns, its body written here."""
        tree = _source(function)
        with self._calling(function, list(zip(tree.args.args, args, strict=True))):
            match tree.body:
                case [*body, ast.Return(value=ast.Tuple() as end)]:
                    self._body(body)
                    return self._several(end)
                case [*body, ast.Return(value=ast.expr() as end)]:
                    self._body(body)
                    return [self._value(end)]
            self._body(tree.body)
            return []

    @contextmanager
    def _calling(
        self, function: FunctionType, given: Sequence[tuple[ast.arg, ast.expr]]
    ) -> Iterator[None]:
        """Has names mean what they mean in a function that is given these arguments."""
        outside = self._scope
        (prefix,) = self._code.labels(f"{function.__name__}.")
        arrays, values = {}, []
        for parameter, arg in given:
            if isinstance(arg, ast.Name) and arg.id in outside.arrays:
                arrays[parameter.arg] = outside.arrays[arg.id]
            else:
                values.append((parameter.arg, self._value(arg)))
        inside = _Scope(function.__globals__, f"{prefix}.", arrays)
        self._scope = inside
        self._open.append(function)
        for name, value in values:
            if value.literal is not None:
                inside.literals[name] = value
            else:
                self._assign(name, value)
        yield
        self._open.pop()
        self._scope = outside

    def _both(self, every: bool, first: ast.expr, others: Sequence[ast.expr]) -> Value:
        """`and` and `or`: what comes later is computed only where it counts."""
        code = self._code
        (held,) = code.labels("held")
        self._assign(held, code.truth(self._value(first)))
        for other in others:
            yes, no, out = code.labels("yes", "no", "out")
            more, done = (yes, no) if every else (no, yes)
            code.add(f"br i1 {self._read(held).name}, label %{yes}, label %{no}")
            code.start(more)
            self._assign(held, code.truth(self._value(other)))
            code.add(f"br label %{out}")
            code.start(done)
            code.block(out)
        return self._read(held)

    def _choice(self, test: ast.expr, body: ast.expr, other: ast.expr) -> Value:
        if all(isinstance(arm, (ast.Name, ast.Constant)) for arm in (body, other)):
            # Both are there already. Of a branch LLVM would make a store under a mask as well, and
            # without AVX no vectors at all.
            return self._code.pick(*map(self._value, (test, body, other)))
        (held,) = self._code.labels("held")
        self._if(
            test,
            lambda: self._assign(held, self._value(body)),
            lambda: self._assign(held, self._value(other)),
        )
        return self._read(held)


def _literal(value: Any) -> Value:
    """A number that the code says."""
    match value:
        case bool():
            return Value("i1", str(int(value)))
        case int():
            return Value(WHOLE, str(value), value)
        case float():
            return Value("double", number(value, "double"), value)
    raise TypeError(f"no number: {value!r}")


def _kind(dtype: DType) -> str:
    """In which type an element is computed with."""
    if dtype is dtypes.bool_:
        return "i1"
    return render.computed(dtype) if dtype.is_floating else WHOLE
