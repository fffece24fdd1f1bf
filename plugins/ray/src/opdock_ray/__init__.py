"""Clusters over Ray; imports of opdock only its module for plugins."""

from __future__ import annotations

from collections.abc import Iterator

from opdock.plugin import ClusterEngineSpec, hookimpl


@hookimpl
def opdock_cluster_engines() -> Iterator[ClusterEngineSpec]:
    """Tasks are the processes that call `tf.train.Server`; an actor takes the mail of each."""
    yield ClusterEngineSpec(name="ray", engine="opdock_ray.engine:RayEngine")
