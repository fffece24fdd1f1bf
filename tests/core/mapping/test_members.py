"""Classes have the members that TensorFlow 1.15's interface files list."""

from __future__ import annotations

import contextlib
import inspect
import re
import threading
from typing import Any

import opdock as tf
from opdock.legacy.names import METHODS
from opdock.mapping import coverage, names

# Whose classes are other libraries', as they are.
LIBRARIES = ("estimator.", "keras.")
# Class and member -> why it is not there.
MISSING = {
    "random.experimental.Generator.split": "makes generators of a tensor's values: eager execution",
    "train.LooperThread.isAlive": "threads have lost it in Python 3.9; `opdock run` puts it back",
}


def attributes(cls: Any) -> set[str]:
    """What the code of a class and of its bases sets on instances."""
    found: set[str] = set()
    for base in cls.__mro__:
        found |= set(getattr(base, "__annotations__", ()))
        with contextlib.suppress(OSError, TypeError):
            found |= set(re.findall(r"self\.(\w+)\b", inspect.getsource(base)))
    return found


def test_members_of_classes() -> None:
    there = {e.path for e in coverage.entries() if e.status == "there"}
    lacking = set()
    for path, members in names.table().classes.items():
        if path not in there or path.startswith(LIBRARIES):
            continue
        cls: Any = tf
        for part in path.split("."):
            cls = getattr(cls, part)
        if not inspect.isclass(cls):
            continue
        # Another test may have run a program in this process, for which they were put back.
        again = METHODS["threading:Thread"] if issubclass(cls, threading.Thread) else {}
        lacking |= {
            f"{path}.{m}" for m in members
            if m in again or (not hasattr(cls, m) and m not in attributes(cls))
        }  # fmt: skip
    assert lacking == MISSING.keys()
