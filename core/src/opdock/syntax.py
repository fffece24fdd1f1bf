"""Python's syntax trees, read by several threads.

Before 3.11.8 and 3.12.2 CPython counts the depth of all trees that are being made in one place, so
that reading two at once fails now and then with "AST constructor recursion depth mismatch"
(https://github.com/python/cpython/issues/106905). opdock's own threads take turns; where code that
is not opdock's reads another tree meanwhile, it is tried again.
"""

from __future__ import annotations

import ast
import os
import threading
from typing import Any, Final

__all__ = ["expression_of", "tree_of"]

_TRIES: Final = 10
_turn = threading.RLock()  # the collector may run inside, and come here again


def tree_of(text: str | bytes) -> ast.Module:
    """The tree of a module.

    Raises:
        SyntaxError, ValueError, RecursionError: what `ast.parse` raises.
    """
    tree: ast.Module = _read(text, "exec")
    return tree


def expression_of(text: str) -> ast.expr:
    """The tree of an expression; raises what `tree_of` does."""
    tree: ast.Expression = _read(text, "eval")
    return tree.body


def _read(text: str | bytes, mode: str) -> Any:
    with _turn:
        for _ in range(_TRIES - 1):
            try:
                return ast.parse(text, mode=mode)
            except SystemError:
                continue
        return ast.parse(text, mode=mode)


def _after_fork() -> None:
    global _turn
    _turn = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
