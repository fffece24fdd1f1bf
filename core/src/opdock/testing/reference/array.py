"""What the ops on shapes compute."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]
Attrs = dict[str, Any]


@reference("Shape")
def shape(attrs: Attrs, x: Array) -> Array:
    """The lengths of the dimensions."""
    return np.array(x.shape, np.int64)


@reference("ShapeN")
def shape_n(attrs: Attrs, values: list[Array]) -> tuple[Array, ...]:
    """The lengths of the dimensions of each input."""
    return tuple(np.array(v.shape, np.int64) for v in values)


@reference("Size")
def size(attrs: Attrs, x: Array) -> Array:
    """The number of elements."""
    return np.array(sum(1 for _ in x.flat))


@reference("Rank")
def rank(attrs: Attrs, x: Array) -> Array:
    """The number of dimensions."""
    return np.array(len(x.shape))


@reference("Reshape")
def reshape(attrs: Attrs, x: Array, wanted: Array) -> Array:
    """The elements in row-major order; one length may be left to be found."""
    lengths = [int(d) for d in wanted]
    if -1 in lengths:
        known = missing = 1
        for d in lengths:
            known *= d if d > 0 else 1
        for d in x.shape:
            missing *= 1 if d == 0 and 0 in lengths else d
        lengths[lengths.index(-1)] = missing // known
    out = np.empty(lengths, x.dtype)
    for place, value in enumerate(x.flat):
        out.flat[place] = value
    return out


@reference("ExpandDims")
def expand_dims(attrs: Attrs, x: Array, dim: Array) -> Array:
    """A dimension of length 1 more."""
    at = int(dim.reshape(-1)[0])
    lengths = list(x.shape)
    lengths.insert(at if at >= 0 else at + x.ndim + 1, 1)
    return x.reshape(lengths)


@reference("Squeeze")
def squeeze(attrs: Attrs, x: Array) -> Array:
    """Dimensions of length 1 fewer: the named ones, or all."""
    named = [a % x.ndim for a in attrs["squeeze_dims"]]
    kept = [d for i, d in enumerate(x.shape) if (i not in named if named else d != 1)]
    return x.reshape(kept)


@reference("EnsureShape")
def ensure_shape(attrs: Attrs, x: Array) -> Array:
    """The input."""
    return x


@reference("BroadcastTo")
def broadcast_to(attrs: Attrs, x: Array, wanted: Array) -> Array:
    """Each element of the result comes from index 0 of the dimensions that are repeated."""
    lengths = [int(d) for d in wanted]
    out = np.empty(lengths, x.dtype)
    skip = len(lengths) - x.ndim
    for place in np.ndindex(*lengths):
        source = tuple(0 if x.shape[i] == 1 else place[skip + i] for i in range(x.ndim))
        out[place] = x[source]
    return out


@reference("BroadcastArgs")
def broadcast_args(attrs: Attrs, a: Array, b: Array) -> Array:
    """Aligned at the end, a length of 1 gives way to the other."""
    n = max(len(a), len(b))
    long_a = [1] * (n - len(a)) + [int(d) for d in a]
    long_b = [1] * (n - len(b)) + [int(d) for d in b]
    return np.array([y if x == 1 else x for x, y in zip(long_a, long_b, strict=True)], np.int64)


@reference("UnravelIndex")
def unravel_index(attrs: Attrs, indices: Array, dims: Array) -> Array:
    """Digits of a number system whose bases are the dimensions."""
    out = np.zeros((len(dims), indices.size), np.int64)
    for column, index in enumerate(indices.reshape(-1)):
        rest = int(index)
        for row in range(len(dims) - 1, -1, -1):
            out[row, column] = rest % int(dims[row])
            rest //= int(dims[row])
    return out[:, 0] if indices.ndim == 0 else out
