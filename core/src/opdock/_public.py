"""Lets `import opdock.nn` find the module where it is written: `opdock.api.nn`."""

from __future__ import annotations

import importlib
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, cast

from opdock import _api


class _Finder:
    """Finder and loader of the public modules under the names that programs know."""

    def find_spec(self, name: str, *_: Any) -> ModuleSpec | None:
        package, _dot, module = name.rpartition(".")
        where = _api.SUBMODULES.get(module) if package == "opdock" else None
        return None if where in (None, name) else ModuleSpec(name, cast(Any, self), origin=where)

    def create_module(self, spec: ModuleSpec) -> None:
        """The module exists under its own name; the one that Python makes is forgotten."""

    def exec_module(self, module: ModuleType) -> None:
        where = _api.SUBMODULES[module.__name__.rpartition(".")[2]]
        sys.modules[module.__name__] = importlib.import_module(where)


def install() -> None:
    """Asks the finder after all others."""
    sys.meta_path.append(cast(Any, _Finder()))
