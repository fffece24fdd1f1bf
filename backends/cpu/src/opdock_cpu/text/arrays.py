"""Arrays of strings: NumPy arrays of objects, each of them bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def flat(values: Any) -> list[bytes]:
    """The strings of an array, in order."""
    array = np.asarray(values, object)
    return array.reshape(-1).tolist()


def array_of(strings: Iterable[Any], shape: tuple[int, ...]) -> Array:
    """An array of that shape of strings in order."""
    items = list(strings)
    out = np.empty(len(items), object)
    out[:] = items
    return out.reshape(shape)


def each(fn: Callable[[bytes], Any], values: Any) -> Array:
    """`fn` of every string, in an array of the same shape."""
    return array_of(map(fn, flat(values)), np.shape(values))


def each_distinct(fn: Callable[[bytes], Any], values: Any) -> list[Any]:
    """`fn` of every string, in order, called once for all that are equal.

    Columns of text repeat themselves, and a dictionary finds a string in a twentieth of the time
    that a regular expression takes from Python; where none repeats, that is what is lost.
    """
    items = flat(values)
    known = {text: fn(text) for text in dict.fromkeys(items)}
    return list(map(known.__getitem__, items))


def one(value: Any) -> bytes:
    """The string in an array of one element."""
    item = flat(value)[0]
    return item.encode() if isinstance(item, str) else bytes(item)


def as_bytes(text: str | bytes) -> bytes:
    """An attribute as bytes."""
    return text.encode() if isinstance(text, str) else bytes(text)


def shown(value: bytes) -> str:
    """A string in a message."""
    return value.decode("utf-8", "replace")
