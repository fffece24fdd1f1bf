"""Ops of graphs from before TensorFlow 1 that others have taken the place of.

Each is the other op on the same inputs, and has its attributes, as far as it had them then.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from opdock.graph.nodes.operation import Tensor
from opdock.ops.registry import ShapeSig, define_op, get
from opdock.shapes import Shape

__all__: list[str] = []

_REAL: Final = "T: {double, float}"
_COMPLEX: Final = "T: {float, double, complex64, complex128}"
_SPECTRUM: Final = "input: complex64 -> output: complex64"


class Superseded(NamedTuple):
    """An op as it was, and the one that does the same."""

    signature: str
    attrs: str
    by: str


SUPERSEDED: Final[Mapping[str, Superseded]] = {
    "BatchCholesky": Superseded("input: T -> output: T", _REAL, "Cholesky"),
    "BatchCholeskyGrad": Superseded(
        "l: T, grad: T -> output: T", "T: {float, double}", "CholeskyGrad"
    ),
    "BatchMatrixDeterminant": Superseded(
        "input: T -> output: T", _COMPLEX, "MatrixDeterminant"
    ),
    "BatchMatrixInverse": Superseded(
        "input: T -> output: T", f"adjoint: bool = false, {_REAL}", "MatrixInverse"
    ),
    "BatchMatrixSolve": Superseded(
        "matrix: T, rhs: T -> output: T", f"adjoint: bool = false, {_REAL}", "MatrixSolve"
    ),
    "BatchMatrixTriangularSolve": Superseded(
        "matrix: T, rhs: T -> output: T",
        f"lower: bool = true, adjoint: bool = false, {_REAL}", "MatrixTriangularSolve",
    ),
    "BatchMatrixSolveLs": Superseded(
        "matrix: T, rhs: T, l2_regularizer: double -> output: T",
        f"{_REAL}, fast: bool = true", "MatrixSolveLs",
    ),
    "BatchSelfAdjointEig": Superseded("input: T -> output: T", _REAL, "SelfAdjointEig"),
    "BatchSelfAdjointEigV2": Superseded(
        "input: T -> e: T, v: T", f"compute_v: bool = true, {_REAL}", "SelfAdjointEigV2"
    ),
    "BatchSvd": Superseded(
        "input: T -> s: T, u: T, v: T",
        "compute_uv: bool = true, full_matrices: bool = false, "
        "T: {double, float, complex64, complex128}", "Svd",
    ),
    "BatchMatrixDiag": Superseded("diagonal: T -> output: T", "T: type", "MatrixDiag"),
    "BatchMatrixDiagPart": Superseded("input: T -> diagonal: T", "T: type", "MatrixDiagPart"),
    "BatchMatrixSetDiag": Superseded(
        "input: T, diagonal: T -> output: T", "T: type", "MatrixSetDiag"
    ),
    "BatchMatrixBandPart": Superseded(
        "input: T, num_lower: int64, num_upper: int64 -> band: T", "T: type", "MatrixBandPart"
    ),
    **{
        f"Batch{name}": Superseded(_SPECTRUM, "", name)
        for name in ("FFT", "FFT2D", "FFT3D", "IFFT", "IFFT2D", "IFFT3D")
    },
}  # fmt: skip


def _shape(sig: ShapeSig) -> Shape | list[Shape]:
    """As TF has it: nothing is known but that there are so many outputs."""
    return [None] * sig.n_outputs


def _decompose(sig: ShapeSig, *inputs: Tensor) -> Any:
    replacement = get(SUPERSEDED[sig.op].by)
    names = replacement.definition.attrs.keys() - set(replacement.definition.inferred)
    return replacement(*inputs, **{n: v for n, v in sig.attrs.items() if n in names})


for _name, _old in SUPERSEDED.items():
    _spec = define_op(_name, _old.signature, _old.attrs).not_differentiable()
    _spec.shape(_shape)
    _spec.decomposition(_decompose)
