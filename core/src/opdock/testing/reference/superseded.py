"""Oracle of superseded ops: they compute what the ops do that took their places."""

from __future__ import annotations

from typing import Any

from opdock.testing.reference import decompositions, fft, matrix, solve
from opdock.testing.reference._registry import reference, reference_for

FAMILIES = (decompositions, fft, matrix, solve)
"""The families whose functions these are; they have to be there first."""

_NAMES = (
    "Cholesky CholeskyGrad MatrixDeterminant MatrixInverse MatrixSolve MatrixTriangularSolve "
    "MatrixSolveLs SelfAdjointEig SelfAdjointEigV2 Svd MatrixDiag MatrixDiagPart MatrixSetDiag "
    "MatrixBandPart FFT FFT2D FFT3D IFFT IFFT2D IFFT3D"
)


def _as_before(name: str) -> None:
    function = reference_for(name)
    if function is None:
        raise LookupError(f"{name} has no reference")

    @reference(f"Batch{name}")
    def same(attrs: Any, *inputs: Any) -> Any:
        return function(attrs, *inputs)


for _name in _NAMES.split():
    _as_before(_name)
