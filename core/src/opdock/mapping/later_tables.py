"""Names of TensorFlow 2 that came after 1.15, as the library tf_keras asks for them: as data.

All are names of `tf.compat.v2`. Public ones of today's interface stand beside what TensorFlow keeps
for its own libraries, `tf.__internal__`.
"""

from __future__ import annotations

from typing import Final

_TRACKABLE: Final = "opdock.graph.variables.trackable"
_TRACKED: Final = "opdock.graph.variables.tracked_attributes"
_STRUCTURES: Final = "opdock.graph.variables.tracked_structures"
_KERAS: Final = "opdock.keras_base"

# Below __internal__: "module:name" of opdock.
_INTERNAL: Final[dict[str, str]] = {
    "CompositeTensor": "opdock.graph.nodes.composite:CompositeTensor",
    "EagerTensor": "opdock.eager.tensor:EagerTensor",
    "FuncGraph": "opdock.graph.control.func_graph:FuncGraph",
    "autograph.control_status_ctx": f"{_KERAS}.functions:control_status_ctx",
    "autograph.tf_convert": f"{_KERAS}.functions:tf_convert",
    "create_c_op": f"{_KERAS}.nodes:create_c_op",
    "decorator.make_decorator": "opdock.util.decorators:make_decorator",
    "decorator.unwrap": "opdock.util.decorators:unwrap",
    "dispatch.GlobalOpDispatcher": "opdock.graph.nodes.dispatch:GlobalOpDispatcher",
    "dispatch.OpDispatcher": "opdock.graph.nodes.dispatch:OpDispatcher",
    "dispatch.add_dispatch_support": "opdock.graph.nodes.dispatch:add_dispatch_support",
    "distribute.interim.maybe_merge_call": "opdock.distribute.context:maybe_merge_call",
    "distribute.strategy_supports_no_merge_call": "opdock.distribute.context:needs_no_merge_call",
    "distribute.variable_sync_on_read_context": "contextlib:nullcontext",
    "eager_context.eager_mode": "opdock.util.eager_context:eager_mode",
    "execute_fn_for_device": f"{_KERAS}.functions:execute_fn_for_device",
    "feature_column.DenseColumn": "opdock.feature_column.base:DenseColumn",
    "feature_column.FeatureColumn": "opdock.feature_column.base:FeatureColumn",
    "feature_column.FeatureTransformationCache": (
        "opdock.feature_column.base:FeatureTransformationCache"
    ),
    "feature_column.SequenceDenseColumn": "opdock.feature_column.base:SequenceDenseColumn",
    # The one of a layer's: tf_keras makes it.
    "feature_column.StateManager": "opdock.feature_column.old:LayerState",
    **{
        f"feature_column.{what}": f"opdock.feature_column.serialization:{what}"
        for what in ("deserialize_feature_column", "serialize_feature_column")
    },
    "function.Function": "opdock.ops.composed.function:Function",
    "get_name_scope": "opdock.util.graph_helpers:get_name_scope",
    "mixed_precision.register_loss_scale_wrapper": (
        "opdock.train.experimental.mixed_precision:register_loss_scale_wrapper"
    ),
    "nest.flatten_up_to": "opdock.util.nest:flatten_up_to",
    "nest.get_traverse_shallow_structure": "opdock.util.nest:get_traverse_shallow_structure",
    "nest.is_attrs": "opdock.util.nest:is_attrs",
    "nest.is_mapping": "opdock.util.nest:is_mapping",
    "nest.list_to_tuple": "opdock.util.nest_paths:list_to_tuple",
    "nest.map_structure_up_to": "opdock.util.nest_paths:map_structure_up_to",
    "nest.sequence_like": "opdock.util.nest:like",
    "nest.yield_flat_paths": "opdock.util.nest_paths:yield_flat_paths",
    "ops.broadcast_weights": "opdock.ops.composed.weights_broadcast:broadcast_weights",
    "ops.is_resource_variable": "opdock.util.graph_helpers:is_resource_variable",
    "record_gradient": f"{_KERAS}.nodes:record_gradient",
    "saved_model.decode_proto": "opdock.saved_model.nested_structure_coder:decode_proto",
    "saved_model.encode_structure": "opdock.saved_model.nested_structure_coder:encode_structure",
    "saved_model.load.VersionedTypeRegistration": (
        "opdock.saved_model.revived:VersionedTypeRegistration"
    ),
    "saved_model.load.get_setter": "opdock.saved_model.revived:get_setter",
    "saved_model.load.register_revived_type": "opdock.saved_model.revived:register_revived_type",
    "saved_model.load.registered_identifiers": "opdock.saved_model.revived:registered_identifiers",
    "saved_model.load_partial": "opdock.saved_model.imported:load_partial",
    "saved_model.parse_saved_model": "opdock.saved_model.file:parse_saved_model",
    "smart_cond.smart_cond": "opdock.util.graph_helpers:smart_cond",
    "tf2.enabled": "opdock.util.tf2:enabled",
    "tracking.AutoTrackable": f"{_TRACKED}:AutoTrackable",
    "tracking.CheckpointInitialValueCallable": (
        "opdock.train.tracking.restoration:CheckpointInitialValueCallable"
    ),
    "tracking.DelegatingTrackableMixin": f"{_TRACKABLE}:DelegatingTrackable",
    "tracking.ObjectGraphView": "opdock.train.tracking.object_graph:ObjectGraphView",
    "tracking.Trackable": f"{_TRACKABLE}:Trackable",
    "tracking.TrackableDataStructure": f"{_STRUCTURES}:TrackableDataStructure",
    "tracking.no_automatic_dependency_tracking": f"{_TRACKABLE}:no_automatic_dependency_tracking",
    "tracking.register_session_provider": f"{_KERAS}.registered:register_session_provider",
    "tracking.sticky_attribute_assignment": f"{_TRACKED}:sticky_attribute_assignment",
    "tracking.streaming_restore": "opdock.train.tracking.status:streaming_restore",
    "tracking.wrap": "opdock.graph.variables.tracked_containers:wrap",
    "train.assign_moving_average": "opdock.train.moving_averages:assign_moving_average",
    "train.is_mixed_precision_graph_rewrite_enabled": (
        "opdock.train.experimental.mixed_precision:is_graph_rewrite_enabled"
    ),
    "train.set_using_mixed_precision_policy": (
        "opdock.train.experimental.mixed_precision:set_using_policy"
    ),
    "train.update_checkpoint_state": (
        "opdock.train.checkpoint_management:update_checkpoint_state_internal"
    ),
    "types.Tensor": "opdock:Tensor",
    **{
        f"register_{what}_function": f"{_KERAS}.registered:register_{what}_function"
        for what in ("call_context", "clear_session", "get_session", "load_context", "load_model")
    },
}

