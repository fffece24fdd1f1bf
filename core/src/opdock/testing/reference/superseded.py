"""Oracle of superseded ops: they compute what the ops do that took their places."""

from __future__ import annotations

from opdock.testing.reference import decompositions, fft, matrix, solve
from opdock.testing.reference._registry import reference, reference_for

FAMILIES = (decompositions, fft, matrix, solve)
"""The families whose functions these are; they have to be there first."""

_NAMES = (
    "Cholesky CholeskyGrad MatrixDeterminant MatrixInverse MatrixSolve MatrixTriangularSolve "
    "MatrixSolveLs SelfAdjointEig SelfAdjointEigV2 Svd MatrixDiag MatrixDiagPart MatrixSetDiag "
    "MatrixBandPart FFT FFT2D FFT3D IFFT IFFT2D IFFT3D"
)

for _name in _NAMES.split():
    _function = reference_for(_name)
    if _function is None:
        raise LookupError(f"{_name} has no reference")
    reference(f"Batch{_name}")(_function)
