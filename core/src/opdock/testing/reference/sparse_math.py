"""A sparse tensor combined with a dense one, cell by cell."""

from __future__ import annotations

from typing import Any

import numpy as np

from opdock.testing.reference._registry import reference


def _cellwise(fn: Any, indices: Any, values: Any, shape: Any, dense: Any) -> Any:
    spread = np.broadcast_to(dense, tuple(int(d) for d in shape))
    out = np.array(values)
    for i, cell in enumerate(indices):
        out[i] = fn(values[i], spread[tuple(int(c) for c in cell)])
    return out


@reference("SparseDenseCwiseMul")
def multiply(attrs: Any, indices: Any, values: Any, shape: Any, dense: Any) -> Any:
    """Products."""
    return _cellwise(lambda a, b: a * b, indices, values, shape, dense)


@reference("SparseDenseCwiseAdd")
def add(attrs: Any, indices: Any, values: Any, shape: Any, dense: Any) -> Any:
    """Sums."""
    return _cellwise(lambda a, b: a + b, indices, values, shape, dense)


@reference("SparseDenseCwiseDiv")
def divide(attrs: Any, indices: Any, values: Any, shape: Any, dense: Any) -> Any:
    """Quotients, truncated for integers."""
    if np.asarray(values).dtype.kind in "iu":
        return _cellwise(lambda a, b: int(a / b), indices, values, shape, dense)
    return _cellwise(lambda a, b: a / b, indices, values, shape, dense)
