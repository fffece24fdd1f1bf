"""`tf.contrib`: the parts of it that programs of TF 1's time use; each loads on first use."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any


def __getattr__(name: str) -> Any:
    if not name.startswith("_") and importlib.util.find_spec(f"{__name__}.{name}") is not None:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module 'opdock.contrib' has no attribute {name!r}")
