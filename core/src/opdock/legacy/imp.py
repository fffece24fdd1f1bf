"""The module `imp`, as far as programs that only load a file by its path go."""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import os
import sys
from types import ModuleType
from typing import Any, Final

PY_SOURCE: Final = 1
PY_COMPILED: Final = 2
C_EXTENSION: Final = 3
PKG_DIRECTORY: Final = 5

reload = importlib.reload
new_module = ModuleType


def load_source(name: str, pathname: str, file: Any = None) -> ModuleType:
    """Loads and registers a module from a source file.

    Raises:
        FileNotFoundError: there is no such file.
    """
    loader = importlib.machinery.SourceFileLoader(name, pathname)
    spec = importlib.util.spec_from_file_location(name, pathname, loader=loader)
    if spec is None:
        raise ImportError(f"cannot load {name!r} from {pathname!r}", name=name, path=pathname)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    loader.exec_module(module)
    return module


def find_module(name: str, path: list[str] | None = None) -> tuple[Any, str, tuple[str, str, int]]:
    """File, path and description of a module, for `load_module`.

    Raises:
        ImportError: there is none.
    """
    spec = importlib.machinery.PathFinder.find_spec(name, path)
    if spec is None or spec.origin is None:
        raise ImportError(f"No module named {name!r}", name=name)
    if spec.submodule_search_locations:
        return None, os.path.dirname(spec.origin), ("", "", PKG_DIRECTORY)
    suffix = os.path.splitext(spec.origin)[1]
    if suffix == ".py":
        return open(spec.origin, encoding="utf-8"), spec.origin, (suffix, "r", PY_SOURCE)
    return open(spec.origin, "rb"), spec.origin, (suffix, "rb", C_EXTENSION)


def load_module(name: str, file: Any, filename: str, details: tuple[str, str, int]) -> ModuleType:
    """Loads what `find_module` found."""
    if details[2] == PKG_DIRECTORY:
        return load_source(name, os.path.join(filename, "__init__.py"))
    if details[2] == PY_SOURCE:
        return load_source(name, filename)
    return importlib.import_module(name)


def acquire_lock() -> None:
    """Does nothing: imports lock themselves."""


release_lock = acquire_lock
