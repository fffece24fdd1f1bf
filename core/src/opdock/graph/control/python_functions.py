"""Python functions that graphs call, by token. A function lives as long as a graph that uses it."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any, Final

from opdock.graph.nodes.graph import Graph

# Reentrant: the collector may run inside, and a finalizer that it calls may come here.
_lock = threading.RLock()
_functions: Final[weakref.WeakValueDictionary[str, Entry]] = weakref.WeakValueDictionary()
_next = 0


class Entry:
    """Holds one function: functions of some kinds cannot be referred to weakly themselves."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function


def register(function: Callable[..., Any], graph: Graph) -> str:
    """Gives a function a token, for as long as `graph` (its outermost one) exists."""
    global _next
    with _lock:
        token = f"pyfunc_{_next}"
        _next += 1
    entry = _functions[token] = Entry(function)
    root: Any = graph
    while getattr(root, "outer", None) is not None:
        root = root.outer
    root.__dict__.setdefault("_py_funcs_used_in_graph", []).append(entry)
    return token


def find(token: str) -> Callable[..., Any] | None:
    """The function of a token, or None when its graph is gone."""
    entry = _functions.get(token)
    return None if entry is None else entry.function
