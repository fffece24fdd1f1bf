"""opdock: TensorFlow 1's programming model on any device.

    import opdock as tf

Names are imported when first used, so `import opdock` costs next to nothing; `_api.py` lists where
each one lives.
"""

from __future__ import annotations

import importlib
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, cast

from opdock import _api

__version__ = "0.1.0"
newaxis = None

_loaded = False


def _load_operators() -> None:
    """Gives tensors their operators; any use of the library goes through here first."""
    global _loaded
    _loaded = True
    importlib.import_module("opdock.ops.support.operators")
    importlib.import_module("opdock.ops.slicing")


def __getattr__(name: str) -> Any:
    found = _api.NAMES.get(name)
    if found is None and name not in _api.SUBMODULES:
        raise AttributeError(f"module 'opdock' has no attribute {name!r}")
    # These stand below the operators, which import them.
    if not _loaded and name not in ("dtypes", "errors", "shapes", "version"):
        _load_operators()
    if found is None:
        return importlib.import_module(_api.SUBMODULES[name])
    value = getattr(importlib.import_module(found[0]), found[1])
    globals()[name] = value
    return value


class _PublicModules:
    """Lets `import opdock.nn` find the module where it is written: `opdock.api.nn`."""

    def find_spec(self, name: str, *_: Any) -> ModuleSpec | None:
        package, _dot, module = name.rpartition(".")
        where = _api.SUBMODULES.get(module) if package == "opdock" else None
        return None if where in (None, name) else ModuleSpec(name, cast(Any, self), origin=where)

    def create_module(self, spec: ModuleSpec) -> None:
        """The module exists under its own name; the one that Python makes is forgotten."""

    def exec_module(self, module: ModuleType) -> None:
        where = _api.SUBMODULES[module.__name__.rpartition(".")[2]]
        sys.modules[module.__name__] = importlib.import_module(where)


sys.meta_path.append(cast(Any, _PublicModules()))


def __dir__() -> list[str]:
    return sorted({*globals(), *_api.NAMES, *_api.SUBMODULES})
