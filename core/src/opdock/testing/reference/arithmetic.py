"""What arithmetic on two tensors computes, integers with Python's exact rules."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]
Attrs = dict[str, Any]


def _simple(op: str, fn: Callable[[Array, Array], Any]) -> None:
    reference(op)(lambda attrs, x, y: fn(x, y))


def _elementwise(fn: Callable[[Any, Any], Any], x: Array, y: Array) -> Array:
    """`fn` of each pair of elements, one after the other."""
    xs, ys = np.broadcast_arrays(x, y)
    out = [fn(a, b) for a, b in zip(xs.ravel().tolist(), ys.ravel().tolist(), strict=True)]
    return np.array(out, dtype=xs.dtype).reshape(xs.shape)


def _truncated(x: Any, y: Any) -> Any:
    """The quotient of whole numbers towards zero."""
    size = abs(x) // abs(y)
    return size if (x < 0) == (y < 0) else -size


def _divide(x: Array, y: Array) -> Any:
    return _elementwise(_truncated, x, y) if x.dtype.kind == "i" else x / y


def _floor_divide(x: Array, y: Array) -> Any:
    return _elementwise(lambda a, b: a // b, x, y) if x.dtype.kind == "i" else np.floor(x / y)


def _floor_mod(x: Array, y: Array) -> Any:
    if x.dtype.kind == "i":
        return _elementwise(lambda a, b: a % b, x, y)
    return x - np.floor(x / y) * y


def _truncate_mod(x: Array, y: Array) -> Any:
    if x.dtype.kind == "i":
        return _elementwise(lambda a, b: a - _truncated(a, b) * b, x, y)
    return _elementwise(math.fmod, x, y)


def _power(x: Array, y: Array) -> Any:
    return _elementwise(lambda a, b: a**b, x, y) if x.dtype.kind == "i" else np.power(x, y)


def _add(x: Array, y: Array) -> Any:
    return x + y


_TABLE: dict[str, Callable[[Array, Array], Any]] = {
    "Add": _add,
    "AddV2": _add,
    "Sub": lambda x, y: x - y,
    "Mul": lambda x, y: x * y,
    "MulNoNan": lambda x, y: np.where(y == 0, 0, x * y),
    "Div": _divide,
    "RealDiv": _divide,
    "TruncateDiv": _divide,
    "DivNoNan": lambda x, y: np.where(y == 0, 0, x / y),
    "FloorDiv": _floor_divide,
    "FloorMod": _floor_mod,
    "TruncateMod": _truncate_mod,
    "Mod": _truncate_mod,
    "Pow": _power,
    "Maximum": lambda x, y: np.where(np.isnan(x) | (x > y), x, y),
    "Minimum": lambda x, y: np.where(np.isnan(x) | (x < y), x, y),
    "SquaredDifference": lambda x, y: (x - y) * np.conj(x - y),
    "Xlogy": lambda x, y: np.where(x == 0, 0, x * np.log(y)),
    "Xdivy": lambda x, y: np.where(x == 0, 0, x / y),
    "Atan2": np.arctan2,
}
for _op, _fn in _TABLE.items():
    _simple(_op, _fn)


@reference("NextAfter")
def next_after(attrs: Attrs, x1: Array, x2: Array) -> Any:
    """The neighbour of x1 among the numbers of its own type."""
    dtype = attrs["T"]
    return np.nextafter(x1.astype(dtype), x2.astype(dtype))
