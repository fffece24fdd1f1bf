"""Clusters whose tasks are servers of this process."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

import opdock as tf

_ports = itertools.count(10_000)
Cluster = dict[str, list[tf.train.Server]]


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


@pytest.fixture
def cluster() -> Callable[..., Cluster]:
    """Makes the servers of a cluster, by job: `cluster(ps=1, worker=2)`."""

    def make(config: tf.ConfigProto | None = None, **jobs: int) -> Cluster:
        addresses = {job: [f"here:{next(_ports)}" for _ in range(n)] for job, n in jobs.items()}
        return {
            job: [
                tf.train.Server(addresses, job_name=job, task_index=i, config=config)
                for i in range(count)
            ]
            for job, count in jobs.items()
        }

    return make
