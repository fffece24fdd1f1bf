"""Where the names of TensorFlow's modules for strategies are in opdock, as data."""

from __future__ import annotations

from typing import Final

_CONTEXT: Final = ("opdock.distribute.context", "opdock.distribute.modes")

# Internal module -> opdock's modules in which its names are looked up before TF's exports are.
DISTRIBUTE_SOURCES: Final[dict[str, tuple[str, ...]]] = {
    "python.distribute.cluster_resolver.cluster_resolver": (
        "opdock.distribute.cluster_resolver.resolver",
    ),
    "python.distribute.all_reduce": ("opdock.distribute.all_reduces",),
    "python.distribute.collective_all_reduce_strategy": (
        "opdock.distribute.collective_all_reduce",
    ),
    "python.distribute.cross_device_utils": (
        "opdock.distribute.collective_keys",
        "opdock.distribute.gradient_groups",
    ),
    "python.distribute.multi_worker_util": ("opdock.distribute.clusters",),
    "python.distribute.cross_device_ops": ("opdock.distribute.cross_device_ops",),
    "python.distribute.device_util": ("opdock.distribute.device_util",),
    "python.distribute.distribute_lib": (
        "opdock.distribute.strategy",
        "opdock.distribute.extended",
        "opdock.distribute.replica",
        *_CONTEXT,
    ),
    "python.distribute.distribute_coordinator": ("opdock.distribute.distribute_coordinator",),
    "python.distribute.distribute_coordinator_context": ("opdock.distribute.worker_context",),
    "python.distribute.distribution_strategy_context": _CONTEXT,
    "python.distribute.estimator_training": ("opdock.distribute.estimator_training",),
    "python.distribute.input_lib": ("opdock.distribute.inputs", "opdock.distribute.steps"),
    "python.distribute.mirrored_strategy": ("opdock.distribute.mirrored",),
    "python.distribute.one_device_strategy": ("opdock.distribute.one_device",),
    "python.distribute.parameter_server_strategy": ("opdock.distribute.parameter_server",),
    "python.distribute.central_storage_strategy": ("opdock.distribute.parameter_server",),
    "python.distribute.step_fn": ("opdock.contrib.distribute_steps",),
    "contrib.distribute.python.monitor": ("opdock.contrib.distribute_steps",),
    "python.distribute.reduce_util": ("opdock.distribute.reductions",),
    "python.distribute.values": (
        "opdock.distribute.values",
        "opdock.distribute.variables",
        "opdock.distribute.aggregating",
    ),
    "python.distribute.shared_variable_creator": ("opdock.distribute.shared_variables",),
    "python.ops.collective_ops": ("opdock.ops.collective",),
    "python.keras.utils.losses_utils": ("opdock.util.loss_reduction",),
}

# Module -> name -> "module:name" of opdock, where the names differ.
DISTRIBUTE_NAMES: Final[dict[str, dict[str, str]]] = {
    "contrib.distribute": {
        "AllReduceCrossDeviceOps": "opdock.distribute.cross_device_ops:AllReduceCrossDeviceOps",
        "CollectiveAllReduceStrategy": "opdock.contrib.distribute:CollectiveAllReduceStrategy",
        "DistributeConfig": "opdock.contrib.distribute:DistributeConfig",
        "DistributionStrategy": "opdock.distribute.strategy:Strategy",
        "DistributionStrategyExtended": "opdock.distribute.extended:StrategyExtended",
        "MirroredStrategy": "opdock.contrib.distribute:MirroredStrategy",
        "MultiWorkerAllReduce": "opdock.distribute.cross_device_ops:MultiWorkerAllReduce",
        "Monitor": "opdock.contrib.distribute_steps:Monitor",
        "OneDeviceStrategy": "opdock.distribute.one_device:OneDeviceStrategy",
        "ParameterServerStrategy": "opdock.contrib.distribute:ParameterServerStrategy",
        "ReductionToOneDeviceCrossDeviceOps": (
            "opdock.distribute.cross_device_ops:ReductionToOneDevice"
        ),
        "StandardInputStep": "opdock.contrib.distribute_steps:StandardInputStep",
        "StandardSingleLossStep": "opdock.contrib.distribute_steps:StandardSingleLossStep",
        "Step": "opdock.contrib.distribute_steps:Step",
        "run_standard_tensorflow_server": (
            "opdock.distribute.distribute_coordinator:run_standard_tensorflow_server"
        ),
    },
    "python.distribute.all_reduce": {
        "_build_ring_gather": "opdock.distribute.all_reduces:ring_gather",
        "_flatten_tensors": "opdock.distribute.all_reduces:flatten_tensors",
        "_ring_permutations": "opdock.distribute.all_reduces:ring_permutations",
    },
    "python.distribute.distribute_coordinator": {
        "_Barrier": "opdock.distribute.distribute_coordinator:WorkerBarrier",
        "_TaskType": "opdock.distribute.distribute_coordinator:TaskType",
        "_WorkerContext": "opdock.distribute.distribute_coordinator:WorkerContext",
    },
    "contrib.distribute.python.mirrored_strategy": {
        "CoreMirroredExtended": "opdock.distribute.mirrored:MirroredExtended",
        "CoreMirroredStrategy": "opdock.distribute.mirrored:MirroredStrategy",
    },
    "contrib.distribute.python.parameter_server_strategy": {
        "CoreParameterServerExtended": (
            "opdock.distribute.parameter_server:ParameterServerExtended"
        ),
        "CoreParameterServerStrategy": (
            "opdock.distribute.parameter_server:ParameterServerStrategy"
        ),
    },
    "python.distribute.distribute_config": {
        "DistributeConfig": "opdock.contrib.distribute:DistributeConfig",
    },
    "python.distribute.cross_device_utils": {
        "copy_tensor_or_indexed_slices_to_device": (
            "opdock.distribute.cross_device_ops:copy_to_device"
        ),
    },
    "python.distribute.shared_variable_creator": {
        "_canonicalize_variable_name": (
            "opdock.distribute.shared_variables:canonicalize_variable_name"
        ),
    },
    "python.distribute.summary_op_util": {
        "skip_summary": "opdock.util.graph_helpers:skip_summary",
    },
    "python.distribute.distribute_lib": {
        "_DefaultDistributionExtended": "opdock.distribute.default:DefaultExtended",
        "StrategyV1": "opdock.distribute.strategy:Strategy",
        "StrategyExtendedV1": "opdock.distribute.extended:StrategyExtended",
        "StrategyExtendedV2": "opdock.distribute.extended:StrategyExtended",
    },
}
