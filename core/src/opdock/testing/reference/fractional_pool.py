"""What pools over windows of different sizes compute, for windows that their seeds decide."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference
from opdock.testing.reference.random import stateful, unit64

Array = npt.NDArray[Any]


def _windows(starts: Array, overlapping: bool, length: int) -> list[range]:
    ends = [min(int(b) + (1 if overlapping else 0), length) for b in starts[1:]]
    return [range(int(a), b) for a, b in zip(starts[:-1], ends, strict=True)]


def _starts(length: int, count: int, words: Iterator[int], even: bool) -> Array:
    """Where windows begin: in turns as even as they can be, or two sizes shuffled."""
    small = length // count
    if even:
        ratio = length / count
        most = min((small + 2) / ratio - 1, (length + 1 - small) / ratio - (count - 1))
        u = unit64(next(words), next(words)) * most
        ends = [1, *(math.ceil(ratio * (i + u)) for i in range(1, count)), length + 1]
        return np.array(ends, np.int64) - 1
    sizes = [small + 1] * (length % count) + [small] * (count - length % count)
    for first in range(count - 1):
        other = first + next(words) % (count - first)
        sizes[first], sizes[other] = sizes[other], sizes[first]
    return np.cumsum([0, *sizes]).astype(np.int64)


def _pooled(attrs: Any, x: Array, of_window: Any) -> tuple[Array, Array, Array]:
    stream, starts, block = stateful(attrs), [], 0
    for axis in (1, 2):
        count = math.floor(x.shape[axis] / attrs["pooling_ratio"][axis])
        even = attrs["pseudo_random"]
        starts.append(_starts(x.shape[axis], count, stream.words(block), even))
        block += 1 if even else -(-count // 4)
    rows, columns = (
        _windows(s, attrs["overlapping"], n) for s, n in zip(starts, x.shape[1:3], strict=True)
    )
    out = np.zeros((x.shape[0], len(rows), len(columns), x.shape[3]), x.dtype)
    for b, i, j, c in np.ndindex(*out.shape):
        out[b, i, j, c] = of_window([x[b, r, k, c] for r in rows[i] for k in columns[j]])
    return out, starts[0], starts[1]


@reference("FractionalMaxPool")
def fractional_max_pool(attrs: Any, x: Array) -> tuple[Array, Array, Array]:
    """The largest value of each window."""
    return _pooled(attrs, x, max)


@reference("FractionalAvgPool")
def fractional_avg_pool(attrs: Any, x: Array) -> tuple[Array, Array, Array]:
    """The mean of each window; of whole numbers without what is behind the point."""
    return _pooled(attrs, x, lambda seen: sum(seen) / len(seen))


@reference("FractionalMaxPoolGrad")
def fractional_max_pool_grad(
    attrs: Any, x: Array, pooled: Array, grad: Array, rows: Array, columns: Array
) -> Array:
    """The gradient of each window at the first of its largest values."""
    out = np.zeros(x.shape, x.dtype)
    for i, row in enumerate(_windows(rows, attrs["overlapping"], x.shape[1])):
        for j, column in enumerate(_windows(columns, attrs["overlapping"], x.shape[2])):
            for b, c in np.ndindex(x.shape[0], x.shape[3]):
                best = max(((r, k) for r in row for k in column),
                           key=lambda at: (x[b, at[0], at[1], c], -at[0], -at[1]))  # fmt: skip
                out[b, best[0], best[1], c] += grad[b, i, j, c]
    return out


@reference("FractionalAvgPoolGrad")
def fractional_avg_pool_grad(
    attrs: Any, shape: Array, grad: Array, rows: Array, columns: Array
) -> Array:
    """The gradient of each window in equal parts at its places."""
    out = np.zeros([int(d) for d in shape], grad.dtype)
    for i, row in enumerate(_windows(rows, attrs["overlapping"], int(shape[1]))):
        for j, column in enumerate(_windows(columns, attrs["overlapping"], int(shape[2]))):
            for r in row:
                for k in column:
                    share = grad[:, i, j, :] / (len(row) * len(column))
                    out[:, r, k, :] += share.astype(grad.dtype)
    return out
