"""What comparisons, logic and choices give."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]
Attrs = dict[str, Any]


@reference("Less")
def less(attrs: Attrs, x: Array, y: Array) -> Any:
    """X < y."""
    return x < y


@reference("LessEqual")
def less_equal(attrs: Attrs, x: Array, y: Array) -> Any:
    """X <= y."""
    return x <= y


@reference("Greater")
def greater(attrs: Attrs, x: Array, y: Array) -> Any:
    """X > y."""
    return x > y


@reference("GreaterEqual")
def greater_equal(attrs: Attrs, x: Array, y: Array) -> Any:
    """X >= y."""
    return x >= y


@reference("Equal")
def equal(attrs: Attrs, x: Array, y: Array) -> Any:
    """X == y; a single False for shapes that do not broadcast, if those are allowed."""
    try:
        np.broadcast_shapes(x.shape, y.shape)
    except ValueError:
        if attrs["incompatible_shape_error"]:
            raise
        return np.False_
    return x == y


@reference("NotEqual")
def not_equal(attrs: Attrs, x: Array, y: Array) -> Any:
    """The opposite of Equal."""
    return ~np.asarray(equal(attrs, x, y), np.bool_)


@reference("ApproximateEqual")
def approximate_equal(attrs: Attrs, x: Array, y: Array) -> Any:
    """|x - y| < tolerance."""
    return np.abs(x - y) < attrs["tolerance"]


@reference("LogicalAnd")
def logical_and(attrs: Attrs, x: Array, y: Array) -> Any:
    """Both."""
    return x & y


@reference("LogicalOr")
def logical_or(attrs: Attrs, x: Array, y: Array) -> Any:
    """Either."""
    return x | y


@reference("LogicalNot")
def logical_not(attrs: Attrs, x: Array) -> Any:
    """The opposite."""
    return ~x


@reference("Select")
def select(attrs: Attrs, condition: Array, t: Array, e: Array) -> Array:
    """Element by element, or row by row for a vector condition."""
    out = e.copy()
    for place in np.ndindex(t.shape):
        if condition[place[: condition.ndim]]:
            out[place] = t[place]
    return out


@reference("SelectV2")
def select_v2(attrs: Attrs, condition: Array, t: Array, e: Array) -> Array:
    """Element by element, everything broadcast."""
    condition, t, e = np.broadcast_arrays(condition, t, e)
    out = e.copy()
    for place in np.ndindex(t.shape):
        if condition[place]:
            out[place] = t[place]
    return out
