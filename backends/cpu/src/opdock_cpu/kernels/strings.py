"""String kernels."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from opdock.plugin import KernelTable, NodeSig, checks

__all__ = ["table"]

Array = np.ndarray[Any, Any]

table = KernelTable()


@table.binder("StringJoin")
def string_join(sig: NodeSig) -> Callable[..., Array]:
    """Joins element by element; scalars are repeated."""
    separator = sig.attrs["separator"]
    mark = separator.encode() if isinstance(separator, str) else bytes(separator)

    def run(*inputs: Any) -> Array:
        arrays = [np.asarray(x, object) for x in inputs]
        shapes = {a.shape for a in arrays if a.ndim}
        if len(shapes) > 1:
            raise checks.invalid(f"Input shapes do not match: {sorted(shapes)}")
        shape = shapes.pop() if shapes else ()
        columns = [np.broadcast_to(a, shape).reshape(-1) for a in arrays]
        out = np.empty(shape, object)
        flat = out.reshape(-1)
        for i, parts in enumerate(zip(*columns, strict=True)):
            flat[i] = mark.join(parts)
        return out

    return run


def _matcher(pattern: Any) -> re.Pattern[bytes]:
    text = pattern.encode() if isinstance(pattern, str) else bytes(pattern)
    try:
        return re.compile(text)
    except re.error as e:
        raise checks.invalid(
            f"Invalid pattern: {text.decode(errors='replace')}, error: {e}"
        ) from None


def _matches(pattern: re.Pattern[bytes], values: Any) -> Array:
    array = np.asarray(values, object)
    found = [pattern.fullmatch(v) is not None for v in array.reshape(-1)]
    return np.array(found, np.bool_).reshape(array.shape)


@table.binder("StaticRegexFullMatch")
def static_regex_full_match(sig: NodeSig) -> Callable[..., Array]:
    """Which strings match a fixed expression."""
    pattern = _matcher(sig.attrs["pattern"])
    return lambda values: _matches(pattern, values)


@table.kernel("RegexFullMatch")
def regex_full_match(ctx: Any, values: Any, pattern: Any) -> Array:
    """Which strings match an expression."""
    return _matches(_matcher(np.asarray(pattern, object).reshape(-1)[0]), values)
