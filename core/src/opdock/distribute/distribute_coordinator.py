"""`run_distribute_coordinator`: one function, called for each task of a cluster that trains."""

from __future__ import annotations

import copy
import json
import os
import threading
from collections.abc import Callable
from typing import Any, Final, Self

from opdock import errors
from opdock.api import logging
from opdock.distribute import worker_context
from opdock.distribute.clusters import collective_leader, is_chief, normalize_cluster_spec
from opdock.io import protos
from opdock.train.coordinator import Coordinator
from opdock.train.loops.monitored_session import (
    ChiefSessionCreator,
    SessionCreator,
    WorkerSessionCreator,
)
from opdock.train.loops.scaffold import Scaffold
from opdock.train.server_lib import ClusterSpec, Server

__all__ = [
    "CoordinatorMode", "TaskType", "WorkerBarrier", "WorkerContext",
    "run_distribute_coordinator", "run_standard_tensorflow_server",
]  # fmt: skip

_Function = Callable[[Any], Any]


class TaskType:
    """The jobs that a cluster of strategies has."""

    PS = "ps"
    WORKER = "worker"
    CHIEF = "chief"
    EVALUATOR = "evaluator"
    CLIENT = "client"


class CoordinatorMode:
    """Who calls the functions: a program that drives servers, or each worker its own."""

    STANDALONE_CLIENT = "standalone_client"
    INDEPENDENT_WORKER = "independent_worker"


_TRAINING: Final = (TaskType.CHIEF, TaskType.WORKER)


class WorkerBarrier:
    """Where the workers of one program wait for each other, as often as they like.

    Args:
        num_participants: how many there are.
    """

    def __init__(self, num_participants: int) -> None:
        self._missing = self._workers = num_participants
        self._round = 0
        self._left = False
        self._changed = threading.Condition()

    def wait(self) -> None:
        """Waits until all workers have come here.

        Raises:
            AbortedError: one has ended, so they cannot all come.
        """
        with self._changed:
            this_round = self._round
            self._missing -= 1
            if not self._missing:
                self._missing, self._round = self._workers, this_round + 1
                self._changed.notify_all()
            while self._round == this_round and not self._left:
                self._changed.wait()
            if self._round == this_round:
                raise errors.AbortedError(
                    None, None,
                    f"{self._workers} workers are to wait for each other here, one of which has "
                    "ended.",
                )  # fmt: skip

    def leave(self) -> None:
        """Says that a worker has ended and will not come again."""
        with self._changed:
            self._left = True
            self._changed.notify_all()