# Internal modules, or such as 1.15 had for its own documentation.
LATER_SOURCES: Final[dict[str, tuple[str, ...]]] = {
    "python.framework.tensor": ("opdock.graph.nodes.operation", "opdock.graph.nodes.typespec"),
    "python.framework.type_spec_registry": ("opdock.graph.nodes.typespec_names",),
    "python.pywrap_tfe": (),
    "python.trackable": (),
    "python.trackable.base": ("opdock.graph.variables.trackable", "opdock.train.tracking.base"),
    "python.trackable.resource": ("opdock.ops.composed.resources",),
    "tools.docs": (),
    "tools.docs.doc_controls": ("opdock.util.exporting",),
}

# Names of these modules that are called otherwise here.
LATER_NAMES: Final[dict[str, dict[str, str]]] = {
    "python.pywrap_tfe": {
        "TF_ListPluggablePhysicalDevices": f"{_KERAS}.functions:list_pluggable_devices",
    },
}

# Of today's `tf.compat.v1`: what 1.15's lacks.
LATER_V1: Final[dict[str, str]] = {
    "executing_eagerly_outside_functions": (
        "opdock.graph.nodes.scopes:executing_eagerly_outside_functions"
    ),
    "mixed_precision": "opdock:train.experimental",
}

_SUMMARIES: Final = "opdock.summary.recording_v2"

LATER_V2: Final[dict[str, str]] = {
    **{
        f"summary.{name}": f"{_SUMMARIES}:{name}"
        for name in (
            "SummaryWriter",
            "audio",
            "create_file_writer",
            "create_noop_writer",
            "flush",
            "graph",
            "histogram",
            "image",
            "record_if",
            "scalar",
            "text",
            "write",
        )
    },
    **{
        f"summary.experimental.{name}": f"{_SUMMARIES}:{name}"
        for name in ("get_step", "set_step", "summary_scope", "write_raw_pb")
    },
    **{f"__internal__.{name}": place for name, place in _INTERNAL.items()},
    "__operators__.getitem": "opdock.ops.composed.subscripts:slice_helper",
    "__operators__.ragged_getitem": "opdock.ops.composed.ragged_slices:subscript",
    "compat.v1.nn.fused_batch_norm": f"{_KERAS}.normalization:fused_batch_norm",
    "config.functions_run_eagerly": "opdock.ops.composed.function_traces:functions_run_eagerly",
    "config.run_functions_eagerly": "opdock:config.experimental_run_functions_eagerly",
    "config.list_logical_devices": "opdock.util.eager_context:list_logical_devices",
    "config.list_physical_devices": "opdock.util.eager_context:list_logical_devices",
    "constant": "opdock.graph.nodes.constant:constant_v2",
    "data.AUTOTUNE": "opdock:data.experimental.AUTOTUNE",
    **{
        f"data.experimental.{name}": f"opdock.data.options:{name}"
        for name in ("AutoShardPolicy", "ExternalStatePolicy")
    },
    "data.Iterator": "opdock:data.Iterator",
    "debugging.is_traceback_filtering_enabled": "opdock.util.eager_context:executing_eagerly",
    "distribute.ReduceOp": "opdock.distribute.reductions:ReduceOp",
    "errors.OperatorNotAllowedInGraphError": "opdock.errors:OperatorNotAllowedInGraphError",
    "function": f"{_KERAS}.functions:function",
    "get_current_name_scope": "opdock.util.graph_helpers:get_name_scope",
    "inside_function": "opdock.util.graph_helpers:inside_function",
    "io.gfile.join": "os.path:join",
    "is_symbolic_tensor": "opdock.util.graph_helpers:is_symbolic_tensor",
    "lookup.experimental.MutableHashTable": "opdock.lookup.mutable:MutableHashTable",
    "nn.silu": "opdock:nn.swish",
    "profiler.experimental.Trace": f"{_KERAS}.profiling:Trace",
    "profiler.experimental.start": f"{_KERAS}.profiling:start",
    "profiler.experimental.stop": f"{_KERAS}.profiling:stop",
    "random.set_seed": "opdock:set_random_seed",
    "saved_model.SaveOptions": f"{_KERAS}.options:SaveOptions",
    "saved_model.LoadOptions": f"{_KERAS}.options:LoadOptions",
    "sysconfig.get_build_info": "opdock.util.graph_helpers:get_build_info",
    "train.Checkpoint": "opdock.train.tracking.rooted:RootedCheckpoint",
    "train.CheckpointOptions": f"{_KERAS}.options:CheckpointOptions",
    "types.experimental.ConcreteFunction": (
        "opdock.ops.composed.concrete_function:ConcreteFunction"
    ),
    "type_spec_from_value": "opdock.graph.nodes.typespec:type_spec_from_value",
}
