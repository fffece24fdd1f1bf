"""Finds the names of some libraries that a file uses, by its syntax tree alone.

Imports, and assignments such as `slim = tf.contrib.slim`, say what a name of the program stands
for; an attribute chain that begins with one of them is a use. Functions are read after the module's
own statements, as they run, and a parameter or variable of the same name hides the import.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Use:
    """A dotted name, "tensorflow.nn.relu", and the line where it stands.

    Attributes:
        name: the name.
        line: the line.
        sets: whether the program gives the name its value there.
    """

    name: str
    line: int
    sets: bool = False


@dataclass(frozen=True, slots=True)
class Reading:
    """What was found in a file.

    Attributes:
        uses: the names, by line.
        calls: the dotted names that are called, each with its call.
    """

    uses: list[Use]
    calls: list[tuple[str, ast.Call]]


class _Scope:
    """What names stand for in one block: a dotted path, or None for something of the program's."""

    def __init__(self, outer: _Scope | None = None) -> None:
        self.outer = outer
        self.names: dict[str, str | None] = {}

    def find(self, name: str) -> str | None:
        scope: _Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.outer
        return None


class _Reader(ast.NodeVisitor):
    """Walks one file; `roots` are the libraries whose names count."""

    def __init__(self, roots: frozenset[str]) -> None:
        self.roots = roots
        self.uses: list[Use] = []
        self.calls: list[tuple[str, ast.Call]] = []
        self.scope = _Scope()
        self.later: list[tuple[ast.AST, _Scope]] = []

    def read(self, tree: ast.AST) -> Reading:
        self.visit(tree)
        while self.later:
            node, self.scope = self.later.pop(0)
            self._body(node)
        return Reading(sorted(set(self.uses), key=lambda u: (u.line, u.name)), self.calls)

    # ------------------------------------------------------------ what names stand for
    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            root = alias.name.partition(".")[0]
            bound = alias.asname or root
            if root not in self.roots:
                self.scope.names[bound] = None
                continue
            self.scope.names[bound] = alias.name if alias.asname else root
            if alias.name != root:
                self._use(alias.name, node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        module = node.module or ""
        ours = not node.level and module.partition(".")[0] in self.roots
        for alias in node.names:
            bound = alias.asname or alias.name
            if not ours:
                self.scope.names[bound] = None
            elif alias.name != "*":
                self.scope.names[bound] = f"{module}.{alias.name}"
                self._use(f"{module}.{alias.name}", node)

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        path = self._path(node.value)
        for target in node.targets:
            if isinstance(target, ast.Name):
                self.scope.names[target.id] = path
            elif (
                isinstance(target, ast.Tuple)
                and isinstance(node.value, ast.Tuple)
                and len(target.elts) == len(node.value.elts)
            ):
                for one, value in zip(target.elts, node.value.elts):
                    self._bind(one, self._path(value))
            else:
                self._bind(target, None)

    def _bind(self, target: ast.AST, path: str | None) -> None:
        for node in [target] if path is not None else ast.walk(target):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                self.scope.names[node.id] = path
        if not isinstance(target, ast.Name):
            self.visit(target)

    def _path(self, node: ast.AST) -> str | None:
        """The dotted path of a name or an attribute chain; None for anything else."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        root = self.scope.find(node.id) if isinstance(node, ast.Name) else None
        return None if root is None else ".".join([root, *reversed(parts)])

    # ------------------------------------------------------------ uses
    def visit_Attribute(self, node: ast.Attribute) -> None:
        path = self._path(node)
        if path is not None:
            self.uses.append(Use(path, node.lineno, isinstance(node.ctx, ast.Store)))
        else:
            self.visit(node.value)

    def visit_Call(self, node: ast.Call) -> None:
        path = self._path(node.func)
        if path is not None:
            self.calls.append((path, node))
        self.generic_visit(node)

    def _use(self, name: str, node: ast.stmt | ast.expr) -> None:
        self.uses.append(Use(name, node.lineno))

    # ------------------------------------------------------------ blocks of their own
    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.scope.names[node.name] = None
        for outside in (*node.decorator_list, node.returns, *_outside(node.args)):
            if outside is not None:
                self.visit(outside)
        self.later.append((node, _Scope(self.scope)))

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> None:
        for outside in _outside(node.args):
            if outside is not None:
                self.visit(outside)
        self.later.append((node, _Scope(self.scope)))

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.scope.names[node.name] = None
        for outside in (*node.bases, *(k.value for k in node.keywords), *node.decorator_list):
            self.visit(outside)
        # A class's names are not those of its methods, which look past it.
        outer, self.scope = self.scope, _Scope(self.scope)
        for statement in node.body:
            self.visit(statement)
        inner, self.scope = self.scope, outer
        for i, (waiting, scope) in enumerate(self.later):
            if scope.outer is inner:
                self.later[i] = waiting, _Scope(outer)

    def _body(self, node: ast.AST) -> None:
        if isinstance(node, ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef):
            for argument in _parameters(node.args):
                self.scope.names[argument] = None
            statements: Iterable[ast.AST] = (
                [node.body] if isinstance(node, ast.Lambda) else node.body
            )
            for statement in statements:
                self.visit(statement)


def _outside(args: ast.arguments) -> Iterator[ast.expr | None]:
    """Defaults and annotations: they belong to the block around the function."""
    yield from args.defaults
    yield from args.kw_defaults
    for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg):
        yield None if arg is None else arg.annotation


def _parameters(args: ast.arguments) -> Iterator[str]:
    for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg):
        if arg is not None:
            yield arg.arg


def reading_of(tree: ast.Module, roots: frozenset[str]) -> Reading:
    """The names of the libraries `roots` that a file uses, and its calls of them.

    Raises:
        RecursionError: the tree is too deep for this interpreter.
    """
    return _Reader(roots).read(tree)
