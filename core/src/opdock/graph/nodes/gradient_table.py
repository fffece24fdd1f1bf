"""The gradient functions as a table that libraries read, and change while they explain a network.

It is `ops._gradient_registry`: TensorFlow kept a dictionary of dictionaries there, and explainers
of networks (SHAP's) put functions of their own in the place of gradients while they build.
"""

from __future__ import annotations

from collections.abc import Iterator, KeysView, MutableMapping
from typing import Any

from opdock.graph.nodes import gradient_registry
from opdock.graph.nodes.registry import all_ops, find

__all__ = ["GRADIENTS", "GradientTable"]

_REPLACED = gradient_registry.REPLACED
_REGISTERED = gradient_registry.PYTHON_GRADIENTS


def _own(name: str) -> Any:
    """What an op's block says of its gradient: a function, None, or LookupError for nothing."""
    spec = find(name)
    if spec is not None and spec.gradient_fn is not None:
        return spec.gradient_fn
    if spec is None or spec.is_differentiable:
        raise LookupError(name)
    return None


def _has_own(name: str) -> bool:
    try:
        _own(name)
    except LookupError:
        return False
    return True


class _Entry(MutableMapping[str, Any]):
    """What is registered under a name: its "type", the function, and its "location"."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getitem__(self, key: str) -> Any:
        if key not in ("type", "location"):
            raise KeyError(key)
        for place in (_REPLACED, _REGISTERED):
            if self._name in place:
                function = place[self._name]
                break
        else:
            function = _own(self._name)
        if key == "type":
            return function
        code = getattr(function, "__code__", None)
        if code is None:
            return ("UNKNOWN",) * 5
        return code.co_filename, code.co_firstlineno, code.co_name, "", ""

    def __setitem__(self, key: str, value: Any) -> None:
        if key != "type":
            return  # where it is defined follows from the function
        if not _has_own(self._name):
            _REGISTERED[self._name] = value
        elif value is _own(self._name):
            _REPLACED.pop(self._name, None)
        else:
            _REPLACED[self._name] = value

    def __delitem__(self, key: str) -> None:
        raise TypeError("An entry keeps its function and its place")

    def __iter__(self) -> Iterator[str]:
        return iter(("type", "location"))

    def __len__(self) -> int:
        return 2


class _Entries(MutableMapping[str, Any]):
    """All entries by name."""

    def __getitem__(self, name: str) -> _Entry:
        if name not in _REGISTERED and not _has_own(name):
            raise KeyError(name)
        return _Entry(name)

    def __setitem__(self, name: str, value: Any) -> None:
        _Entry(name)["type"] = value["type"]

    def __delitem__(self, name: str) -> None:
        if _has_own(name):
            _REPLACED.pop(name, None)
        else:
            del _REGISTERED[name]

    def __iter__(self) -> Iterator[str]:
        own = (spec.name for spec in all_ops() if _has_own(spec.name))
        return iter(dict.fromkeys((*_REGISTERED, *own)))

    def __len__(self) -> int:
        return sum(1 for _ in self)


class GradientTable:
    """Looks up and registers gradient functions by the names of op types."""

    def __init__(self) -> None:
        self._registry = _Entries()

    def register(self, candidate: Any, name: str | None = None) -> None:
        """Registers a function, under its own name if none is given; KeyError if it is taken."""
        gradient_registry.RegisterGradient(name or candidate.__name__)(candidate)

    def list(self) -> KeysView[str]:
        """The names that have a gradient, or are declared to have none."""
        return self._registry.keys()

    def lookup(self, name: str) -> Any:
        """The function of a name; LookupError without one."""
        try:
            return self._registry[name]["type"]
        except KeyError:
            raise LookupError(f"gradient registry has no entry for: {name}") from None


GRADIENTS = GradientTable()