class WorkerContext:
    """What the function of a task may ask of it; entered, it is that of this thread.

    Args:
        strategy: the strategy of the task, which knows of the cluster.
        cluster_spec: the cluster; None or an empty one in a program by itself.
        task_type, task_id: which task it is; None where one graph spans the cluster.
        session_config: a ConfigProto for sessions.
        rpc_layer: the scheme of sessions' targets.
        worker_barrier: where the workers of this program meet, if it calls them all.
    """

    def __init__(
        self, strategy: Any, cluster_spec: Any, task_type: str | None, task_id: int | None,
        session_config: Any = None, rpc_layer: str | None = "grpc",
        worker_barrier: WorkerBarrier | None = None,
    ) -> None:  # fmt: skip
        self._strategy = strategy
        self._cluster_spec = ClusterSpec(cluster_spec or {})
        self._task_type, self._task_id = task_type, task_id
        self._session_config = session_config
        self._rpc_layer = rpc_layer
        self._worker_barrier = worker_barrier

    def __str__(self) -> str:
        task = f"/job:{self._task_type}/task:{self._task_id}" if self._task_type else "local"
        return f"[{task} of {self._cluster_spec}]"

    def __enter__(self) -> Self:
        worker_context.begin(self)
        return self

    def __exit__(self, *_: object) -> None:
        worker_context.end()

    def wait_for_other_workers(self) -> None:
        """Waits until all workers have come to such a call, where one program calls them all.

        Raises:
            AbortedError: another worker has ended.
        """
        if self._worker_barrier is not None:
            self._worker_barrier.wait()

    def session_creator(
        self, scaffold: Scaffold | None = None, config: Any = None,
        checkpoint_dir: str | None = None, checkpoint_filename_with_path: str | None = None,
        max_wait_secs: float = 7200,
    ) -> SessionCreator:  # fmt: skip
        """What makes sessions of this task, which the strategy has initialize variables or wait.

        Args:
            scaffold: the operations and the saver; made when absent.
            config: a ConfigProto, in which that of the context counts more.
            checkpoint_dir, checkpoint_filename_with_path: see `ChiefSessionCreator`.
            max_wait_secs: how long others than the chief wait for it.
        """
        chosen = self._session_config
        if config is not None:
            chosen = copy.deepcopy(config)
            if self._session_config is not None:
                chosen.MergeFrom(self._session_config)
        if not self._strategy or self._strategy.extended.experimental_should_init:
            return ChiefSessionCreator(
                scaffold, self.master_target, chosen, checkpoint_dir, checkpoint_filename_with_path
            )
        return WorkerSessionCreator(scaffold, self.master_target, chosen, max_wait_secs)

    @property
    def saves_together(self) -> bool:
        """Whether what is saved and summarized may take all workers, so that each has to."""
        return bool(self._strategy) and self._strategy.extended._saves_together

    def own_folders(
        self, checkpoint_dir: str | None, summary_dir: str | None
    ) -> tuple[str | None, str | None]:
        """Where this task writes its checkpoints and summaries; None for nowhere.

        Who writes only because all have to does so in a folder apart.
        """
        apart = ""
        if self.saves_together:
            apart = f"tmp_{self._task_type}_{self._task_id}" if self._task_type else "tmp"

        def own(folder: str | None, ours: bool) -> str | None:
            if ours or not folder:
                return folder
            return os.path.join(folder, apart) if apart else None

        return own(checkpoint_dir, self.should_checkpoint), own(
            summary_dir, self.should_save_summary
        )

    @property
    def session_config(self) -> Any:
        """A copy of the ConfigProto for sessions."""
        return copy.deepcopy(self._session_config)

    @property
    def has_barrier(self) -> bool:
        """Whether `wait_for_other_workers` waits."""
        return self._worker_barrier is not None

    @property
    def distributed_mode(self) -> bool:
        """Whether it trains with others."""
        return bool(self._cluster_spec) and self._task_type != TaskType.EVALUATOR

    @property
    def cluster_spec(self) -> ClusterSpec:
        """The cluster; an empty one in a program by itself."""
        return ClusterSpec(self._cluster_spec)

    @property
    def task_type(self) -> str | None:
        """The task's job."""
        return self._task_type

    @property
    def task_id(self) -> int | None:
        """The task's number."""
        return self._task_id

    @property
    def master_target(self) -> str:
        """The target of sessions; "" in a program by itself."""
        if not self._cluster_spec:
            return ""
        job, index = self._task_type, self._task_id or 0
        if job is None:
            chief = TaskType.CHIEF in self._cluster_spec.jobs
            job, index = TaskType.CHIEF if chief else TaskType.WORKER, 0
        scheme = f"{self._rpc_layer}://" if self._rpc_layer else ""
        return scheme + self._cluster_spec.task_address(job, index)

    @property
    def is_chief(self) -> bool:
        """Whether the task initializes and saves."""
        if not self._cluster_spec or self._task_type in (None, TaskType.EVALUATOR):
            return True
        return is_chief(self._cluster_spec, self._task_type, self._task_id)

    @property
    def num_workers(self) -> int:
        """How many tasks train."""
        return _worker_count(self._cluster_spec)

    @property
    def experimental_should_init(self) -> bool:
        """Whether the task initializes variables."""
        return bool(self._strategy.extended.experimental_should_init)

    @property
    def should_checkpoint(self) -> bool:
        """Whether the task writes checkpoints."""
        return bool(self._strategy.extended.should_checkpoint)

    @property
    def should_save_summary(self) -> bool:
        """Whether the task writes summaries."""
        return bool(self._strategy.extended.should_save_summary)


def _worker_count(cluster: ClusterSpec) -> int:
    jobs = cluster.as_dict()
    return sum(len(jobs.get(job, ())) for job in _TRAINING)


# ---------------------------------------------------------------- servers
_lock = threading.RLock()
_servers: Final[dict[bytes, Server]] = {}
"""The servers of this process by their definition: they live as long as it does."""


