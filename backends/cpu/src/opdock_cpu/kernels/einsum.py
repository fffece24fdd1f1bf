"""Einstein sums."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.plugin import COMPLEX, KernelTable, NodeSig, checks, dtypes

__all__ = ["table"]

table = KernelTable()

Array = npt.NDArray[Any]

_BLAS = COMPLEX | {dtypes.float32, dtypes.float64}

_INTS = frozenset({dtypes.int32, dtypes.int64})


_FEW = 1 << 18
"""Multiply-adds up to which NumPy's one call costs less than products and what is around them."""


def _when(sig: NodeSig) -> bool | str:
    equation = sig.attrs["equation"].replace(" ", "")
    terms, _, result = equation.partition("->")
    result = result.replace(".", "")
    if len(set(result)) != len(result):
        return "the result repeats a label"
    if len(sig.in_dtypes) > 1 and sig.in_dtypes[0] in _BLAS | _INTS and "..." not in equation:
        sizes: dict[str, int] = {}
        for term, shape in zip(terms.split(","), sig.in_shapes, strict=False):
            sizes.update((label, n or 1) for label, n in zip(term, shape or (), strict=False))
        if math.prod(sizes.values()) > _FEW:
            return "it is made of products of matrices, which are shared out better"
    return True


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
