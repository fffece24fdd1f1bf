"""`tf.contrib.tensor_forest`: forests of trees that grow while examples come.

A tree's splits are the best of a few that were drawn at random (extremely randomized trees), so a
batch is looked at once.
"""

from opdock.contrib.tensor_forest.graphs import (
    ForestVariables,
    RandomForestGraphs,
    RandomTreeGraphs,
    TreeVariables,
)
from opdock.contrib.tensor_forest.hparams import ForestHParams

__all__ = [
    "ForestHParams", "ForestVariables", "RandomForestGraphs", "RandomTreeGraphs", "TreeVariables",
]  # fmt: skip
