"""`tf.contrib.distribute`: strategies that can be told how many GPUs there are.

Of a data set, each replica has a whole batch at a time, where those of `tf.distribute` share one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from opdock.distribute import device_util
from opdock.distribute.cluster_resolver import SimpleClusterResolver, TFConfigClusterResolver
from opdock.distribute.collective_all_reduce import CollectiveAllReduceExtended
from opdock.distribute.cross_device_ops import CollectiveCommunication
from opdock.distribute.mirrored import MirroredExtended
from opdock.distribute.parameter_server import ParameterServerExtended
from opdock.distribute.strategy import Strategy

__all__ = [
    "CollectiveAllReduceStrategy", "DistributeConfig", "MirroredStrategy",
    "ParameterServerStrategy",
]  # fmt: skip


class DistributeConfig(NamedTuple):
    """By which strategies an estimator trains and evaluates.

    Attributes:
        train_distribute: for training.
        eval_distribute: for evaluation.
        remote_cluster: the cluster that the program is to drive; None for its own.
    """

    train_distribute: Any = None
    eval_distribute: Any = None
    remote_cluster: Any = None


class _OwnBatches:
    """The part of these strategies in which they differ: each replica has whole batches."""

    @property
    def _global_batch_size(self) -> bool:
        return False


class _Collective(_OwnBatches, CollectiveAllReduceExtended):
    """What `CollectiveAllReduceStrategy` does."""


class _Mirrored(_OwnBatches, MirroredExtended):
    """What `MirroredStrategy` does."""


class _ParameterServer(_OwnBatches, ParameterServerExtended):
    """What `ParameterServerStrategy` does."""


class CollectiveAllReduceStrategy(Strategy):
    """`MultiWorkerMirroredStrategy`, which can be told how many GPUs a worker has.

    Args:
        num_gpus_per_worker: how many.
        communication: by which way TF would reduce.
    """

    def __init__(
        self, num_gpus_per_worker: int = 0,
        communication: CollectiveCommunication = CollectiveCommunication.AUTO,
    ) -> None:  # fmt: skip
        told = TFConfigClusterResolver()
        resolver = SimpleClusterResolver(
            told.cluster_spec(), task_type=told.task_type, task_id=told.task_id,
            num_accelerators={"GPU": num_gpus_per_worker}, rpc_layer=told.rpc_layer,
        )  # fmt: skip
        super().__init__(_Collective(self, communication, resolver))


class MirroredStrategy(Strategy):
    """`tf.distribute.MirroredStrategy`, which can be told how many GPUs there are.

    Args:
        devices: the names of the devices.
        num_gpus: in place of `devices`, so many GPUs; 0 for the CPU.
        num_gpus_per_worker: the same.
        cross_device_ops: how values are reduced.
        auto_shard_dataset: ignored: workers that read one data set have a part of it each.
        cross_tower_ops: the old name of `cross_device_ops`.

    Raises:
        ValueError: both devices and their number are given, or two numbers, or two reductions.
    """

    def __init__(
        self, devices: Sequence[str] | None = None, num_gpus: int | None = None,
        num_gpus_per_worker: int | None = None, cross_device_ops: Any = None,
        auto_shard_dataset: bool = False, cross_tower_ops: Any = None,
    ) -> None:  # fmt: skip
        if cross_device_ops and cross_tower_ops:
            raise ValueError("Must not specify both cross_device_ops and cross_tower_ops")
        if num_gpus is not None and num_gpus_per_worker is not None:
            raise ValueError("You cannot specify both `num_gpus` and `num_gpus_per_worker`.")
        count = num_gpus_per_worker if num_gpus is None else num_gpus
        if count is not None:
            if devices:
                raise ValueError("Must only specify one of `devices` and `num_gpus`.")
            devices = device_util.local_devices_from_num_gpus(count)
        super().__init__(_Mirrored(self, devices, cross_device_ops or cross_tower_ops))


class ParameterServerStrategy(Strategy):
    """`ParameterServerStrategy`, which can be told how many GPUs a worker has.

    Args:
        num_gpus_per_worker: how many.
    """

    def __init__(self, num_gpus_per_worker: int = 0) -> None:
        super().__init__(_ParameterServer(self, num_gpus=num_gpus_per_worker))
