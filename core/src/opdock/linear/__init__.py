"""Linear operators: batches of matrices by what they do, public as `tf.linalg.LinearOperator*`."""

from __future__ import annotations

from opdock.linear import rules as _rules  # noqa: F401  (the algebra knows its rules)
from opdock.linear.base import LinearOperator
from opdock.linear.circulant import (
    LinearOperatorCirculant,
    LinearOperatorCirculant2D,
    LinearOperatorCirculant3D,
    LinearOperatorToeplitz,
)
from opdock.linear.dense import (
    LinearOperatorDiag,
    LinearOperatorFullMatrix,
    LinearOperatorHouseholder,
    LinearOperatorLowerTriangular,
)
from opdock.linear.identity import (
    LinearOperatorIdentity,
    LinearOperatorScaledIdentity,
    LinearOperatorZeros,
)
from opdock.linear.joined import (
    LinearOperatorBlockDiag,
    LinearOperatorComposition,
    LinearOperatorKronecker,
)
from opdock.linear.low_rank import LinearOperatorLowRankUpdate
from opdock.linear.wrapped import LinearOperatorAdjoint, LinearOperatorInversion

__all__ = [
    "LinearOperator", "LinearOperatorAdjoint", "LinearOperatorBlockDiag",
    "LinearOperatorCirculant", "LinearOperatorCirculant2D", "LinearOperatorCirculant3D",
    "LinearOperatorComposition", "LinearOperatorDiag", "LinearOperatorFullMatrix",
    "LinearOperatorHouseholder", "LinearOperatorIdentity", "LinearOperatorInversion",
    "LinearOperatorKronecker", "LinearOperatorLowRankUpdate", "LinearOperatorLowerTriangular",
    "LinearOperatorScaledIdentity", "LinearOperatorToeplitz", "LinearOperatorZeros",
]  # fmt: skip
