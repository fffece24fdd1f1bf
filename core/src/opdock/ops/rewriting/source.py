"""Where a function stands in its file, exactly: lambdas of one line are told apart."""

from __future__ import annotations

import ast
import copy
import functools
import inspect
import linecache
import os
from types import CodeType, FunctionType
from typing import Any

__all__ = ["NoSource", "definition"]

Definition = ast.FunctionDef | ast.Lambda


class NoSource(ValueError):
    """The source of a function cannot be had."""


def definition(function: FunctionType) -> tuple[Definition, str]:
    """A copy of a function's syntax tree with the places of its file, and the file's name.

    Raises:
        NoSource: there is no file, or the function is not in it.
    """
    code = function.__code__
    name, text = _text(function)
    if not text:
        raise NoSource(
            f"Unable to locate the source code of {function}. Functions that are typed in, or made "
            "from text, have none that can be read: define them in a file."
        )
    try:
        found = [node for node in _definitions(text) if _fits(node, code)]
    except SyntaxError as e:
        raise NoSource(f"{name} is no Python: {e}") from None
    if len(found) > 1:
        found = _innermost(found, code)
    if len(found) != 1:
        raise NoSource(
            f"{function} was not found at line {code.co_firstlineno} of {name}, which may have "
            "changed since it was read."
        )
    return copy.deepcopy(found[0]), code.co_filename


def _text(function: FunctionType) -> tuple[str, str]:
    """The file of a function, and what is in it; nothing if there is none."""
    name, own = function.__code__.co_filename, function.__globals__.get("__file__")
    names = [inspect.getsourcefile(function) or name]
    if isinstance(own, str) and os.path.basename(own) == os.path.basename(name):
        # The code has a path from where the program was, and the module one from the root.
        names.append(own)
    for candidate in names:
        lines = linecache.getlines(candidate, function.__globals__)
        if lines:
            return candidate, "".join(lines)
    return name, ""


@functools.lru_cache(maxsize=8)
def _definitions(text: str) -> list[Definition]:
    """All functions of a file."""
    kinds = (ast.FunctionDef, ast.Lambda)
    return [node for node in ast.walk(ast.parse(text)) if isinstance(node, kinds)]


def _fits(node: Definition, code: CodeType) -> bool:
    name = node.name if isinstance(node, ast.FunctionDef) else "<lambda>"
    decorators = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(d.lineno for d in decorators)])
    return name == code.co_name and first == code.co_firstlineno and _parameters(node, code)


def _parameters(node: Definition, code: CodeType) -> bool:
    given = node.args
    stars: list[Any] = [a for a in (given.vararg, given.kwarg) if a is not None]
    names = [a.arg for a in (*given.posonlyargs, *given.args, *given.kwonlyargs, *stars)]
    return tuple(names) == code.co_varnames[: len(names)]


def _innermost(nodes: list[Definition], code: CodeType) -> list[Definition]:
    """Of functions that begin in one line, the one in which all of the code is."""
    places = [
        (line, column, end_line, end_column)
        for line, end_line, column, end_column in code.co_positions()
        if None not in (line, end_line, column, end_column) and end_column
    ]
    around = [
        node
        for node in nodes
        if places
        and all(
            (node.lineno, node.col_offset) <= (line, column)
            and (end_line, end_column) <= (node.end_lineno, node.end_col_offset)
            for line, column, end_line, end_column in places
        )
    ]
    # Lambdas within each other: those around begin earlier.
    return sorted(around, key=lambda node: (node.lineno, node.col_offset))[-1:]
