"""The names by which programs write down classes of specs, and find them again."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from opdock.graph.nodes.typespec import TensorSpec, TypeSpec

__all__ = ["get_name", "lookup", "register"]

_T = TypeVar("_T", bound=type[TypeSpec])
_NAME = re.compile(r"^(\w+\.)+\w+$")
_by_name: dict[str, type[TypeSpec]] = {}
_names: dict[type[TypeSpec], str] = {}


def register(name: str) -> Callable[[_T], _T]:
    """A decorator that gives a class of specs a name, "package.Name".

    Raises:
        TypeError: the name is no string, or the class is not one of specs.
        ValueError: the name has another form, or is taken.
    """
    if not isinstance(name, str):
        raise TypeError(f"Expected `name` to be a string; got {name!r}")
    if not _NAME.match(name):
        raise ValueError(
            f"Registered name must have the form '{{project_name}}.{{type_name}}'; got {name!r}."
        )

    def note(cls: _T) -> _T:
        if not (isinstance(cls, type) and issubclass(cls, TypeSpec)):
            raise TypeError(f"Expected `cls` to be a TypeSpec; got {cls!r}")
        if cls in _names:
            raise ValueError(
                f"Class {cls.__module__}.{cls.__name__} has already been registered with name "
                f"{_names[cls]}."
            )
        if name in _by_name:
            raise ValueError(
                f"Name {name} has already been registered for class "
                f"{_by_name[name].__module__}.{_by_name[name].__name__}."
            )
        _names[cls], _by_name[name] = name, cls
        return cls

    return note


def get_name(cls: type[TypeSpec]) -> str:
    """The name of a class of specs.

    Raises:
        ValueError: it has none.
    """
    if cls not in _names:
        raise ValueError(f"TypeSpec {cls.__module__}.{cls.__name__} has not been registered.")
    return _names[cls]


def lookup(name: str) -> type[TypeSpec]:
    """The class of specs of a name.

    Raises:
        ValueError: there is none.
    """
    if name not in _by_name:
        raise ValueError(f"No TypeSpec has been registered with name {name!r}")
    return _by_name[name]


register("tf.TensorSpec")(TensorSpec)
