"""Clusters whose tasks are servers of this process."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from types import ModuleType

import pytest

import opdock as tf
from opdock import plugin
from opdock.plugin import ClusterEngineSpec, hookimpl
from opdock.runtime import servers
from opdock.runtime.cluster import peers, program, task
from tests.core.runtime.cluster.threads import FAR, Threads
from tests.threads import WAIT

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


@pytest.fixture
def threads(monkeypatch) -> Iterator[Threads]:
    """An engine of threads, the only one."""
    module = ModuleType("engine_of_threads")
    module.make = Threads
    module.opdock_cluster_engines = hookimpl(specname="opdock_cluster_engines")(
        lambda: [ClusterEngineSpec(name="threads", engine="engine_of_threads:make")]
    )
    monkeypatch.setattr(peers, "_open", {})
    plugin.register(module)
    yield peers.engine("threads")
    plugin.unregister("engine_of_threads")


class Clock:
    """Time that passes only while all that will be answered has been: no machine is too slow."""

    def __init__(self, threads: Threads) -> None:
        self._threads, self._now = threads, 0.0

    def monotonic(self) -> float:
        """The time, which is later at each look."""
        self._now += 1000.0 * self._threads.still
        return self._now


@pytest.fixture
def patient(threads, monkeypatch) -> None:
    """No deadline passes before something was lost, however late threads begin."""
    join = threading.Thread.join

    def joined(thread: threading.Thread, timeout: float | None = None) -> None:
        if thread.name == "opdock-step" and timeout is not None:
            assert threads.lost.wait(WAIT)
        join(thread, timeout)

    monkeypatch.setattr(threading.Thread, "join", joined)
    monkeypatch.setattr(program, "time", Clock(threads))


@pytest.fixture
def far(threads) -> list[servers.LocalServer]:
    """Servers of /job:ps and /job:worker that are found as far:0 and far:1."""
    definition = tf.train.Server(
        {"ps": [f"{FAR}0"], "worker": [f"{FAR}1"]}, job_name="ps", start=False
    ).server_def
    kept = []
    for number, job in enumerate(("ps", "worker")):
        definition.job_name = job
        own = type(definition)()
        own.CopyFrom(definition)
        kept.append(servers.start(f"near:{id(own)}", own))
        kept[-1].service = task.Task(kept[-1])
        threads.serve(f"{FAR}{number}", kept[-1].service.handle)
    return kept
