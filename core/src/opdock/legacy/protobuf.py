"""Runs modules that protoc generated before 3.19, as libraries of those years ship them.

Such a module registers its file with protobuf, then describes the file again, message by message.
Newer protobufs refuse the second half, which says nothing that the first has not. A module of this
kind is therefore made from the file it holds, with protobuf's builder, as newer ones are.
"""

from __future__ import annotations

import ast
import importlib
from importlib.abc import Loader
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType
from typing import Any

from opdock.legacy import uses
from opdock.syntax import tree_of


class GeneratedModules:
    """A finder of modules that old protocs generated; all others it leaves to the next."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """The spec of an old generated module."""
        if not name.endswith("_pb2") or name.startswith("google.protobuf."):
            return None
        spec = PathFinder.find_spec(name, path)
        if spec is None or not isinstance(spec.loader, SourceFileLoader):
            return None
        source = spec.loader.get_data(spec.loader.path)
        if b"FileDescriptor(" not in source or b"serialized_pb=" not in source:
            return None
        tree = tree_of(source)
        file = _serialized(tree)
        if file is not None:
            spec.loader = _Built(file, tree)
        return spec


class _Built(Loader):
    """Makes a module of a serialized FileDescriptorProto."""

    def __init__(self, file: bytes, tree: ast.Module) -> None:
        self._file, self._tree = file, tree

    def create_module(self, spec: ModuleSpec) -> None:
        """The usual module."""

    def exec_module(self, module: ModuleType) -> None:
        """Imports what the file imports, and fills the module with its messages and enums."""
        builder: Any = importlib.import_module("google.protobuf.internal.builder")
        pool: Any = importlib.import_module("google.protobuf.descriptor_pool")
        uses.record(f"module {module.__name__} of an old protoc", "built from its file")
        names = module.__dict__
        for node in ast.walk(self._tree):
            if isinstance(node, ast.ImportFrom):
                names |= _imported(node)
        names["DESCRIPTOR"] = pool.Default().AddSerializedFile(self._file)
        builder.BuildMessageAndEnumDescriptors(names["DESCRIPTOR"], names)
        builder.BuildTopDescriptorsAndMessages(names["DESCRIPTOR"], module.__name__, names)


def _serialized(tree: ast.Module) -> bytes | None:
    """The file in the call that registers it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == "serialized_pb":
            value: Any = node.value
            if isinstance(value, ast.Call) and value.args:  # `_b("...")`, for Python 2 and 3
                value = value.args[0]
            found = value.value if isinstance(value, ast.Constant) else None
            if isinstance(found, str):
                return found.encode("latin1")
            return found if isinstance(found, bytes) else None
    return None


def _imported(node: ast.ImportFrom) -> dict[str, Any]:
    """The modules of an import statement that register files which this one needs."""
    found: dict[str, Any] = {}
    module = node.module or ""
    for alias in node.names:
        if alias.name == "*":  # a public import: its messages are this file's as well
            found |= vars(importlib.import_module(module))
        elif alias.name.endswith("_pb2"):
            found[alias.asname or alias.name] = importlib.import_module(f"{module}.{alias.name}")
    return {name: value for name, value in found.items() if not name.startswith("__")}
