"""`tf.distribute.experimental`."""

from __future__ import annotations

from opdock.distribute.collective_all_reduce import CollectiveAllReduceStrategy
from opdock.distribute.cross_device_ops import CollectiveCommunication
from opdock.distribute.parameter_server import CentralStorageStrategy, ParameterServerStrategy

__all__ = [
    "CentralStorageStrategy", "CollectiveCommunication", "MultiWorkerMirroredStrategy",
    "ParameterServerStrategy",
]  # fmt: skip

MultiWorkerMirroredStrategy = CollectiveAllReduceStrategy
