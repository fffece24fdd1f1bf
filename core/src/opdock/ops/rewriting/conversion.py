"""Functions rewritten: DiastaticMalt, the library that AutoGraph became, does it.

A rewritten function has the places of its source: what is raised in it, and what is said of
operations that it makes, names the user's file and line.
"""

from __future__ import annotations
import __future__

import ast
import functools
import threading
import weakref
from collections.abc import Sequence
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final, NamedTuple

from opdock.ops.rewriting.source import Definition, definition
from opdock.ops.rewriting.status import ConversionOptions
from opdock.ops.rewriting.syntax import simplified
from opdock.ops.rewriting.verbosity import tell, told

__all__ = ["code_of", "converted"]

_FUTURE: Final = functools.reduce(
    lambda flags, name: flags | getattr(__future__, name).compiler_flag,
    __future__.all_feature_names, 0,
)  # fmt: skip
_OUTER: Final = "ag__outer"
_INNER: Final = "ag__inner"
OPERATORS: Final = "ag__"

_lock = threading.RLock()
_made: weakref.WeakKeyDictionary[CodeType, dict[Any, tuple[str, CodeType]]] = (
    weakref.WeakKeyDictionary()
)


def converted(
    function: FunctionType, options: ConversionOptions, operators: ModuleType
) -> FunctionType:
    """A function with the same parameters, whose control flow may depend on tensors.

    Args:
        function: the user's.
        options: what the conversion does.
        operators: what rewritten code calls `ag__`.

    Raises:
        ValueError: its source cannot be had, or it has something that can't be rewritten.
    """
    code = function.__code__
    if OPERATORS in code.co_freevars:
        raise ValueError(f'{function} uses the reserved symbol "{OPERATORS}"')
    with _lock:
        made = _made.setdefault(code, {})
        # Equal codes may come from several files.
        key = code.co_filename, options
        if key not in made:
            made[key] = _compiled(function, options)
        name, maker = made[key]
    return _bound(function, name, maker, operators)


def code_of(function: FunctionType, options: ConversionOptions) -> str:
    """The text of the rewritten function."""
    with _lock:
        node, _ = _rewritten(function, options)
    return ast.unparse(ast.fix_missing_locations(node))


def _bound(
    function: FunctionType, name: str, maker: CodeType, operators: ModuleType
) -> FunctionType:
    """The rewritten function with the names that the user's sees."""
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    closure = tuple(cells[name] for name in maker.co_freevars)
    make = FunctionType(maker, function.__globals__, name, None, closure)
    made: FunctionType = make(operators)
    made.__defaults__, made.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
    made.__annotations__ = function.__annotations__
    made.__name__, made.__qualname__ = function.__name__, function.__qualname__
    made.__doc__, made.__module__ = function.__doc__, function.__module__
    made.__code__ = made.__code__.replace(
        co_name=function.__code__.co_name, co_qualname=function.__code__.co_qualname
    )
    made.autograph_info__ = {}  # type: ignore[attr-defined]
    return made


def _compiled(function: FunctionType, options: ConversionOptions) -> tuple[str, CodeType]:
    """The name of the rewritten function, and the code of what makes it for a closure."""
    node, name = _rewritten(function, options)
    code = function.__code__
    defined = node if isinstance(node, ast.FunctionDef) else _assign(name, node)
    # Names of functions around are cells of the outer function, which those of the user's replace.
    cells = [_assign(cell, ast.Constant(None)) for cell in code.co_freevars]
    inner = _function(_INNER, [OPERATORS], [defined, ast.Return(ast.Name(name, ast.Load()))])
    outer = _function(_OUTER, [], [*cells, inner, ast.Return(ast.Name(_INNER, ast.Load()))])
    module = ast.Module([outer], [])
    _place(module, code.co_firstlineno)
    flags = code.co_flags & _FUTURE
    compiled = compile(module, code.co_filename, "exec", flags, dont_inherit=True)
    return name, _only_function(_only_function(compiled))


def _only_function(code: CodeType) -> CodeType:
    (found,) = (c for c in code.co_consts if isinstance(c, CodeType))
    return found


