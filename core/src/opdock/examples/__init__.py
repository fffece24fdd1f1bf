"""`tf.examples`: the modules of TensorFlow's tutorials that programs import."""

from __future__ import annotations

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    if name == "tutorials":
        return importlib.import_module("opdock.examples.tutorials")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
