"""`tf.contrib.factorization`: clusters of points, by k-means and by mixtures of Gaussians.

Its estimators stand on tf.estimator, which is a library: they are made when they are asked for.
"""

from __future__ import annotations

from typing import Any

from opdock.contrib.factorization.gmm_ops import GmmAlgorithm, gmm
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
    "gmm",
]  # fmt: skip
_ESTIMATORS = frozenset({"GMM", "KMeansClustering"})


def __getattr__(name: str) -> Any:
    if name not in _ESTIMATORS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from opdock.contrib.factorization import estimators

    return getattr(estimators, name)
