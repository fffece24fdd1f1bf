"""What the library that rewrites functions cannot read, said in what it can."""

from __future__ import annotations

import ast
from typing import Final

from opdock.ops.rewriting.source import Definition

__all__ = ["simplified"]

CAUGHT: Final = "ag__.caught"
"""What rewritten code calls for the exception that it handles."""


def simplified(node: Definition, qualified_name: str) -> Definition:
    """The tree of a function without what is computed where it is defined.

    Args:
        node: the tree, which is changed.
        qualified_name: the function's, for the class in which it stands.
    """
    _without_outside(node)
    *_, around, _ = ("", *qualified_name.split("."))
    if around and around != "<locals>":
        _Mangler(around).visit(node)
    return _Handlers().visit(node)  # type: ignore[no-any-return]


def _without_outside(node: Definition) -> None:
    """Drops defaults and annotations, which are taken over as they are."""
    arguments = node.args
    arguments.defaults = [ast.Constant(None) for _ in arguments.defaults]
    arguments.kw_defaults = [d and ast.Constant(None) for d in arguments.kw_defaults]
    for argument in (
        *arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg,
        arguments.kwarg,
    ):  # fmt: skip
        if argument is not None:
            argument.annotation = None
    if isinstance(node, ast.FunctionDef):
        node.returns = None
        node.decorator_list = []


class _Mangler(ast.NodeTransformer):
    """Gives private names of a class the names that they have outside of it."""

    def __init__(self, class_name: str) -> None:
        self._prefix = f"_{class_name.lstrip('_')}"

    def _mangled(self, name: str) -> str:
        return self._prefix + name if name.startswith("__") and not name.endswith("__") else name

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        node.attr = self._mangled(node.attr)
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        node.id = self._mangled(node.id)
        return node


class _Handlers(ast.NodeTransformer):
    """Has the first statement of a handler fetch the exception that `as` names."""

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.AST:
        if node.name is not None:
            fetch = ast.parse(f"{node.name} = {CAUGHT}()").body[0]
            node.body.insert(0, ast.copy_location(fetch, node))
            node.name = None
        return self.generic_visit(node)
