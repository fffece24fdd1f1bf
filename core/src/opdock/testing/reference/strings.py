"""Oracle of the string ops, on arrays of bytes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]
Attrs = Mapping[str, Any]


def _text(value: Any) -> str:
    item = np.asarray(value, object).item()
    return item.decode() if isinstance(item, bytes) else str(item)


@reference("StringJoin")
def string_join(attrs: Attrs, inputs: Sequence[Array]) -> Array:
    """Element by element with the separator between; scalars go with every element."""
    arrays = [np.asarray(a, object) for a in inputs]
    shape = next((a.shape for a in arrays if a.ndim), ())
    spread = [np.broadcast_to(a, shape) for a in arrays]
    out = np.empty(shape, object)
    for where in np.ndindex(*shape):
        out[where] = attrs["separator"].encode().join(a[where] for a in spread)
    return out


def matches(values: Array, pattern: str) -> Array:
    """Whether each string matches as a whole."""
    out = np.zeros(values.shape, np.bool_)
    for where in np.ndindex(*values.shape):
        out[where] = re.fullmatch(pattern.encode(), bytes(values[where])) is not None
    return out


@reference("RegexFullMatch")
def regex_full_match(attrs: Attrs, values: Array, pattern: Array) -> Array:
    """The pattern is a scalar tensor."""
    return matches(np.asarray(values, object), _text(pattern))


@reference("StaticRegexFullMatch")
def static_regex_full_match(attrs: Attrs, values: Array) -> Array:
    """The pattern is an attribute."""
    return matches(np.asarray(values, object), attrs["pattern"])