def _serve(cluster: ClusterSpec, job: str, index: int, config: Any, protocol: str | None) -> Server:
    """The server of a task; the one that there is, where a program asks again.

    Raises:
        ValueError: the cluster has no such task.
        UnknownError: another server has its address.
    """
    # An evaluator is by itself, so that none of its operations goes to those that train.
    jobs = {
        name: tasks
        for name, tasks in cluster.as_dict().items()
        if name == job or TaskType.EVALUATOR not in (name, job)
    }
    server = Server(jobs, job, index, protocol or None, config, start=False)
    with _lock:
        found = _servers.setdefault(server.server_def.SerializeToString(deterministic=True), server)
    found.start()
    return found


def run_standard_tensorflow_server(session_config: Any = None) -> Server:
    """Starts the server of the task that TF_CONFIG names.

    Args:
        session_config: a ConfigProto for sessions that bring none.

    Raises:
        ValueError: TF_CONFIG names no cluster, no task, or one that the cluster does not have.
        UnknownError: another server has its address.
    """
    told = _told()
    for part in ("cluster", "task"):
        if part not in told:
            raise ValueError(f'"{part}" is not found in TF_CONFIG.')
    cluster, task = normalize_cluster_spec(told["cluster"]), told["task"]
    if "type" not in task:
        raise ValueError('"task_type" is not found in the `task` part of TF_CONFIG.')
    if not any(job in cluster.jobs for job in _TRAINING):
        raise ValueError("You must have `chief` or `worker` jobs in the `cluster_spec`.")
    job, index = task["type"], int(task.get("index", 0))
    config = protos.ConfigProto()
    if session_config is not None:
        config.CopyFrom(session_config)
    config.experimental.collective_group_leader = collective_leader(cluster, job, index)
    return _serve(cluster, job, index, config, told.get("rpc_layer", "grpc"))


def _told() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(os.environ.get("TF_CONFIG", "{}"))
    return found


def _server_config(
    strategy: Any, eval_strategy: Any, cluster: ClusterSpec, job: str, index: int, config: Any
) -> Any:
    """The ConfigProto of a task's server: without filters, as sessions of all strategies come."""
    config = copy.deepcopy(config)
    own = copy.deepcopy(eval_strategy if job == TaskType.EVALUATOR else strategy)
    if job != TaskType.EVALUATOR:
        own.configure(config, cluster, job, index)
    elif own:
        own.configure(session_config=config)
    del config.device_filters[:]
    return config


# ---------------------------------------------------------------- functions
class _Run:
    """One call of `run_distribute_coordinator`, as its parts see it.

    Args:
        cluster: the cluster.
        config: a ConfigProto for sessions.
        scheme: that of sessions' targets.
    """

    def __init__(self, cluster: ClusterSpec, config: Any, scheme: str | None) -> None:
        self._cluster, self._config, self._scheme = cluster, config, scheme

    def call(
        self, fn: _Function, strategy: Any, job: str | None = None, index: int | None = None,
        barrier: WorkerBarrier | None = None,
    ) -> Any:  # fmt: skip
        """Calls a function for a task, with a strategy of its own."""
        config, own = copy.deepcopy(self._config), copy.deepcopy(strategy)
        if self._cluster and job != TaskType.EVALUATOR:
            own.configure(config, self._cluster, job, index)
        elif own:
            own.configure(session_config=config)
        with WorkerContext(own, self._cluster, job, index, config, self._scheme, barrier):
            return fn(own)

    def drive(
        self, worker_fn: _Function, strategy: Any, eval_fn: _Function, eval_strategy: Any
    ) -> Any:
        """Calls the functions of all tasks from this program, whose servers are elsewhere.

        Returns:
            What the function returns where it is called once; None where each worker calls it.
        """
        coordinator = Coordinator()
        threads = []
        if TaskType.EVALUATOR in self._cluster.jobs:
            threads.append(
                self._begin(coordinator, None, eval_fn, eval_strategy, TaskType.EVALUATOR, 0)
            )
        found = None
        if strategy.extended.experimental_between_graph:
            jobs = self._cluster.as_dict()
            barrier = WorkerBarrier(_worker_count(self._cluster))
            for job in _TRAINING:
                for index in range(len(jobs.get(job, ()))):
                    threads.append(
                        self._begin(coordinator, barrier, worker_fn, strategy, job, index)
                    )
        else:
            with coordinator.stop_on_exception():
                found = self.call(worker_fn, strategy)
        coordinator.join(threads)
        return found

    def _begin(
        self, coordinator: Coordinator, barrier: WorkerBarrier | None, fn: _Function,
        strategy: Any, job: str, index: int,
    ) -> threading.Thread:  # fmt: skip
        def work() -> None:
            try:
                self.call(fn, strategy, job, index, barrier)
            except BaseException as e:
                coordinator.request_stop(e)  # before others learn that they wait in vain
            finally:
                if barrier is not None:
                    barrier.leave()

        thread = threading.Thread(target=work, name=f"opdock-{job}-{index}", daemon=True)
        thread.start()
        return thread


