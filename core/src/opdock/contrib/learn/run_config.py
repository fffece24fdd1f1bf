"""How an estimator of `tf.contrib.learn` runs: its place in a cluster, checkpoints, sessions."""

from __future__ import annotations

import copy
import json
import os
from typing import Any, Final

import opdock as tf

__all__ = ["ClusterConfig", "Environment", "RunConfig", "TaskType"]

_USE_DEFAULT: Final = 0
# Runs may differ in these and be the same experiment.
_MAY_CHANGE: Final = (
    "tf_random_seed", "save_summary_steps", "save_checkpoints_steps", "save_checkpoints_secs",
    "session_config", "keep_checkpoint_max", "keep_checkpoint_every_n_hours",
    "log_step_count_steps",
)  # fmt: skip


class Environment:
    """Where a program runs."""

    CLOUD: Final = "cloud"
    GOOGLE: Final = "google"
    LOCAL: Final = "local"


class TaskType:
    """The jobs of a cluster."""

    MASTER: Final = "master"
    PS: Final = "ps"
    WORKER: Final = "worker"


class ClusterConfig:
    """The cluster that the variable TF_CONFIG of the environment describes, and this task of it.

    Args:
        master: the sessions' target; the task's own server by default.
        evaluation_master: that of evaluations.

    Raises:
        ValueError: TF_CONFIG names a task that its cluster does not have.
    """

    def __init__(self, master: str | None = None, evaluation_master: str | None = None) -> None:
        config = json.loads(os.environ.get("TF_CONFIG") or "{}")
        task = config.get("task", {})
        jobs = config.get("cluster", {})
        self._cluster_spec = tf.train.ClusterSpec(jobs)
        self._task_type = task.get("type")
        self._task_id = self.get_task_id()
        self._master = self._address() if master is None else master
        self._evaluation_master = evaluation_master or ""
        self._num_ps_replicas = len(jobs.get(TaskType.PS, ()))
        self._num_worker_replicas = len(jobs.get(TaskType.WORKER, ())) + len(
            jobs.get(TaskType.MASTER, ())
        )
        self._environment = config.get("environment", Environment.LOCAL)
        self._is_chief = self._leads()

    def _leads(self) -> bool:
        in_cloud = self._environment == Environment.CLOUD
        chief = TaskType.MASTER if in_cloud else TaskType.WORKER
        return self._task_id == 0 and self._task_type in (None, chief)

    def _address(self) -> str:
        jobs = self._cluster_spec.as_dict()
        if not jobs or (len(jobs) == 1 and len(next(iter(jobs.values()))) == 1):
            return ""
        if not self._task_type:
            return ""
        if self._task_type not in jobs:
            raise ValueError(
                f"{self._task_type} is not a valid task_type in the cluster_spec:\n"
                f"{self._cluster_spec}\n\nNote that these values may be coming from the TF_CONFIG "
                "environment variable."
            )
        addresses = self._cluster_spec.job_tasks(self._task_type)
        if not 0 <= self._task_id < len(addresses):
            raise ValueError(
                f"{self._task_id} is not a valid task_id for task_type {self._task_type} in the "
                f"cluster_spec:\n{self._cluster_spec}\n\nNote that these values may be coming from "
                "the TF_CONFIG environment variable."
            )
        return f"grpc://{addresses[self._task_id]}"

    @staticmethod
    def get_task_id() -> int:
        """The index of this task in TF_CONFIG; 0 by default."""
        config = json.loads(os.environ.get("TF_CONFIG") or "{}")
        return int(config.get("task", {}).get("index") or 0)

    cluster_spec = property(lambda self: self._cluster_spec, doc="The tasks of the cluster.")
    environment = property(lambda self: self._environment, doc="One of `Environment`.")
    evaluation_master = property(
        lambda self: self._evaluation_master, doc="The target of evaluations."
    )
    is_chief = property(lambda self: self._is_chief, doc="Whether this task leads the training.")
    master = property(lambda self: self._master, doc="The target of sessions.")
    num_ps_replicas = property(lambda self: self._num_ps_replicas, doc="How many keep variables.")
    num_worker_replicas = property(lambda self: self._num_worker_replicas, doc="How many train.")
    task_id = property(lambda self: self._task_id, doc="The index of this task in its job.")
    task_type = property(lambda self: self._task_type, doc="The job of this task.")


