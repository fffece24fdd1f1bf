"""The messages of TF's profiler of models, tfprof: what it is asked, and what it tells.

The fields are those of TF's `tfprof_output.proto` and `tfprof_options.proto`; TensorBoard ships the
messages of what the profiler is told of a graph.
"""

from __future__ import annotations

from tensorboard.compat.proto import tensor_shape_pb2, types_pb2

from opdock.io.proto_builder import build

_FOREIGN = {
    "DataType": types_pb2.DESCRIPTOR,
    "TensorShapeProto": tensor_shape_pb2.DESCRIPTOR,
}

_OUTPUT = {
    "TFProfTensorProto": "dtype:DataType=1 value_double:double*=2 value_int64:int64*=3"
    " value_str:string*=4",
    "GraphNodeProto": "name:string=1 tensor_value:TFProfTensorProto=15 run_count:int64=21"
    " exec_micros:int64=2 accelerator_exec_micros:int64=17 cpu_exec_micros:int64=18"
    " requested_bytes:int64=3 peak_bytes:int64=24 residual_bytes:int64=25 output_bytes:int64=26"
    " parameters:int64=4 float_ops:int64=13 devices:string*=10 total_definition_count:int64=23"
    " total_run_count:int64=22 total_exec_micros:int64=6 total_accelerator_exec_micros:int64=19"
    " total_cpu_exec_micros:int64=20 total_requested_bytes:int64=7 total_peak_bytes:int64=27"
    " total_residual_bytes:int64=28 total_output_bytes:int64=29 total_parameters:int64=8"
    " total_float_ops:int64=14 shapes:TensorShapeProto*=11 input_shapes:{int32:TensorShapeProto}=16"
    " children:GraphNodeProto*=12",
    "MultiGraphNodeProto": "name:string=1 exec_micros:int64=2 accelerator_exec_micros:int64=12"
    " cpu_exec_micros:int64=13 requested_bytes:int64=3 peak_bytes:int64=16 residual_bytes:int64=17"
    " output_bytes:int64=18 parameters:int64=4 float_ops:int64=5 total_exec_micros:int64=6"
    " total_accelerator_exec_micros:int64=14 total_cpu_exec_micros:int64=15"
    " total_requested_bytes:int64=7 total_peak_bytes:int64=19 total_residual_bytes:int64=20"
    " total_output_bytes:int64=21 total_parameters:int64=8 total_float_ops:int64=9"
    " graph_nodes:GraphNodeProto*=10 children:MultiGraphNodeProto*=11",
    "AdviceProto.Checker": "reports:string*=2",
    "AdviceProto": "checkers:{AdviceProto.Checker}=1",
}
_OPTIONS = {
    "OptionsProto": "max_depth:int64=1 min_bytes:int64=2 min_peak_bytes:int64=19"
    " min_residual_bytes:int64=20 min_output_bytes:int64=21 min_micros:int64=3"
    " min_accelerator_micros:int64=22 min_cpu_micros:int64=23 min_params:int64=4"
    " min_float_ops:int64=5 min_occurrence:int64=17 step:int64=18 order_by:string=7"
    " account_type_regexes:string*=8 start_name_regexes:string*=9 trim_name_regexes:string*=10"
    " show_name_regexes:string*=11 hide_name_regexes:string*=12 account_displayed_op_only:bool=13"
    " select:string*=14 output:string=15 dump_to_file:string=16",
    "AdvisorOptionsProto.CheckerOption": "options:{string}=1",
    "AdvisorOptionsProto": "checkers:{AdvisorOptionsProto.CheckerOption}=1",
}

globals().update(
    build(
        "opdock/io/profile_messages.proto",
        "opdock.tfprof",
        {**_OUTPUT, **_OPTIONS},
        foreign=_FOREIGN,
    )
)
