"""`tf.examples.tutorials`."""

from __future__ import annotations

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    if name == "mnist":
        return importlib.import_module("opdock.examples.tutorials.mnist")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
