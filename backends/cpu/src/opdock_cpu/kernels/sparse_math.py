"""A sparse tensor combined with a dense one at the sparse one's cells."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opdock.plugin import NUMBERS, Kernel, KernelTable, errors

__all__ = ["table"]

table = KernelTable()


def _combine(ufunc: Callable[..., Any]) -> Callable[..., Any]:
    def kernel(ctx: Any, indices: Any, values: Any, shape: Any, dense: Any) -> Any:
        wanted = tuple(int(d) for d in shape)
        try:
            spread = np.broadcast_to(dense, wanted)
        except ValueError:
            raise errors.InvalidArgumentError(
                None,
                None,
                "SparseDenseBinaryOpShared broadcasts dense to sparse only; got incompatible "
                f"shapes: [{list(wanted)}] vs. [{list(np.shape(dense))}]",
            ) from None
        cells = tuple(np.asarray(indices).T)
        bad = np.flatnonzero((np.asarray(indices) < 0) | (np.asarray(indices) >= np.array(wanted)))
        if bad.size:
            row = int(bad[0]) // max(len(wanted), 1)
            raise errors.InvalidArgumentError(
                None,
                None,
                f"indices[{row}] = {indices[row].tolist()} is out of bounds for {wanted}",
            )
        return np.asarray(ufunc(values, spread[cells]), np.asarray(values).dtype)

    return kernel


def _divide(a: Any, b: Any) -> Any:
    if np.asarray(a).dtype.kind not in "iu":
        return np.divide(a, b)
    if np.any(b == 0):
        raise errors.InvalidArgumentError(None, None, "Integer division by zero")
    return np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b))


for _op, _ufunc in (("Mul", np.multiply), ("Div", _divide), ("Add", np.add)):
    table.add(Kernel(op=f"SparseDenseCwise{_op}", fn=_combine(_ufunc), dtypes={"T": NUMBERS}))
