"""Messages of TF that TensorBoard does not ship, built from their field numbers.

They live in the protobuf package `opdock` and in a file name of their own, so they clash neither
with TensorFlow's nor with TensorBoard's generated modules in the same process. The wire format
knows field numbers only, so the bytes are TF's.
"""

from __future__ import annotations

from google.protobuf import wrappers_pb2
from tensorboard.compat.proto import (
    cluster_pb2,
    config_pb2,
    meta_graph_pb2,
    tensor_pb2,
    tensor_shape_pb2,
    types_pb2,
    versions_pb2,
)

from opdock.io.proto_builder import build

_FOREIGN = {
    "DataType": types_pb2.DESCRIPTOR,
    "TensorShapeProto": tensor_shape_pb2.DESCRIPTOR,
    "TensorProto": tensor_pb2.DESCRIPTOR,
    "VersionDef": versions_pb2.DESCRIPTOR,
    "MetaGraphDef": meta_graph_pb2.DESCRIPTOR,
    "ClusterDef": cluster_pb2.DESCRIPTOR,
    "ConfigProto": config_pb2.DESCRIPTOR,
    "DoubleValue": wrappers_pb2.DESCRIPTOR,
}

_MESSAGES = {
    "TensorSliceProto.Extent": "start:int64=1 length:int64=2[has_length]",
    "TensorSliceProto": "extent:TensorSliceProto.Extent*=1",
    "BundleHeaderProto": "#Endianness.LITTLE=0 #Endianness.BIG=1 num_shards:int32=1"
    " endianness:BundleHeaderProto.Endianness=2 version:VersionDef=3",
    "BundleEntryProto": "dtype:DataType=1 shape:TensorShapeProto=2 shard_id:int32=3 offset:int64=4"
    " size:int64=5 crc32c:fixed32=6 slices:TensorSliceProto*=7",
    "CheckpointState": "model_checkpoint_path:string=1 all_model_checkpoint_paths:string*=2"
    " all_model_checkpoint_timestamps:double*=3 last_preserved_timestamp:double=4",
    "SavedSliceMeta": "name:string=1 shape:TensorShapeProto=2 type:DataType=3"
    " slice:TensorSliceProto*=4",
    "SavedTensorSliceMeta": "tensor:SavedSliceMeta*=1 versions:VersionDef=2",
    "SavedSlice": "name:string=1 slice:TensorSliceProto=2 data:TensorProto=3",
    "SavedTensorSlices": "meta:SavedTensorSliceMeta=1 data:SavedSlice=2",
    "BytesList": "value:bytes*=1",
    "FloatList": "value:float*=1",
    "Int64List": "value:int64*=1",
    "Feature": "bytes_list:BytesList=1[kind] float_list:FloatList=2[kind]"
    " int64_list:Int64List=3[kind]",
    "Features": "feature:{Feature}=1",
    "FeatureList": "feature:Feature*=1",
    "FeatureLists": "feature_list:{FeatureList}=1",
    "Example": "features:Features=1",
    "SequenceExample": "context:Features=1 feature_lists:FeatureLists=2",
    "QueueRunnerDef": "queue_name:string=1 enqueue_op_name:string*=2 close_op_name:string=3"
    " cancel_op_name:string=4 queue_closed_exception_types:int32*=5",
    "SavedModel": "saved_model_schema_version:int64=1 meta_graphs:MetaGraphDef*=2",
    # TensorBoard has this message too, but without the field `optional_restore`.
    "TrackableObjectGraph.TrackableObject.ObjectReference": "node_id:int32=1 local_name:string=2",
    "TrackableObjectGraph.TrackableObject.SerializedTensor": "name:string=1 full_name:string=2"
    " checkpoint_key:string=3 optional_restore:bool=4",
    "TrackableObjectGraph.TrackableObject.SlotVariableReference": "slot_name:string=2"
    " original_variable_node_id:int32=1 slot_variable_node_id:int32=3",
    "TrackableObjectGraph.TrackableObject": ""
    "children:TrackableObjectGraph.TrackableObject.ObjectReference*=1"
    " attributes:TrackableObjectGraph.TrackableObject.SerializedTensor*=2"
    " slot_variables:TrackableObjectGraph.TrackableObject.SlotVariableReference*=3",
    "TrackableObjectGraph": "nodes:TrackableObjectGraph.TrackableObject*=1",
    "ServerDef": "cluster:ClusterDef=1 job_name:string=2 task_index:int32=3"
    " default_session_config:ConfigProto=4 protocol:string=5 port:int32=6",
    "ValuesDef": "values:string*=1 external_values:{string}=2",
    "CondContextDef": "context_name:string=1 pred_name:string=2 pivot_name:string=3 branch:int32=4"
    " values_def:ValuesDef=5 nested_contexts:ControlFlowContextDef*=6",
    "WhileContextDef": "context_name:string=1 parallel_iterations:int32=2 back_prop:bool=3"
    " swap_memory:bool=4 pivot_name:string=5 pivot_for_pred_name:string=6"
    " pivot_for_body_name:string=7 loop_exit_names:string*=8 values_def:ValuesDef=9"
    " loop_enter_names:string*=10 maximum_iterations_name:string=11"
    " nested_contexts:ControlFlowContextDef*=12",
    "ReaderBaseState": "work_started:int64=1 work_finished:int64=2 num_records_produced:int64=3"
    " current_work:bytes=4",
    "EntryValue": "double_value:double=1[kind] string_value:string=2[kind]",
    "MetricEntry": "name:string=1 value:double=2 min_value:DoubleValue=3 max_value:DoubleValue=4",
    "BenchmarkEntry": "name:string=1 iters:int64=2 cpu_time:double=3 wall_time:double=4"
    " throughput:double=5 extras:{EntryValue}=6 metrics:MetricEntry*=7",
    "BenchmarkEntries": "entry:BenchmarkEntry*=1",
    "HParamDef.BytesList": "value:bytes*=1",
    "HParamDef.FloatList": "value:float*=1",
    "HParamDef.Int64List": "value:int64*=1",
    "HParamDef.BoolList": "value:bool*=1",
    "HParamDef.HParamType": "int64_value:int64=1[kind] float_value:float=2[kind]"
    " bytes_value:bytes=3[kind] bool_value:bool=7[kind] int64_list:HParamDef.Int64List=4[kind]"
    " float_list:HParamDef.FloatList=5[kind] bytes_list:HParamDef.BytesList=6[kind]"
    " bool_list:HParamDef.BoolList=8[kind]",
    "HParamDef": "hparam:{HParamDef.HParamType}=1",
    "ControlFlowContextDef": "cond_ctxt:CondContextDef=1[ctxt] while_ctxt:WhileContextDef=2[ctxt]",
}

globals().update(build("opdock/io/tf_messages.proto", "opdock", _MESSAGES, foreign=_FOREIGN))
