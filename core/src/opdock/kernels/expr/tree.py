"""Scalar expressions: what an elementwise op computes for one element, as a small tree.

An op definition gives the text, "where(x > 0, x, expm1(x))". `parse` reads it (a whitelisted part
of Python's own syntax, never executed), `substitute` composes expressions when ops are fused, and
`lowering.lower` gives them types. Free names stand for inputs and for numeric attributes; the
functions are those of `functions.FUNCTIONS`.

Equal expressions are one object, so a shared subexpression is computed once by whoever walks them.
"""

from __future__ import annotations

import ast
import math
import threading
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, TypeAlias
from weakref import WeakValueDictionary

from opdock.dtypes import DType
from opdock.kernels.expr.functions import FUNCTIONS
from opdock.late import record
from opdock.syntax import expression_of

Scalar: TypeAlias = int | float | bool

_CONSTANTS: Final = {"inf": math.inf, "nan": math.nan, "pi": math.pi}
_BINARY: Final[dict[type[ast.AST], str]] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "floordiv",
    ast.Mod: "mod", ast.Pow: "pow", ast.BitAnd: "bitand", ast.BitOr: "bitor",
    ast.BitXor: "bitxor", ast.LShift: "shl", ast.RShift: "shr",
    ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne",
}  # fmt: skip
_UNARY: Final[dict[type[ast.AST], str]] = {ast.USub: "neg", ast.Invert: "bitnot"}
# Python's own precedences, loosest first.
_PRECEDENCE: Final = {
    "lt": 1, "le": 1, "gt": 1, "ge": 1, "eq": 1, "ne": 1, "bitor": 2, "bitxor": 3, "bitand": 4,
    "shl": 5, "shr": 5, "add": 6, "sub": 6, "mul": 7, "div": 7, "floordiv": 7, "mod": 7,
    "neg": 8, "bitnot": 8, "pow": 9,
}  # fmt: skip
_ATOM: Final = 10


class Expr:
    """A node. Equal nodes are identical, so `==`, hashing and dict look-ups cost nothing."""

    __slots__ = ("__weakref__",)

    def __str__(self) -> str:
        return to_text(self)

    __repr__ = __str__


@record(frozen=True, slots=True, eq=False, repr=False)
class Name(Expr):
    """A free name: an input's element or a numeric attribute."""

    name: str


@record(frozen=True, slots=True, eq=False, repr=False)
class Number(Expr):
    """A literal. It has no type of its own: it takes that of what it is combined with."""

    value: Scalar


@record(frozen=True, slots=True, eq=False, repr=False)
class Apply(Expr):
    """A function of `functions.FUNCTIONS` applied to arguments; operators are functions too."""

    function: str
    args: tuple[Expr, ...]


@record(frozen=True, slots=True, eq=False, repr=False)
class Cast(Expr):
    """`arg` converted to a type: a DType, or the name of a type attribute not yet known."""

    arg: Expr
    to: str | DType


_nodes: WeakValueDictionary[tuple[Any, ...], Expr] = WeakValueDictionary()
# Reentrant: the collector may run inside, and a finalizer that it calls may come here.
_nodes_lock = threading.RLock()


def _shared(key: tuple[Any, ...], *fields: Any) -> Any:
    with _nodes_lock:
        node = _nodes.get(key)
        if node is None:
            node = _nodes.setdefault(key, key[0](*fields))
    return node


def name(text: str) -> Name:
    """The free name `text`."""
    return _shared((Name, text), text)  # type: ignore[no-any-return]


def number(value: Scalar) -> Number:
    """The literal `value`."""
    return _shared((Number, type(value), repr(value)), value)  # type: ignore[no-any-return]


def apply(function: str, *args: Expr) -> Expr:
    """`function` applied to `args`; a negated literal is a literal.

    Raises:
        ValueError: there is no such function, or it takes another number of arguments.
    """
    known = FUNCTIONS.get(function)
    if known is None:
        raise ValueError(f"Unknown function '{function}' in a scalar expression.")
    if len(args) != known.arity:
        raise ValueError(f"'{function}' takes {known.arity} arguments, got {len(args)}.")
    if function == "neg" and isinstance(args[0], Number):
        return number(-args[0].value)
    return _shared((Apply, function, args), function, args)  # type: ignore[no-any-return]


def cast(arg: Expr, to: str | DType) -> Cast:
    """`arg` converted to type `to`."""
    return _shared((Cast, arg, to), arg, to)  # type: ignore[no-any-return]


# ---------------------------------------------------------------- text to tree
@lru_cache(maxsize=2048)
def parse(text: str) -> Expr:
    """Reads an expression.

    The syntax is Python's: numbers, names, `inf`, `nan`, `pi`, `True`, `False`, the operators
    `+ - * / // % ** & | ^ ~ << >>`, one comparison, `a if c else b`, calls of
    `functions.FUNCTIONS`, and `cast(x, T)` with a type name or a type attribute as T.

    Raises:
        ValueError: the text is not such an expression.
    """
    try:
        tree = expression_of(text.strip())
        return _read(tree)
    except (SyntaxError, ValueError, RecursionError) as e:
        raise ValueError(f"Scalar expression {text!r}: {e}") from None


