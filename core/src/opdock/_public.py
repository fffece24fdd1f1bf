"""Makes TF's public modules what programs know: `import opdock.nn`, `tf.math.acos`, `tf.io.gfile`.

A public module stands where it is written, `tf.nn` in `opdock.api.nn`, and is found under TF's name
as well. A name that TF has in several modules is written in one of them; the others find it through
`opdock.mapping`, which knows which names are one object.
"""

from __future__ import annotations

import importlib
import sys
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any, cast

from opdock import _api


class PublicModule(ModuleType):
    """A public module: what it does not have itself may be another public name of TF's."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        below = f"{self.__name__}.{name}"
        if PathFinder.find_spec(below, getattr(self, "__path__", ())) is not None:
            return public_module(below)  # what opdock itself imports from here
        path = self.__name__.removeprefix("opdock.").removeprefix("api.")
        return importlib.import_module("opdock.mapping.modules").lookup(self, path, name)


class _Package(ModuleType):
    """opdock: its public modules find TF's other names, whoever imports them first."""

    def __setattr__(self, name: str, value: Any) -> None:
        if type(value) is ModuleType and _api.SUBMODULES.get(name) == value.__name__:
            value.__class__ = PublicModule
        super().__setattr__(name, value)


class _Finder:
    """Finder and loader of the public modules under the names that programs know."""

    def find_spec(self, name: str, *_: Any) -> ModuleSpec | None:
        package, _dot, module = name.rpartition(".")
        where = _api.SUBMODULES.get(module) if package == "opdock" else None
        if where is not None and where != name:
            return ModuleSpec(name, cast(Any, self), origin=where)
        if not name.startswith("opdock.") or name.startswith("opdock.mapping"):
            return None
        finder = importlib.import_module("opdock.mapping.finder")
        return cast("ModuleSpec | None", finder.OWN_NAMES.find_spec(name))

    def create_module(self, spec: ModuleSpec) -> None:
        """The module exists under its own name; the one that Python makes is forgotten."""

    def exec_module(self, module: ModuleType) -> None:
        where = _api.SUBMODULES[module.__name__.rpartition(".")[2]]
        sys.modules[module.__name__] = public_module(where)


def public_module(where: str) -> ModuleType:
    """Imports a module and makes it one that finds TF's other names."""
    module = importlib.import_module(where)
    if type(module) is ModuleType:
        module.__class__ = PublicModule
    return module


def install() -> None:
    """Asks the finder after all others, and looks at what becomes an attribute of opdock."""
    sys.meta_path.append(cast(Any, _Finder()))
    sys.modules["opdock"].__class__ = _Package
