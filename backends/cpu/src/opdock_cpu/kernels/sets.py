"""Differences of vectors of any type; the rest of the family is portable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opdock.plugin import KernelTable, NodeSig, checks

__all__ = ["table"]

table = KernelTable()


@table.binder("ListDiff")
def list_diff(sig: NodeSig) -> Callable[..., Any]:
    """The elements of `x` that are not in `y`, and where they are."""
    index_type = sig.out_dtypes[1].np

    def run(x: Any, y: Any) -> Any:
        for name, value in (("x", x), ("y", y)):
            if np.ndim(value) != 1:
                raise checks.invalid(
                    f"{name} should be a 1D vector, got shape {list(np.shape(value))}"
                )
        if x.dtype.hasobject:
            other = set(y.tolist())
            kept = np.array([i for i, v in enumerate(x.tolist()) if v not in other], index_type)
        else:
            kept = np.flatnonzero(np.isin(x, y, invert=True)).astype(index_type)
        return x[kept], kept

    return run
