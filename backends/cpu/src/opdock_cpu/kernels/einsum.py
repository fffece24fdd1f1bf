"""Einstein sums."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.plugin import COMPLEX, KernelTable, NodeSig, checks, dtypes

__all__ = ["table"]

table = KernelTable()

Array = npt.NDArray[Any]

_BLAS = COMPLEX | {dtypes.float32, dtypes.float64}

_INTS = frozenset({dtypes.int32, dtypes.int64})


def _when(sig: NodeSig) -> bool | str:
    result = sig.attrs["equation"].partition("->")[2].replace(".", "")
    return len(set(result)) == len(result) or "the result repeats a label"


@table.kernel("Einsum", T=_BLAS | _INTS, when=_when)
def _einsum(ctx: Any, *inputs: Array) -> Array:
    equation = ctx.attrs["equation"]
    terms, arrow, result = equation.partition("->")
    if arrow and "..." not in result:
        # NumPy would sum over them where it multiplies matrices.
        for term, x in zip(terms.split(","), inputs, strict=False):
            if "..." in term and x.ndim > len(term.replace(" ", "")) - 3:
                raise checks.invalid(f"Equation '{equation}' drops the dimensions of its ellipsis.")
    try:
        out = np.einsum(equation, *inputs, optimize=len(inputs) > 1)
    except ValueError as e:
        raise checks.invalid(f"Einsum '{equation}': {e}") from None
    return np.array(out)
