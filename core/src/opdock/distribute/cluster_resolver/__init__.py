"""`tf.distribute.cluster_resolver`: who knows which tasks a cluster has, and which one this is."""

from __future__ import annotations

from opdock.distribute.cluster_resolver.gce import GCEClusterResolver
from opdock.distribute.cluster_resolver.kubernetes import KubernetesClusterResolver
from opdock.distribute.cluster_resolver.resolver import ClusterResolver
from opdock.distribute.cluster_resolver.simple import SimpleClusterResolver
from opdock.distribute.cluster_resolver.slurm import SlurmClusterResolver
from opdock.distribute.cluster_resolver.tfconfig import TFConfigClusterResolver
from opdock.distribute.cluster_resolver.tpu import TPUClusterResolver
from opdock.distribute.cluster_resolver.union import UnionClusterResolver

__all__ = [
    "ClusterResolver", "GCEClusterResolver", "KubernetesClusterResolver", "SimpleClusterResolver",
    "SlurmClusterResolver", "TFConfigClusterResolver", "TPUClusterResolver", "UnionResolver",
]  # fmt: skip

UnionResolver = UnionClusterResolver