class RunConfig(ClusterConfig):
    """The settings of an estimator's runs.

    Args:
        master, evaluation_master: see `ClusterConfig`.
        num_cores: how many threads; 0 chooses.
        log_device_placement: whether sessions tell the devices of ops.
        gpu_memory_fraction: how much of a GPU's memory a process takes.
        tf_random_seed: the graph's seed.
        save_summary_steps: the steps between two summaries.
        save_checkpoints_secs: the seconds between two checkpoints; 600 by default.
        save_checkpoints_steps: the steps between two, in the place of seconds.
        keep_checkpoint_max: how many checkpoints are kept.
        keep_checkpoint_every_n_hours: one of each so many hours stays.
        log_step_count_steps: the steps between two reports of speed.
        protocol: the server's.
        model_dir: where the checkpoints are.
        session_config: a ConfigProto for the sessions.
        session_creation_timeout_secs: how long a worker waits for the chief.

    Raises:
        ValueError: model_dir and TF_CONFIG differ.
    """

    _USE_DEFAULT = _USE_DEFAULT

    def __init__(
        self, master: str | None = None, num_cores: int = 0, log_device_placement: bool = False,
        gpu_memory_fraction: float = 1, tf_random_seed: int | None = None,
        save_summary_steps: int = 100, save_checkpoints_secs: int | None = _USE_DEFAULT,
        save_checkpoints_steps: int | None = None, keep_checkpoint_max: int = 5,
        keep_checkpoint_every_n_hours: float = 10000, log_step_count_steps: int = 100,
        protocol: str | None = None, evaluation_master: str = "", model_dir: str | None = None,
        session_config: Any = None, session_creation_timeout_secs: float = 7200,
    ) -> None:  # fmt: skip
        ClusterConfig.__init__(self, master=master, evaluation_master=evaluation_master)
        self._tf_config = tf.ConfigProto(
            log_device_placement=log_device_placement,
            inter_op_parallelism_threads=num_cores,
            intra_op_parallelism_threads=num_cores,
            gpu_options=tf.GPUOptions(per_process_gpu_memory_fraction=gpu_memory_fraction),
        )
        if save_checkpoints_secs == _USE_DEFAULT:
            save_checkpoints_secs = 600 if save_checkpoints_steps is None else None
        self._tf_random_seed = tf_random_seed
        self._save_summary_steps = save_summary_steps
        self._save_checkpoints_secs = save_checkpoints_secs
        self._save_checkpoints_steps = save_checkpoints_steps
        self._keep_checkpoint_max = keep_checkpoint_max
        self._keep_checkpoint_every_n_hours = keep_checkpoint_every_n_hours
        self._log_step_count_steps = log_step_count_steps
        self._protocol = protocol
        self._session_config = session_config
        self._model_dir = _agreed(model_dir)
        self._session_creation_timeout_secs = session_creation_timeout_secs
        # What the settings of `tf.estimator` have beside; theirs are read where they are one.
        self._train_distribute = self._eval_distribute = self._experimental_distribute = None
        self._device_fn = self._experimental_max_worker_delay_secs = None

    def replace(self, **settings: Any) -> RunConfig:
        """A copy with other values of some settings; ValueError for one that there is not."""
        copied = copy.copy(self)
        for name, value in settings.items():
            if not hasattr(self, f"_{name}"):
                raise ValueError(f"Replacing {name}: RunConfig has no such setting.")
            setattr(copied, f"_{name}", value)
        return copied

    def uid(self, whitelist: Any = None) -> str:
        """What tells one set of settings from another, but for those that may change."""
        state = {k: v for k, v in vars(self).items() if not k.startswith("__")}
        for name in _MAY_CHANGE if whitelist is None else whitelist:
            state.pop(f"_{name}", None)
        jobs = self._cluster_spec.as_dict()
        state["_cluster_spec"] = {job: jobs[job] for job in sorted(jobs)}
        return ", ".join(f"{k}={state[k]!r}" for k in sorted(state))

    tf_config = property(lambda self: self._tf_config, doc="The ConfigProto of threads and memory.")
    tf_random_seed = property(lambda self: self._tf_random_seed, doc="The graph's seed.")
    save_summary_steps = property(lambda self: self._save_summary_steps, doc="See the class.")
    save_checkpoints_secs = property(lambda self: self._save_checkpoints_secs, doc="See the class.")
    save_checkpoints_steps = property(
        lambda self: self._save_checkpoints_steps, doc="See the class."
    )
    keep_checkpoint_max = property(lambda self: self._keep_checkpoint_max, doc="See the class.")
    keep_checkpoint_every_n_hours = property(
        lambda self: self._keep_checkpoint_every_n_hours, doc="See the class."
    )
    log_step_count_steps = property(lambda self: self._log_step_count_steps, doc="See the class.")
    protocol = property(lambda self: self._protocol, doc="The server's protocol.")
    session_config = property(lambda self: self._session_config, doc="The sessions' ConfigProto.")
    model_dir = property(lambda self: self._model_dir, doc="Where the checkpoints are.")
    session_creation_timeout_secs = property(
        lambda self: self._session_creation_timeout_secs, doc="See the class."
    )


def become(settings: type) -> None:
    """Makes a `RunConfig` one of `tf.estimator`'s settings as well, as it is in TensorFlow.

    The library that has those is not imported for programs that name its estimators nowhere.
    """
    RunConfig.__bases__ = (ClusterConfig, settings)


def _agreed(model_dir: str | None) -> str | None:
    """The folder given, or TF_CONFIG's."""
    theirs = json.loads(os.environ.get("TF_CONFIG") or "{}").get("model_dir")
    if model_dir is not None and theirs is not None and model_dir != theirs:
        raise ValueError(
            "`model_dir` provided in RunConfig construct, if set, must have the same value as the "
            f'model_dir in TF_CONFIG. model_dir: {model_dir}\nTF_CONFIG["model_dir"]: {theirs}.\n'
        )
    return model_dir or theirs