def _assign(name: str, value: ast.expr) -> ast.stmt:
    return ast.Assign([ast.Name(name, ast.Store())], value)


def _function(name: str, parameters: Sequence[str], body: list[Any]) -> ast.FunctionDef:
    # Parsed, as later versions of Python have fields that earlier ones refuse.
    made = ast.parse(f"def {name}({', '.join(parameters)}): pass").body[0]
    assert isinstance(made, ast.FunctionDef)
    made.body = body
    return made


# ---------------------------------------------------------------- the library
def _rewritten(function: FunctionType, options: ConversionOptions) -> tuple[Definition, str]:
    """The syntax tree of the rewritten function, and its name."""
    from malt.pyct import inspect_utils, naming, transformer

    node, file = definition(function)
    node = simplified(node, function.__code__.co_qualname)
    _note_origins(node, file)
    namespace = inspect_utils.getnamespace(function)
    namer = naming.Namer(namespace)
    original = node.name if isinstance(node, ast.FunctionDef) else "lambda"
    name = namer.new_symbol(f"tf__{original}", ())
    info = transformer.EntityInfo(
        name=name, source_code="", source_file=file, future_features=(), namespace=namespace
    )
    context = transformer.Context(info, namer, _Program(_options(options)))
    try:
        node = _pipeline().transform_ast(node, context)
    finally:
        _forget_notes()
    if isinstance(node, ast.FunctionDef):
        node.name = name
    if told(2):
        tell(2, "Transformed %s:\n\n%s\n", function, ast.unparse(ast.fix_missing_locations(node)))
    return node, name


class _Program(NamedTuple):
    """What the library's transformers ask of the conversion."""

    options: Any


def _options(options: ConversionOptions) -> Any:
    from malt.core import converter

    features = [converter.Feature[f.name] for f in options.optional_features]
    return converter.ConversionOptions(
        options.recursive, options.user_requested, options.internal_convert_user_code, features
    )


@functools.cache
def _pipeline() -> Any:
    from malt.impl import api

    return api.PyToPy()


# ---------------------------------------------------------------- places
class _Origin(NamedTuple):
    """Where a part of the user's tree is, and what it was; the library hands it on."""

    kind: type[ast.AST]
    lineno: int
    col_offset: int
    end_lineno: int
    end_col_offset: int


_PLACE: Final = _Origin._fields[1:]


def _note_origins(node: ast.AST, file: str) -> None:
    """Notes where each part of the tree is, which the rewritten tree keeps."""
    from malt.pyct import anno, origin_info

    for part in ast.walk(node):
        place: list[Any] = [getattr(part, field, None) for field in _PLACE]
        if None not in place:
            info = origin_info.OriginInfo(_Origin(type(part), *place), None, "", None)
            anno.setanno(part, anno.Basic.ORIGIN, info)


def _forget_notes() -> None:
    """Takes the library's notes off the parts that all trees of the process share."""
    for part in _shared():
        vars(part).clear()


@functools.cache
def _shared() -> tuple[ast.AST, ...]:
    """The one `Load`, `Add`, `Lt` and so on that `ast.parse` puts into all trees."""
    kinds = ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop
    tree = ast.parse(
        "a = a + a - a * a / a // a % a ** a << a >> a | a & a ^ a @ -a, +a, ~a, not a and a or a\n"
        "a == a != a < a <= a > a >= a is a is not a in a not in a\n"
        "del a"
    )
    return tuple(part for part in ast.walk(tree) if isinstance(part, kinds))


def _place(node: ast.AST, line: int) -> None:
    """Gives each part its place; what was put in, the line of what it stands for or is in."""
    from malt.pyct import anno

    info = anno.getanno(node, anno.Basic.ORIGIN, default=None)
    place: Sequence[int] = (line, -1, line, -1)
    if info is not None:
        origin: _Origin = info.loc
        line = origin.lineno
        place = origin[1:] if isinstance(node, origin.kind) else (line, -1, line, -1)
    if "lineno" in node._attributes:
        for field, value in zip(_PLACE, place, strict=True):
            setattr(node, field, value)
    for child in ast.iter_child_nodes(node):
        _place(child, line)
