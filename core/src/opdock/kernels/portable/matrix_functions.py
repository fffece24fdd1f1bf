"""Portable kernel of the matrix exponential.

Square roots and logarithms take eigenvalues of general matrices, which the array API lacks.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from opdock.kernels.portable import portable
from opdock.kernels.portable.decompositions import TYPES, check_square, is_empty
from opdock.kernels.select.signature import NodeSig

_DEGREE: Final = 7
# The quotient of polynomials of that degree is exact to float64 for matrices up to this norm
# (Higham, "The scaling and squaring method for the matrix exponential revisited", 2005). Higher
# degrees take larger norms, but their terms cancel, which costs float32 digits.
_LIMIT: Final = 0.9504178996162932
_COEFFICIENTS: Final = [
    math.comb(_DEGREE, k) / math.perm(2 * _DEGREE, k) for k in range(_DEGREE + 1)
]


@portable("MatrixExponential", T=TYPES, extension="linalg")
def matrix_exponential(xp: Any, sig: NodeSig) -> Callable[[Any], Any]:
    """Scaling and squaring of a Padé approximant, each matrix as often as it needs."""

    def run(x: Any) -> Any:
        check_square(x)
        if is_empty(x):
            return xp.zeros_like(x)
        norm = xp.max(xp.sum(xp.abs(x), axis=-2), axis=-1)
        norm = xp.reshape(norm, (*norm.shape, 1, 1))
        finite = xp.isfinite(norm)
        halvings = xp.clip(xp.ceil(xp.log2(norm / _LIMIT)), 0.0, None)
        halvings = xp.where(finite, halvings, xp.zeros_like(halvings))
        out = _approximant(xp, xp.where(finite, x, xp.zeros_like(x)) * 0.5**halvings)
        for done in range(int(xp.max(halvings))):
            out = xp.where(halvings > done, xp.matmul(out, out), out)
        return xp.where(finite, out, xp.full_like(out, math.nan))

    return run


def _approximant(xp: Any, x: Any) -> Any:
    """The quotient p(x) / p(-x) that agrees with exp(x) to the highest order."""
    one = xp.eye(x.shape[-1], dtype=x.dtype, device=getattr(x, "device", None))
    x2 = xp.matmul(x, x)
    x4 = xp.matmul(x2, x2)
    x6 = xp.matmul(x4, x2)

    def of_squares(c: list[float]) -> Any:
        return c[0] * one + c[1] * x2 + c[2] * x4 + c[3] * x6

    even, odd = of_squares(_COEFFICIENTS[::2]), xp.matmul(x, of_squares(_COEFFICIENTS[1::2]))
    return xp.linalg.solve(even - odd, even + odd)