def run_distribute_coordinator(
    worker_fn: _Function, strategy: Any, eval_fn: _Function | None = None,
    eval_strategy: Any = None, mode: str = CoordinatorMode.STANDALONE_CLIENT,
    cluster_spec: Any = None, task_type: str | None = None, task_id: int | None = None,
    session_config: Any = None, rpc_layer: str | None = "grpc",
) -> Any:  # fmt: skip
    """Calls a function for each task of a cluster that trains, with a strategy that knows of it.

    In `STANDALONE_CLIENT` mode one program, without a task or of job "client", calls the functions
    of all workers, each in a thread with a graph of its own, or the one function of a strategy
    whose graph spans all; the program of each other task becomes its server. In
    `INDEPENDENT_WORKER` mode the program of each task is its server and calls its own function, or
    that of the first worker calls the one that there is. Without a cluster the functions are called
    one after the other.

    The functions find who they work for with `get_current_worker_context`, and so do
    `tf.train.MonitoredTrainingSession` and its like.

    Args:
        worker_fn: the training, a function of the strategy.
        strategy: the strategy, of which each call gets a copy.
        eval_fn: the evaluation, of a task of job "evaluator"; `worker_fn` by default.
        eval_strategy: the evaluator's strategy; None for none.
        mode: a `CoordinatorMode`.
        cluster_spec: the cluster; that of TF_CONFIG by default, where the task stands, too.
        task_type, task_id: the task of this program.
        session_config: a ConfigProto for sessions.
        rpc_layer: the name of a cluster engine, and the scheme of targets.

    Returns:
        What the function returns where this program calls one; None where it calls several.

    Raises:
        ValueError: the mode, the cluster or the task is none.
    """
    told = _told()
    if not cluster_spec:
        cluster_spec = told.get("cluster", {})
        task = told.get("task", {})
        if task:
            task_type, task_id = task.get("type", task_type), int(task.get("index", task_id or 0))
    rpc_layer = told.get("rpc_layer", rpc_layer)
    config = session_config or protos.ConfigProto(allow_soft_placement=True)
    if not cluster_spec:
        run = _Run(ClusterSpec({}), config, rpc_layer)
        found = run.call(worker_fn, strategy)
        if eval_fn is None:
            logging.warning("Skipped evaluation since `eval_fn` is not passed in.")
        else:
            run.call(eval_fn, eval_strategy)
        return found
    if mode not in (CoordinatorMode.STANDALONE_CLIENT, CoordinatorMode.INDEPENDENT_WORKER):
        raise ValueError(f"Unexpected coordinator mode: {mode!r}")
    cluster = normalize_cluster_spec(cluster_spec)
    if task_type == TaskType.EVALUATOR and task_type not in cluster.jobs:
        # It watches what the cluster writes, and is none of its tasks.
        return _Run(ClusterSpec({}), config, rpc_layer).call(eval_fn or worker_fn, eval_strategy)
    run = _Run(cluster, config, rpc_layer)
    if mode == CoordinatorMode.STANDALONE_CLIENT and task_type in (None, TaskType.CLIENT):
        return run.drive(worker_fn, strategy, eval_fn or worker_fn, eval_strategy)
    if task_type not in (*_TRAINING, TaskType.PS, TaskType.EVALUATOR):
        raise ValueError(f"Unexpected task_type: {task_type!r}")
    index = task_id or 0
    server = _serve(
        cluster, task_type, index,
        _server_config(strategy, eval_strategy, cluster, task_type, index, config), rpc_layer,
    )  # fmt: skip
    if mode == CoordinatorMode.INDEPENDENT_WORKER:
        if task_type == TaskType.EVALUATOR:
            return run.call(eval_fn or worker_fn, eval_strategy, task_type, index)
        if task_type in _TRAINING:
            if strategy.extended.experimental_between_graph:
                return run.call(worker_fn, strategy, task_type, index)
            if is_chief(cluster, task_type, index):
                return run.call(worker_fn, strategy)
    server.join()
    return None
