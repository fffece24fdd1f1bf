"""Oracle of the strings family."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]


def _bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value


@reference("StringJoin")
def string_join(attrs: dict[str, Any], inputs: list[Array]) -> Array:
    """Element by element, scalars repeated."""
    shape = next((x.shape for x in inputs if x.ndim), ())
    out = np.empty(shape, object)
    for index in np.ndindex(*shape):
        parts = [x[index] if x.ndim else x[()] for x in inputs]
        out[index] = _bytes(attrs["separator"]).join(parts)
    return out


@reference("StaticRegexFullMatch")
def static_regex_full_match(attrs: dict[str, Any], input: Array) -> Array:
    """True where the whole string matches."""
    return regex_full_match(attrs, input, np.array(_bytes(attrs["pattern"]), object))


@reference("RegexFullMatch")
def regex_full_match(attrs: dict[str, Any], input: Array, pattern: Array) -> Array:
    """True where the whole string matches."""
    out = np.zeros(input.shape, np.bool_)
    for index in np.ndindex(*input.shape):
        out[index] = re.match(b"(?:" + pattern[()] + b")\\Z", input[index]) is not None
    return out
