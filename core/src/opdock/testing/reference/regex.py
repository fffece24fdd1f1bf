"""Oracle of regular expressions, by Python's engine."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]
Attrs = Mapping[str, Any]


def _text(value: Any) -> bytes:
    item = np.asarray(value, object).item()
    return item if isinstance(item, bytes) else str(item).encode()


def matches(values: Array, pattern: bytes) -> Array:
    """Whether each string matches as a whole."""
    out = np.zeros(values.shape, np.bool_)
    for where in np.ndindex(*values.shape):
        out[where] = re.fullmatch(pattern, bytes(values[where])) is not None
    return out


@reference("RegexFullMatch")
def regex_full_match(attrs: Attrs, values: Array, pattern: Array) -> Array:
    """The pattern is a scalar tensor."""
    return matches(np.asarray(values, object), _text(pattern))


@reference("StaticRegexFullMatch")
def static_regex_full_match(attrs: Attrs, values: Array) -> Array:
    """The pattern is an attribute."""
    return matches(np.asarray(values, object), attrs["pattern"].encode())


def replaced(text: bytes, pattern: bytes, rewrite: bytes, everywhere: bool) -> bytes:
    """The text with its matches replaced; none is empty right behind another."""
    out, at = b"", 0
    for match in re.finditer(pattern, text):
        if match.start() == match.end() == at and at > 0:
            continue
        out += text[at : match.start()]
        i = 0
        while i < len(rewrite):
            char, i = rewrite[i : i + 1], i + 1
            if char == b"\\":
                char, i = rewrite[i : i + 1], i + 1
                char = char if char == b"\\" else match.group(int(char)) or b""
            out += char
        at = match.end()
        if not everywhere:
            break
    return out + text[at:]


def _each(values: Array, pattern: bytes, rewrite: bytes, everywhere: bool) -> Array:
    out = np.empty(values.shape, object)
    for where in np.ndindex(*values.shape):
        out[where] = replaced(bytes(values[where]), pattern, rewrite, everywhere)
    return out


@reference("RegexReplace")
def regex_replace(attrs: Attrs, values: Array, pattern: Array, rewrite: Array) -> Array:
    """The texts are scalar tensors."""
    everywhere = attrs["replace_global"]
    return _each(np.asarray(values, object), _text(pattern), _text(rewrite), everywhere)


@reference("StaticRegexReplace")
def static_regex_replace(attrs: Attrs, values: Array) -> Array:
    """The texts are attributes."""
    pattern, rewrite = attrs["pattern"].encode(), attrs["rewrite"].encode()
    return _each(np.asarray(values, object), pattern, rewrite, attrs["replace_global"])
