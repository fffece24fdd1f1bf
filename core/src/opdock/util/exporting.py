"""What TF's `tf_export` and its like do: they note under which public names a thing is known.

opdock's own public names come from its table; those of libraries that were written beside
TensorFlow are kept here, where the libraries ask for them again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

__all__ = [
    "estimator_export", "get_canonical_name_for_symbol", "get_symbol_from_name", "keras_export",
    "tf_export",
]  # fmt: skip

_T = TypeVar("_T")
_symbols: dict[str, Any] = {}


class _Export:
    """A decorator that notes the public names of a function or class.

    Args:
        names: its names.
        v1: those of version 1's interface, where they are others.
        options: what else TensorFlow's own has, which is about its build.
    """

    _api: str

    def __init__(self, *names: str, v1: Sequence[str] | None = None, **options: Any) -> None:
        self._names = names
        self._v1 = names if v1 is None else tuple(v1)

    def __call__(self, target: _T) -> _T:
        """The function or class, which knows its names now."""
        if not isinstance(target, property):
            setattr(target, f"_{self._api}_api_names", self._names)
            setattr(target, f"_{self._api}_api_names_v1", self._v1)
        _symbols.update(dict.fromkeys((*self._names, *self._v1), target))
        return target

    def export_constant(self, module_name: str, name: str) -> None:
        """Does nothing: a constant is found in its module."""


class estimator_export(_Export):
    """A decorator that notes the public names of a part of tf.estimator."""

    _api = "estimator"


class keras_export(_Export):
    """A decorator that notes the public names of a part of tf.keras."""

    _api = "keras"


class tf_export:
    """A decorator that leaves its function alone: opdock's table of names is its own."""

    def __init__(self, *names: str, **options: Any) -> None:
        self._names = names

    def __call__(self, target: _T) -> _T:
        """The function or class as it is."""
        return target

    def export_constant(self, module_name: str, name: str) -> None:
        """Does nothing: a constant is found in its module."""


def get_canonical_name_for_symbol(
    symbol: Any, api_name: str = "tensorflow", add_prefix_to_v1_names: bool = False
) -> str | None:
    """The first public name of a function or class that a library exported, or None.

    Args:
        symbol: the function or class.
        api_name: "keras" or "estimator"; "tensorflow" has no names of its own here.
        add_prefix_to_v1_names: whether a name that only version 1 has begins with "compat.v1.".
    """
    own = getattr(symbol, "__dict__", {})
    names = own.get(f"_{api_name}_api_names")
    if names:
        return str(names[0])
    older = own.get(f"_{api_name}_api_names_v1")
    if older:
        return f"compat.v1.{older[0]}" if add_prefix_to_v1_names else str(older[0])
    return None


def get_symbol_from_name(name: str) -> Any:
    """What a library exported under a public name, or None."""
    return _symbols.get(name)
