"""`tf.contrib.factorization`: k-means, mixtures of Gaussians, and matrices of low rank (WALS).

Estimators of clusters stand on tf.estimator, which is a library: they are made when they are
asked for.
"""

from __future__ import annotations

from typing import Any

from opdock.contrib.factorization.gmm_ops import GmmAlgorithm, gmm
from opdock.contrib.factorization.wals import WALSMatrixFactorization
from opdock.contrib.factorization.wals_model import WALSModel
from opdock.contrib.factorization.wals_ops import masked_matmul, wals_compute_partial_lhs_and_rhs
from opdock.ops.composed.clustering import (
    COSINE_DISTANCE,
    KMEANS_PLUS_PLUS_INIT,
    RANDOM_INIT,
    SQUARED_EUCLIDEAN_DISTANCE,
    KMeans,
)

__all__ = [
    "COSINE_DISTANCE",
    "KMEANS_PLUS_PLUS_INIT",
    "RANDOM_INIT",
    "SQUARED_EUCLIDEAN_DISTANCE",
    "GmmAlgorithm",
    "KMeans",
    "WALSMatrixFactorization",
    "WALSModel",
    "gmm",
    "masked_matmul",
    "wals_compute_partial_lhs_and_rhs",
]  # fmt: skip
_ESTIMATORS = frozenset({"GMM", "KMeansClustering"})


def __getattr__(name: str) -> Any:
    if name not in _ESTIMATORS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from opdock.contrib.factorization import estimators

    return getattr(estimators, name)
