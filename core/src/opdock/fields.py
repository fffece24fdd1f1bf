"""Fields of records that plugins make: of the types that their annotations say, or a TypeError."""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Mapping
from dataclasses import fields
from types import NoneType, UnionType
from typing import Any, Final, NamedTuple, get_args

import numpy as np

__all__ = ["check_fields", "check_value", "check_values"]


class _Kind(NamedTuple):
    """What an annotation admits.

    Attributes:
        types: whose instances may be it.
        words: what an error calls it.
        parts: what its elements are, one for each or one for all.
        any_length: whether there may be any number of elements.
    """

    types: tuple[type, ...]
    words: str
    parts: tuple[tuple[_Kind, ...], ...] = ()
    any_length: bool = False

    def admits(self, value: Any) -> bool:
        """Whether a value is of the kind."""
        if not isinstance(value, self.types) or (type(value) is bool and bool not in self.types):
            return False
        given: Any = value if self.parts else ()
        parts = self.parts * len(given) if self.any_length else self.parts
        return len(parts) == len(given) and all(map(_fits, given, parts))


class _Callable(type):
    """Makes `callable` a type to ask for."""

    def __instancecheck__(cls, value: Any) -> bool:
        return callable(value)


class _Function(metaclass=_Callable):
    pass


_SIMPLE: Final[Mapping[str, _Kind]] = {
    "None": _Kind((NoneType,), "None"),
    "str": _Kind((str,), "a string"),
    "bool": _Kind((bool, np.bool_), "a bool"),
    "int": _Kind((int, np.integer), "an int"),
    "float": _Kind((int, float, np.integer, np.floating), "a number"),
}
_SEQUENCE: Final = (tuple, list)
_Field = tuple[str, frozenset[type], tuple[_Kind, ...]]


def check_fields(record: Any, owner: str) -> None:
    """Looks at the fields of a dataclass whose annotations say plainly what may be in them.

    Args:
        record: an instance; its annotations are those of `from __future__ import annotations`.
        owner: what an error calls it, with what stands before the name of a field.

    Raises:
        TypeError: a value is of another type.
    """
    kind: Any = type(record)
    for name, exact, kinds in _fields_of(kind):
        value = getattr(record, name)
        if type(value) not in exact and not _fits(value, kinds):
            raise _wrong(f"{owner}{name}", kinds, value)


def check_value(name: str, value: Any, annotation: str) -> None:
    """The same for one value, an argument say."""
    kinds = _plain_kinds(annotation)
    if not _fits(value, kinds):
        raise _wrong(name, kinds, value)


def check_values(owner: str, annotation: str, **values: Any) -> None:
    """The same for arguments by name, of one kind and of one owner."""
    for name, value in values.items():
        check_value(f"{owner}{name}", value, annotation)


def _wrong(name: str, kinds: tuple[_Kind, ...], value: Any) -> TypeError:
    words = " or ".join(kind.words for kind in kinds)
    return TypeError(f"{name} must be {words}, got {value!r}")


def _fits(value: Any, kinds: tuple[_Kind, ...]) -> bool:
    return not kinds or any(kind.admits(value) for kind in kinds)


@functools.cache
def _fields_of(record: Any) -> tuple[_Field, ...]:
    """The fields that can be looked at; most values are of a type that is admitted as it is."""
    scope = vars(sys.modules[record.__module__])
    found = [(f.name, _kinds(str(f.type), scope)) for f in fields(record)]
    return tuple(
        (name, frozenset(t for k in kinds if not k.parts for t in k.types), kinds)
        for name, kinds in found
        if kinds
    )


def _kinds(annotation: str, scope: Mapping[str, Any]) -> tuple[_Kind, ...]:
    """What an annotation admits; nothing where it is not that plain."""
    kinds = [_kind(part, scope) for part in _split(annotation, "|")]
    return () if None in kinds else tuple(kind for kind in kinds if kind is not None)


@functools.cache
def _plain_kinds(annotation: str) -> tuple[_Kind, ...]:
    return _kinds(annotation, {})


def _kind(text: str, scope: Mapping[str, Any]) -> _Kind | None:
    if text in _SIMPLE:
        return _SIMPLE[text]
    if text.startswith("Callable["):
        return _Kind((_Function,), "callable")
    if text.startswith("Mapping["):
        return _Kind((Mapping,), "a dict")
    if found := re.fullmatch(r"tuple\[(.*)\]", text):
        inner = _split(found[1], ",")
        parts = tuple(_kinds(part, scope) for part in inner if part != "...")
        words = " and ".join(_words(part, scope) for part in inner if part != "...")
        if inner[-1] == "...":
            return _Kind(_SEQUENCE, f"a tuple, each {words}", parts, any_length=True)
        return _Kind(_SEQUENCE, f"a tuple of {words}", parts)
    named = scope.get(text)
    if isinstance(named, UnionType):
        return _Kind(get_args(named), f"a {text}")
    if not isinstance(named, type) or named is Any or hasattr(named, "_is_protocol"):
        return None
    return _Kind((named,), f"a {text}")


def _words(annotation: str, scope: Mapping[str, Any]) -> str:
    return " or ".join(kind.words for kind in _kinds(annotation, scope)) or annotation


def _split(text: str, mark: str) -> list[str]:
    """The parts between marks that are in no brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "[") - (letter == "]")
        if letter == mark and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]
