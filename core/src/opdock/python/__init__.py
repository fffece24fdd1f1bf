"""TF's internal tree, for programs that import from it: aliases, found by `opdock.mapping`.

`opdock.python.ops.array_ops` is what `tensorflow.python.ops.array_ops` is under `opdock run`.
"""

from __future__ import annotations

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    modules = importlib.import_module("opdock.mapping.modules")
    return modules.lookup(__name__, "python", name)
