"""opdock: TensorFlow 1's programming model on any device.

    import opdock as tf

Names are imported when first used, so `import opdock` costs next to nothing; `_api.py` lists where
each one lives.
"""

from __future__ import annotations

import importlib
from typing import Any

from opdock import _api, _public

__version__ = "0.2.0"
newaxis = None

_loaded = False
_public.install()


def _load_operators() -> None:
    """Gives tensors their operators; names that no op family has come through here first."""
    global _loaded
    # Behind it, so that other threads wait for the operators, and an interrupted import is resumed.
    importlib.import_module("opdock.ops")
    _loaded = True


def _written(name: str) -> Any:
    """A name or module of opdock's own; AttributeError for any other."""
    found = _api.NAMES.get(name)
    if found is None and name not in _api.SUBMODULES:
        raise AttributeError(f"module 'opdock' has no attribute {name!r}")
    from opdock.util.collector import collector_waits

    with collector_waits(lasting=True):
        # These stand below the operators, which import them.
        if not _loaded and name not in ("dtypes", "errors", "shapes", "version"):
            _load_operators()
        if found is None:
            return _public.public_module(_api.SUBMODULES[name])
        value = getattr(importlib.import_module(found[0]), found[1])
    globals()[name] = value
    return value


def __getattr__(name: str) -> Any:
    if name in _api.INTERNAL:
        return importlib.import_module(f"opdock.{name}")
    if name in _api.NAMES or name in _api.SUBMODULES or name.startswith("_"):
        return _written(name)
    return importlib.import_module("opdock.mapping.modules").lookup(__name__, "", name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_api.NAMES, *_api.SUBMODULES})
