"""Einstein sums."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.plugin import COMPLEX, KernelTable, checks, dtypes

__all__ = ["table"]

table = KernelTable()

Array = npt.NDArray[Any]

_BLAS = COMPLEX | {dtypes.float32, dtypes.float64}

_INTS = frozenset({dtypes.int32, dtypes.int64})


@table.kernel("Einsum", T=_BLAS | _INTS)
def _einsum(ctx: Any, *inputs: Array) -> Array:
    try:
        out = np.einsum(ctx.attrs["equation"], *inputs, optimize=len(inputs) > 1)
    except ValueError as e:
        raise checks.invalid(f"Einsum '{ctx.attrs['equation']}': {e}") from None
    return np.array(out)
