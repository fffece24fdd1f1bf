"""TF's protobuf messages by name, loaded on first use.

`protos.GraphDef` is the generated class, used as it is: the ones that TensorBoard ships come from
there, the others from `opdock.io.proto_schema`, `tree_messages` and `profile_messages`. Importing
this module imports nothing of protobuf.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_TENSORBOARD: dict[str, str] = {
    "allocation_description": "AllocationDescription",
    "attr_value": "AttrValue NameAttrList",
    "cluster": "ClusterDef JobDef",
    "config": (
        "CallableOptions ConfigProto GPUOptions GraphOptions OptimizerOptions RunMetadata"
        " RunOptions SessionMetadata TensorConnection ThreadPoolOptionProto"
    ),
    "cost_graph": "CostGraphDef",
    "debug": "DebugOptions DebugTensorWatch",
    "event": "Event LogMessage SessionLog SourceMetadata TaggedRunMetadata",
    "function": "FunctionDef FunctionDefLibrary GradientDef",
    "graph": "GraphDef",
    "histogram": "HistogramProto",
    "meta_graph": "AssetFileDef CollectionDef MetaGraphDef SignatureDef TensorInfo",
    "node_def": "NodeDef",
    "op_def": "OpDef OpDeprecation OpList",
    "resource_handle": "ResourceHandleProto",
    "rewriter_config": "AutoParallelOptions RewriterConfig ScopedAllocatorOptions",
    "rpc_options": "RPCOptions",
    "saver": "SaverDef",
    "step_stats": (
        "AllocationRecord AllocatorMemoryUsed DeviceStepStats MemoryStats NodeExecStats NodeOutput"
        " StepStats"
    ),
    "struct": "StructuredValue",
    "summary": "Summary SummaryDescription SummaryMetadata",
    "saved_object_graph": "SavedUserObject",
    "tensor": "TensorProto VariantTensorDataProto",
    "tensor_description": "TensorDescription",
    "tensor_shape": "TensorShapeProto",
    "tfprof_log": "CodeDef ExecMemory ExecProfile OpLogEntry OpLogProto ProfileNode ProfileProto",
    "types": "DataType",
    "variable": "SaveSliceInfoDef VariableDef",
    "versions": "VersionDef",
}
_OWN = (
    "BundleEntryProto BundleHeaderProto TensorSliceProto CheckpointState SavedSlice SavedSliceMeta"
    " SavedTensorSliceMeta SavedTensorSlices BytesList FloatList Int64List Feature Features"
    " FeatureList FeatureLists Example SequenceExample QueueRunnerDef SavedModel ServerDef"
    " TrackableObjectGraph"
    " ValuesDef CondContextDef WhileContextDef ControlFlowContextDef"
    " HParamDef ReaderBaseState BenchmarkEntries BenchmarkEntry EntryValue MetricEntry"
)
_PROFILES = (
    "AdviceProto AdvisorOptionsProto GraphNodeProto MultiGraphNodeProto OptionsProto"
    " TFProfTensorProto"
)

_WHERE: dict[str, str] = (
    {
        name: f"tensorboard.compat.proto.{module}_pb2"
        for module, names in _TENSORBOARD.items()
        for name in names.split()
    }
    | dict.fromkeys(_OWN.split(), "opdock.io.proto_schema")
    | dict.fromkeys(("DebugOutput", "TreeEnsemble"), "opdock.io.tree_messages")
    | dict.fromkeys(_PROFILES.split(), "opdock.io.profile_messages")
)


def __getattr__(name: str) -> Any:
    where = _WHERE.get(name)
    if where is None:
        raise AttributeError(f"module {__name__!r} has no message {name!r}")
    value = getattr(import_module(where), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(_WHERE)
