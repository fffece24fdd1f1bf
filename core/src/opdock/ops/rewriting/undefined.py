"""Variables of rewritten code that have no value yet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["Undefined", "UndefinedReturnValue", "ld", "ldu"]


class Undefined:
    """Stands in a variable that is not assigned; what is asked of it is as undefined.

    Args:
        symbol_name: the variable's name.
    """

    __slots__ = ("symbol_name",)

    def __init__(self, symbol_name: str) -> None:
        self.symbol_name = symbol_name

    def read(self) -> Any:
        """Raises what reading the variable raises in Python.

        Raises:
            UnboundLocalError: always.
        """
        raise UnboundLocalError(f"{self.symbol_name!r} is used before assignment")

    def __repr__(self) -> str:
        return self.symbol_name

    def __getattr__(self, name: str) -> Any:
        return self

    def __getitem__(self, index: Any) -> Any:
        return self


class UndefinedReturnValue:
    """Stands in a function's result as long as nothing is returned."""


def ld(value: Any) -> Any:
    """The value of a variable that is read.

    Raises:
        UnboundLocalError: it has none.
    """
    return value.read() if isinstance(value, Undefined) else value


def ldu(load: Callable[[], Any], name: str) -> Any:
    """The value of an attribute or an item, or `Undefined` where there is none yet."""
    try:
        return load()
    except (KeyError, AttributeError, NameError):
        return Undefined(name)