def _read(node: ast.AST) -> Expr:
    match node:
        case ast.Constant(value=bool() | int() | float() as value):
            return number(value)
        case ast.Name(id=text):
            return number(_CONSTANTS[text]) if text in _CONSTANTS else name(text)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _read(operand)
        case ast.UnaryOp(op=op, operand=operand) if type(op) in _UNARY:
            return apply(_UNARY[type(op)], _read(operand))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return apply(_BINARY[type(op)], _read(left), _read(right))
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _BINARY:
            return apply(_BINARY[type(op)], _read(left), _read(right))
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return apply("where", _read(test), _read(body), _read(orelse))
        case ast.Call(func=ast.Name(id="cast"), args=[arg_node, ast.Name(id=to)], keywords=[]):
            return cast(_read(arg_node), to)
        case ast.Call(func=ast.Name(id=function), args=args, keywords=[]):
            return apply(function, *(_read(a) for a in args))
        case _:
            raise ValueError(f"{ast.unparse(node)!r} is not allowed here")


# ---------------------------------------------------------------- tree to text
def to_text(expr: Expr) -> str:
    """The expression as text that `parse` reads back as the same object."""
    return _write(expr)[0]


def _write(expr: Expr) -> tuple[str, int]:
    match expr:
        case Name(name=text):
            return text, _ATOM
        case Number(value=value):
            text = repr(value)
            return text, _PRECEDENCE["neg"] if text.startswith("-") else _ATOM
        case Cast(arg=arg, to=to):
            return f"cast({to_text(arg)}, {to.name if isinstance(to, DType) else to})", _ATOM
        case Apply(function=function, args=args):
            level = _PRECEDENCE.get(function)
            if level is None:
                return f"{function}({', '.join(to_text(a) for a in args)})", _ATOM
            symbol = FUNCTIONS[function].symbol
            if len(args) == 1:
                return symbol + _bracketed(args[0], level, strict=False), level
            # Comparisons do not chain here, and ** groups to the right.
            left = _bracketed(args[0], level, strict=level == 1 or function == "pow")
            right = _bracketed(args[1], level, strict=function != "pow")
            return f"{left} {symbol} {right}", level
        case _:
            raise TypeError(f"Not a scalar expression: {expr!r}")


def _bracketed(expr: Expr, level: int, *, strict: bool) -> str:
    text, own = _write(expr)
    return f"({text})" if own < level or (strict and own == level) else text


# ---------------------------------------------------------------- walking and rewriting
def walk(*roots: Expr) -> Iterator[Expr]:
    """Every distinct node below `roots`, arguments before their users."""
    seen: set[Expr] = set()
    stack = [(root, False) for root in reversed(roots)]
    while stack:
        node, ready = stack.pop()
        if node in seen:
            continue
        children = _children(node)
        if ready or not children:
            seen.add(node)
            yield node
        else:
            stack.append((node, True))
            stack.extend((c, False) for c in reversed(children))


def _children(node: Expr) -> tuple[Expr, ...]:
    if isinstance(node, Apply):
        return node.args
    return (node.arg,) if isinstance(node, Cast) else ()


def names(*roots: Expr) -> frozenset[str]:
    """The free names: inputs and numeric attributes (not type attributes of casts)."""
    return frozenset(n.name for n in walk(*roots) if isinstance(n, Name))


def functions_used(*roots: Expr) -> frozenset[str]:
    """The functions that the expressions apply."""
    return frozenset(n.function for n in walk(*roots) if isinstance(n, Apply))


def substitute(root: Expr, replacements: Mapping[str, Expr | Scalar | DType]) -> Expr:
    """`root` with free names replaced, all at once.

    A name may become an expression (composition, renaming) or a number (an attribute's value); a
    type attribute of a cast may become a DType, or another type attribute given as a `Name`.
    """
    done: dict[Expr, Expr] = {}
    for node in walk(root):
        match node:
            case Name(name=text) if text in replacements:
                new = replacements[text]
                if isinstance(new, DType):
                    raise ValueError(f"The type attribute '{text}' is used as a number.")
                done[node] = new if isinstance(new, Expr) else number(new)
            case Apply(function=function, args=args):
                done[node] = apply(function, *(done[a] for a in args))
            case Cast(arg=arg, to=to):
                target = replacements.get(to, to) if isinstance(to, str) else to
                if isinstance(target, Name):
                    target = target.name
                if not isinstance(target, (str, DType)):
                    raise ValueError(f"'{to}' is used as a type.")
                done[node] = cast(done[arg], target)
            case _:
                done[node] = node
    return done[root]
