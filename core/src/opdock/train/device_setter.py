"""`tf.train.replica_device_setter`: variables on parameter servers, the rest on the worker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from opdock.graph.nodes.devicespec import DeviceSpec
from opdock.train.server_lib import ClusterSpec

STANDARD_PS_OPS: Final = (
    "Variable", "VariableV2", "AutoReloadVariable", "MutableHashTable", "MutableHashTableV2",
    "MutableHashTableOfTensors", "MutableHashTableOfTensorsV2", "MutableDenseHashTable",
    "MutableDenseHashTableV2", "VarHandleOp", "BoostedTreesEnsembleResourceHandleOp",
)  # fmt: skip


def replica_device_setter(
    ps_tasks: int = 0,
    ps_device: str = "/job:ps",
    worker_device: str = "/job:worker",
    merge_devices: bool = True,
    cluster: Any = None,
    ps_ops: Any = None,
    ps_strategy: Callable[[Any], int] | None = None,
) -> Any:
    """A device function for data-parallel training.

    Args:
        ps_tasks: the number of parameter servers; 0 without `cluster` gives None.
        ps_device: the device of variables.
        worker_device: the device of everything else.
        merge_devices: combine with what an op asks for itself.
        cluster: a ClusterSpec, ClusterDef or dict from which the number is taken.
        ps_ops: op types that go to parameter servers.
        ps_strategy: op to server number; one after the other by default.

    Raises:
        TypeError: the strategy is not callable.
    """
    if cluster is not None:
        jobs = ClusterSpec(cluster).as_dict()
        name = DeviceSpec.from_string(ps_device).job
        if name not in jobs:
            return None
        ps_tasks = len(jobs[name])
    if ps_tasks == 0:
        return None
    if ps_strategy is not None and not callable(ps_strategy):
        raise TypeError("ps_strategy must be callable")
    strategy = ps_strategy or RoundRobin(ps_tasks)
    kinds = STANDARD_PS_OPS if ps_ops is None else tuple(ps_ops)

    def choose(op: Any) -> str:
        if not merge_devices and op.device:
            return str(op.device)
        current = DeviceSpec.from_string(op.device or "")
        on_server = op.type in kinds and bool(ps_device)
        chosen = DeviceSpec.from_string(ps_device if on_server else worker_device)
        # Without a job of its own the servers' device says nothing of tasks.
        if on_server and chosen.job and current.job in (None, chosen.job):
            chosen.task = strategy(op)
        chosen.merge_from(current)
        return chosen.to_string()

    return choose


class RoundRobin:
    """A strategy of `replica_device_setter`: one server after the other.

    Args:
        num_tasks: how many servers there are.
    """

    def __init__(self, num_tasks: int) -> None:
        self._tasks = num_tasks
        self._next = 0

    def __call__(self, op: Any) -> int:
        """The server's number for an operation."""
        task = self._next
        self._next = (task + 1) % self._tasks
        return task
