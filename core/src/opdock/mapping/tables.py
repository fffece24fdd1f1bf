"""Where the names of TensorFlow's modules are in opdock, as data."""

from __future__ import annotations

from typing import Final

from opdock.mapping.autograph_tables import AUTOGRAPH_NAMES, AUTOGRAPH_SOURCES
from opdock.mapping.contrib_tables import CONTRIB
from opdock.mapping.data_tables import DATA_NAMES, DATA_SOURCES, DATA_V2
from opdock.mapping.distribute_tables import DISTRIBUTE_NAMES, DISTRIBUTE_SOURCES
from opdock.mapping.feature_tables import FEATURE_COLUMN_NAMES, FEATURE_COLUMN_SOURCES
from opdock.mapping.forest_tables import FOREST_NAMES, FOREST_SOURCES
from opdock.mapping.later_tables import LATER_NAMES, LATER_SOURCES, LATER_V1, LATER_V2
from opdock.mapping.ops_tables import OPS_NAMES, OPS_SOURCES, OPS_V2
from opdock.mapping.training_tables import TRAINING_NAMES, TRAINING_SOURCES

_RAGGED: Final = (
    "opdock.api.ragged",  # which also gives the class of ragged tensors its methods
    *(f"opdock.ops.composed.ragged_{name}" for name in (
        "tensor", "dynamic_shape", "rows", "shapes", "convert", "constant", "math", "value")),
)  # fmt: skip


def _of_contrib(package: str, *modules: str) -> tuple[str, ...]:
    return tuple(f"opdock.contrib.{package}.{module}" for module in modules)


# Packages of TF's and opdock's whose modules have the same names.
_ALIKE: Final = (
    ("data.util", "data.util", "convert nest options random_seed sparse structure traverse"),
    ("saved_model", "saved_model", ("builder constants loader model_utils nested_structure_coder "
     "signature_constants signature_def_utils tag_constants utils model_utils.export_output "
     "model_utils.export_utils model_utils.mode_keys")),
    ("profiler", "profiler", "model_analyzer profile_context"),
    ("tools", "tools", ("freeze_graph import_pb_to_tensorboard inspect_checkpoint "
     "optimize_for_inference_lib saved_model_utils strip_unused_lib")),
    ("training", "train", ("checkpoint_management device_setter experimental.loss_scale "
     "moving_averages optimizer slot_creator training_util")),
)  # fmt: skip

# Internal module -> opdock's modules in which its names are looked up before TF's exports are.
SOURCES: Final[dict[str, tuple[str, ...]]] = {
    **LATER_SOURCES,
    **AUTOGRAPH_SOURCES,
    "python.client.session": ("opdock.runtime.session", "opdock.runtime.fetch"),
    "core.lib.core.error_codes_pb2": ("opdock.util.error_codes",),
    "python.client.timeline": ("opdock.api.timeline",),
    "python.feature_column.dense_features": ("opdock.feature_column.layers",),
    **FEATURE_COLUMN_SOURCES,
    "python.framework.common_shapes": ("opdock.util.shape_functions",),
    "python.framework.composite_tensor_utils": ("opdock.util.appending",),
    "python.framework.error_interpolation": ("opdock.util.message_tags",),
    "python.framework.subscribe": ("opdock.util.subscribing",),
    "python.framework.composite_tensor": ("opdock.graph.nodes.composite",),
    "python.framework.constant_op": ("opdock.graph.nodes.constant",),
    "python.framework.device": ("opdock.graph.nodes.devicespec",),
    "python.framework.dtypes": ("opdock.dtypes", "opdock.util.dtype_names"),
    "python.framework.errors": ("opdock.errors",),
    "python.framework.errors_impl": ("opdock.errors",),
    "python.framework.function": ("opdock.ops.composed.defined_function",),
    "python.framework.graph_util": ("opdock.api.graph_util",),
    "python.framework.graph_util_impl": ("opdock.api.graph_util",),
    "python.framework.ops": (
        "opdock.graph.nodes.graph",
        "opdock.graph.nodes.operation",
        "opdock.graph.nodes.convert",
        "opdock.graph.nodes.composite",
        "opdock.graph.nodes.scopes",
        "opdock.graph.nodes.collections",
        "opdock.graph.nodes.default_session",
        "opdock.graph.serial.proto_functions",
        "opdock.graph.nodes.registry",
    ),
    "python.framework.smart_cond": ("opdock.util.graph_helpers",),
    "python.framework.test_util": ("opdock.util.for_tests", "opdock.api.test"),
    "python.framework.random_seed": ("opdock.graph.nodes.seeds",),
    "python.framework.tensor_shape": ("opdock.shapes", "opdock.util.graph_helpers"),
    **DISTRIBUTE_SOURCES,
    "contrib.tpu.python.tpu.tpu_function": ("opdock.util.no_tpu",),
    "python.tpu.tensor_tracer": ("opdock.util.no_tpu",),
    "python.tpu.tpu_function": ("opdock.util.no_tpu",),
    "python.eager.monitoring": ("opdock.util.monitoring",),
    "python.eager.backprop": ("opdock.eager.functions", "opdock.autodiff.tape"),
    "python.eager.context": ("opdock.util.eager_context",),
    "python.platform.app": ("opdock.api.app",),
    "python.platform.flags": ("opdock.api.flags",),
    "python.platform.googletest": ("opdock.api.test",),
    "python.platform.test": ("opdock.api.test",),
    "python.platform.tf_logging": ("opdock.api.logging",),
    "python.ops.clustering_ops": ("opdock.ops.composed.clustering",),
    "contrib.cudnn_rnn.python.layers.cudnn_rnn": _of_contrib("cudnn_rnn", "layers", "functions"),
    "contrib.cudnn_rnn.python.ops.cudnn_rnn_ops": _of_contrib(
        "cudnn_rnn", "functions", "saving", "cells", "layout"
    ),
    "contrib.factorization.python.ops.clustering_ops": ("opdock.ops.composed.clustering",),
    **FOREST_SOURCES,
    "contrib.model_pruning.python.layers.core_layers": _of_contrib(
        "model_pruning", "masks", "layers"
    ),
    # Of Keras 2.3, which asks TensorFlow for it; 2.2 brings its own.
    "python.keras.backend": tuple(
        f"opdock.keras_base.{name}" for name in ("settings", "state", "function", "rnn", "numbers")
    ),
    "python.keras.utils.tf_utils": ("opdock.keras_base.function",),
    "python.ops.inplace_ops": ("opdock.ops.inplace",),
    **OPS_SOURCES,
    "python.ops.list_ops": ("opdock.ops.composed.tensor_lists",),
    "python.ops.lookup_ops": (
        "opdock.lookup.initialization",
        "opdock.lookup.initializers",
        "opdock.lookup.mutable",
        "opdock.lookup.tables",
        "opdock.lookup.vocabulary",
    ),
    "python.ops.rnn_cell": ("opdock.layers.rnn_cell",),
    "python.ops.rnn_cell_impl": ("opdock.layers.rnn_cell", "opdock.layers.rnn_base"),
    **{
        f"python.ops.ragged.{module}": _RAGGED
        for module in (
            "ragged_array_ops",
            "ragged_batch_gather_ops",
            "ragged_batch_gather_with_default_op",
            "ragged_concat_ops",
            "ragged_conversion_ops",
            "ragged_factory_ops",
            "ragged_functional_ops",
            "ragged_gather_ops",
            "ragged_math_ops",
            "ragged_squeeze_op",
            "ragged_tensor",
            "ragged_tensor_shape",
            "ragged_tensor_value",
            "ragged_where_op",
        )
    },
    "contrib.framework.python.ops.audio_ops": ("opdock.ops.audio",),
    "python.platform.benchmark": ("opdock.api.benchmark",),
    "python.ops.random_ops": ("opdock.ops.random_dist",),
    "python.ops.session_ops": ("opdock.ops.session_handles", "opdock.runtime.handles"),
    "python.ops.weights_broadcast_ops": ("opdock.ops.composed.weights_broadcast",),
    "python.ops.summary_op_util": ("opdock.ops.summary",),
    "core.profiler.profile_pb2": ("opdock.io.pprof_messages",),
    "python.profiler.internal.flops_registry": ("opdock.profiler.flops",),
    "python.profiler.option_builder": ("opdock.profiler.options",),
    "python.profiler.tfprof_logger": ("opdock.profiler.op_log", "opdock.profiler.options"),
    "python.summary.plugin_asset": ("opdock.summary.plugin_asset",),
    "python.layers.utils": ("opdock.util.graph_helpers",),
    "python.util.all_util": ("opdock.util.exporting",),
    "python.util.decorator_utils": ("opdock.util.deprecation",),
    "python.util.deprecation": ("opdock.util.deprecation",),
    "python.util.lock_util": ("opdock.util.locks",),
    "python.util.object_identity": ("opdock.util.identities",),
    "python.util.module_wrapper": ("opdock.util.exporting",),
    "python.util.dispatch": ("opdock.graph.nodes.dispatch",),
    "python.util.function_utils": ("opdock.util.inspecting",),
    "python.util.lazy_loader": ("opdock.util.lazy_loader",),
    "python.util.keyword_args": ("opdock.util.deprecation",),
    "python.util.tf_contextlib": ("opdock.util.decorators",),
    "python.util.tf_decorator": ("opdock.util.decorators",),
    "python.util.tf_export": ("opdock.util.exporting",),
    "python.util.tf_inspect": ("opdock.util.inspecting",),
    "python.util.tf_should_use": ("opdock.util.used",),
    "python.util.tf_stack": ("opdock.util.stacks",),
    "python.framework.registry": ("opdock.util.stacks",),
    "python.framework.traceable_stack": ("opdock.util.stacks",),
    "contrib.learn.python.learn.datasets": ("opdock.contrib.learn.datasets",),
    "contrib.learn.python.learn.datasets.base": ("opdock.contrib.learn.datasets.base",),
    "contrib.learn.python.learn.datasets.synthetic": ("opdock.contrib.learn.datasets.synthetic",),
    "contrib.learn.python.learn.graph_actions": ("opdock.contrib.learn.graph_actions",),
    "contrib.learn.python.learn.datasets.mnist": ("opdock.examples.tutorials.mnist.input_data",),
    "contrib.testing.python.framework.util_test": ("opdock.contrib.testing",),
    "python.ops.nccl_ops": ("opdock.contrib.nccl",),
    "contrib.layers.python.layers.utils": ("opdock.contrib.layers.utils",),
    "python.framework.tensor_util": (
        "opdock.graph.nodes.constant_value",
        "opdock.graph.nodes.operation",
        "opdock.io.tensor_proto",
    ),
    "python.framework.importer": ("opdock.graph.serial.importer",),
    "python.framework.meta_graph": ("opdock.train.meta_graph",),
    "python.ops.resources": ("opdock.ops.composed.resources",),
    "python.training.basic_session_run_hooks": (
        "opdock.train.loops.hooks",
        "opdock.train.loops.saving_hooks",
        "opdock.train.loops.timers",
    ),
    "python.training.evaluation": ("opdock.train.loops.evaluation",),
    "python.training.monitored_session": ("opdock.train.loops.monitored_session",),
    "python.training.supervisor": ("opdock.train.loops.supervisor", "opdock.train.loops.services"),
    "python.tools.saved_model_cli": (
        "opdock.tools.saved_model_cli",
        "opdock.tools.saved_model_inputs",
    ),
    "python.tools.optimize_for_inference": ("opdock.tools.optimize_for_inference_lib",),
    "python.tools.strip_unused": ("opdock.tools.strip_unused_lib",),
    "tools.graph_transforms": ("opdock.transforms",),
    **TRAINING_SOURCES,
    **{
        f"python.{theirs}.{name}": (f"opdock.{own}.{name}",)
        for theirs, own, names in _ALIKE
        for name in names.split()
    },
    **{
        f"python.saved_model.{name}_impl": (f"opdock.saved_model.{name}",)
        for name in ("builder", "loader", "signature_def_utils", "utils")
    },
    "python.saved_model.save": ("opdock.saved_model.object_saving",),
    "python.keras.engine.training": ("opdock.layers.network",),
    "python.util.nest": ("opdock.util.nest", "opdock.util.nest_paths"),
    "python.ops.critical_section_ops": ("opdock.ops.composed.critical_section",),
    "python.ops.ctc_ops": ("opdock.ops.composed.ctc_labels", "opdock.ops.ctc"),
    **{
        f"python.ops.distributions.{name}": ("opdock.distributions.softplus",)
        for name in ("beta", "exponential", "gamma", "laplace", "normal", "student_t")
    },
    "python.ops.distributions.bijector_test_util": ("opdock.distributions.for_tests",),
    "python.ops.distributions.distribution": ("opdock.distributions.distribution",),
    "python.ops.distributions.kullback_leibler": ("opdock.distributions.divergence",),
    "python.ops.distributions.special_math": ("opdock.distributions.helpers",),
    "python.ops.distributions.util": (
        "opdock.distributions.helpers",
        "opdock.distributions.shaping",
    ),
    **DATA_SOURCES,
    "python.framework.sparse_tensor": (
        "opdock.graph.nodes.composite",
        "opdock.graph.nodes.compositespec",
    ),
    "python.framework.tensor_spec": (
        "opdock.graph.nodes.typespec",
        "opdock.graph.nodes.boundedspec",
    ),
    "python.framework.type_spec": (
        "opdock.graph.nodes.typespec",
        "opdock.graph.nodes.typespec_names",
    ),
    "python.tf2": ("opdock.util.tf2",),
    "python.util.compat": ("opdock.compat",),
    "python.ops.data_flow_ops": (
        "opdock.ops.composed.barriers",
        "opdock.ops.composed.staging",
        "opdock.ops.composed.record_input",
    ),
}


def _in(place: str, **names: str) -> dict[str, str]:
    return {name: f"{place}{own}" for name, own in names.items()}


_LAYERS_UTILS: Final = _in(
    "opdock.layers.utils:", constant_value="constant_value", conv_input_length="windowed_length",
    conv_output_length="window_length", convert_data_format="op_format_of_rank",
    deconv_output_length="transposed_length", normalize_data_format="to_data_format",
    normalize_padding="to_padding", normalize_tuple="to_tuple",
)  # fmt: skip


def _from(module: str, names: str) -> dict[str, str]:
    """Names that a module of opdock has as they are."""
    return {name: f"{module}:{name}" for name in names.split()}


_TF_RECORD: Final = {
    name: f"opdock:python_io.{name}"
    for name in (
        "TFRecordCompressionType", "TFRecordOptions", "TFRecordWriter", "tf_record_iterator"
    )
}  # fmt: skip
_GFILE: Final = _from(
    "opdock.api.io_gfile",
    "copy exists glob isdir listdir makedirs mkdir remove rename rmtree stat walk",
)

# Module -> name -> "module:name" of opdock, where the names differ; "opdock:x" is the public tf.x.
NAMES: Final[dict[str, dict[str, str]]] = {
    "python.eager.test": {"main": "opdock.util.eager_context:main"},
    "python.eager.lift_to_graph": {
        "UnliftableError": "opdock.ops.composed.tracing:UnliftableError"
    },
    "python.eager.function": {
        "defun": "opdock.ops.composed.function:defun",
        "defun_with_attributes": "opdock.ops.composed.function:defun_with_attributes",
    },
    "": LATER_V1,
    **LATER_NAMES,
    **AUTOGRAPH_NAMES,
    **CONTRIB,
    **FOREST_NAMES,
    **DATA_NAMES,
    **DISTRIBUTE_NAMES,
    "io.gfile": _GFILE,
    "tpu": _from("opdock.contrib.tpu", "CrossShardOptimizer bfloat16_scope cross_replica_sum"),
    "python.client.device_lib": {
        "list_local_devices": "opdock.util.graph_helpers:list_local_devices",
    },
    **FEATURE_COLUMN_NAMES,
    "python.framework.dtypes": {"_TYPE_TO_STRING": "opdock.util.dtype_names:TYPE_TO_STRING"},
    "python.framework.graph_io": {"write_graph": "opdock:train.write_graph"},
    "python.framework.ops": {
        **_from(
            "opdock.util.graph_helpers",
            "RegisterShape convert_to_tensor_or_composite get_name_scope inside_function "
            "internal_convert_n_to_tensor internal_convert_to_tensor set_shapes_for_outputs uid",
        ),
        **_from("opdock.profiler.statistics", "OpStats RegisterStatistics get_stats_for_node_def"),
        "EagerTensor": "opdock.eager.tensor:EagerTensor",
        "NoGradient": "opdock.graph.nodes.gradient_registry:not_differentiable",
        "NotDifferentiable": "opdock.graph.nodes.gradient_registry:not_differentiable",
        "executing_eagerly_outside_functions": (
            "opdock.graph.nodes.scopes:executing_eagerly_outside_functions"
        ),
        "get_gradient_function": "opdock.graph.nodes.gradient_registry:gradient_of",
        "prepend_name_scope": "opdock.train.collection_defs:prepend_name_scope",
        "strip_name_scope": "opdock.train.collection_defs:strip_name_scope",
        "_gradient_registry": "opdock.graph.nodes.gradient_table:GRADIENTS",
        "_TensorLike": "opdock.util.graph_helpers:TensorLike",
        "name_from_scope_name": "opdock.util.node_kinds:name_from_scope_name",
        "tensor_id": "opdock.util.node_kinds:tensor_id",
        "_as_graph_element": "opdock.util.graph_helpers:as_graph_element",
        "_get_graph_from_inputs": "opdock.util.graph_helpers:graph_from_inputs",
        "convert_to_tensor_v2": "opdock.graph.nodes.convert:convert_to_tensor",
        "is_dense_tensor_like": "opdock.graph.nodes.operation:is_tensor",
        "name_scope_v1": "opdock.graph.nodes.scopes:name_scope",
        "register_dense_tensor_like_type": (
            "opdock.util.graph_helpers:register_symbolic_tensor_type"
        ),
        "_set_call_cpp_shape_fn": "opdock.util.graph_helpers:set_call_cpp_shape_fn",
    },
    "python.framework.errors_impl": {
        "_make_specific_exception": "opdock.errors:make_specific_exception",
    },
    "python.framework.graph_util_impl": {
        "_bfs_for_reachable_nodes": "opdock.api.graph_util:reachable_nodes",
        "_extract_graph_summary": "opdock.api.graph_util:graph_summary",
    },
    "python.framework.subscribe": {
        "_is_subscribed_identity": "opdock.util.subscribing:is_subscribed"
    },
    "python.framework.tensor_shape": {"as_shape": "opdock.shapes:as_tensor_shape"},
    "python.framework.tensor_util": {
        "MakeNdarray": "opdock.io.tensor_proto:make_ndarray",
        "shape_tensor": "opdock.util.node_kinds:shape_tensor",
    },
    "python.framework.device": {
        "check_valid": "opdock.graph.nodes.devicespec:DeviceSpec.from_string",
    },
    # That of tf.layers, which is one with tf.keras's there, and leans on no library.
    "python.keras.engine.input_spec": {"InputSpec": "opdock.layers.spec:InputSpec"},
    "python.layers.utils": _LAYERS_UTILS,
    "python.lib.io.tf_record": _TF_RECORD,
    "python.lib.io.file_io": {
        "FileIO": "opdock:gfile.GFile",
        "atomic_write_string_to_file": "opdock.util.files:atomic_write_string_to_file",
        "copy": "opdock:gfile.Copy",
        "create_dir": "opdock:gfile.MkDir",
        "delete_file": "opdock:gfile.Remove",
        "delete_recursively": "opdock:gfile.DeleteRecursively",
        "file_crc32": "opdock.util.files:file_crc32",
        "file_exists": "opdock:gfile.Exists",
        "filecmp": "opdock.util.files:filecmp",
        "get_matching_files": "opdock:gfile.Glob",
        "is_directory": "opdock:gfile.IsDirectory",
        "list_directory": "opdock:gfile.ListDirectory",
        "read_file_to_string": "opdock.util.files:read_file_to_string",
        "recursive_create_dir": "opdock:gfile.MakeDirs",
        "rename": "opdock:gfile.Rename",
        "stat": "opdock:gfile.Stat",
        "walk": "opdock:gfile.Walk",
        "write_string_to_file": "opdock.util.files:write_string_to_file",
    },
    "python.framework.constant_op": {
        "is_constant": "opdock.util.node_kinds:is_constant",
        "_tensor_shape_tensor_conversion_function": "opdock.graph.nodes.convert:shape_to_tensor",
    },
    "python.ops.confusion_matrix": {
        "remove_squeezable_dimensions": (
            "opdock.ops.composed.confusion:remove_squeezable_dimensions"
        ),
    },
    "python.ops.control_flow_ops": {
        "_case_helper": "opdock.ops.composed.case:case_by",
        "cond_v1": "opdock:cond",
        "get_enclosing_xla_context": "opdock.util.graph_helpers:get_enclosing_xla_context",
        "with_dependencies": "opdock.ops.control:with_dependencies",
    },
    "python.ops.metrics_impl": {
        "_aggregate_variable": "opdock.metrics.common:aggregate_variable",
        "_confusion_matrix_at_thresholds": "opdock.metrics.thresholds:counts_at",
        "_remove_squeezable_dimensions": "opdock.metrics.common:aligned",
        "_safe_scalar_div": "opdock.metrics.common:safe_div",
        "_streaming_confusion_matrix": "opdock.metrics.iou:streaming_confusion_matrix",
        "_streaming_sparse_average_precision_at_top_k": (
            "opdock.metrics.at_k:average_precision_at_top_k"
        ),
        "metric_variable": "opdock.metrics.common:metric_variable",
    },
    **OPS_NAMES,
    "python.ops.nn_ops": {
        "Convolution": "opdock.ops.composed.dilated:Convolution",
        "fractional_avg_pool_v2": "opdock.ops.fractional_pool:fractional_avg_pool_v2",
        "fractional_max_pool_v2": "opdock.ops.fractional_pool:fractional_max_pool_v2",
        "nth_element": "opdock.ops.sorting:nth_element",
    },
    "python.ops.resource_variable_ops": {
        "_from_proto_fn": "opdock.graph.serial.proto_functions:variable_from_proto",
        "_to_proto_fn": "opdock.graph.serial.proto_functions:to_proto",
        "BaseResourceVariable": "opdock.graph.variables.resource_variable:ResourceVariable",
        "ResourceVariable": "opdock.graph.variables.resource_variable:ResourceVariable",
        "is_resource_variable": "opdock.util.graph_helpers:is_resource_variable",
    },
    "python.ops.rnn": {
        "_best_effort_input_batch_size": "opdock.layers.rnn:best_effort_input_batch_size",
        "_transpose_batch_time": "opdock.layers.rnn:transpose_batch_time",
        "rnn_cell_impl": "opdock.layers.rnn_cell",
    },
    "python.ops.rnn_cell_impl": {
        "LayerRNNCell": "opdock.layers.rnn_base:LayerRNNCell",
        "_BIAS_VARIABLE_NAME": "opdock.layers.rnn_cell:BIAS",
        "_WEIGHTS_VARIABLE_NAME": "opdock.layers.rnn_cell:WEIGHTS",
        "_concat": "opdock.layers.rnn_base:joined_sizes",
        "_zero_state_tensors": "opdock.layers.rnn_base:zero_states",
        "assert_like_rnncell": "opdock.layers.rnn_base:checked_cell",
    },
    "python.ops.variables": {
        "PartitionedVariable": "opdock.graph.variables.partitioned:PartitionedVariable",
        "_all_saveable_objects": "opdock.train.saveable:all_saveable_objects",
        "RefVariable": "opdock.graph.variables.ref_variable:RefVariable",
        "Variable": "opdock.graph.variables.resource_variable:VariableV2",
        "VariableV1": "opdock:Variable",
    },
    "python.platform.flags": {"_FlagValuesWrapper": "opdock.api.flags:ParsedWhenRead"},
    "python.platform.googletest": {
        "GetTempDir": "opdock.api.test:get_temp_dir",
        "mock": "unittest.mock",
    },
    "python.platform.test": {"mock": "unittest.mock"},
    "python.pywrap_tensorflow": {
        "EventsWriter": "opdock.summary.prefixed_events:EventsWriter",
        "NewCheckpointReader": "opdock:train.NewCheckpointReader",
        "TF_TryEvaluateConstant_wrapper": "opdock.util.graph_helpers:evaluated_constant",
        "TF_bfloat16_type": "opdock.util.dtype_names:bfloat16_type",
    },
    "python.framework.op_def_registry": {
        "get_registered_ops": "opdock.util.graph_helpers:get_registered_ops",
    },
    "python.keras.utils.tf_utils": {
        "register_symbolic_tensor_type": "opdock.util.graph_helpers:register_symbolic_tensor_type",
    },
    "python.util.nest": _in(
        "opdock.util.nest:",
        _is_namedtuple="is_namedtuple",
        _sequence_like="like",
        _yield_sorted_items="keyed_items",
        _yield_value="items",
    ),
    **TRAINING_NAMES,
    "test": {"mock": "unittest.mock"},
    "python.util.deprecation": {
        "_PRINT_DEPRECATION_WARNINGS": "opdock.util.deprecation:PRINT_DEPRECATION_WARNINGS",
    },
    "python.util.tf_inspect": {"_inspect": "inspect"},
    "python.util.object_identity": _in(
        "opdock.util.identities:",
        _ObjectIdentityWrapper="ObjectIdentityWrapper",
        _WeakObjectIdentityWrapper="WeakObjectIdentityWrapper",
    ),
    "python.util.tf_should_use": {
        "_add_should_use_warning": "opdock.util.used:must_be_used",
        "tf_logging": "opdock.api.logging",
    },
    "python.util.compat_internal": {"path_to_str": "opdock:compat.path_to_str"},
    "python.util.compat": {"collections_abc": "collections.abc"},
}

# Names of TF 2's interface in 1.15 that are other than TF 1's of the same name.
V2: Final[dict[str, str]] = {
    **DATA_V2,
    **LATER_V2,
    **OPS_V2,
    "Variable": "opdock.graph.variables.resource_variable:VariableV2",
    "nn.avg_pool": "opdock.ops.composed.pooling:avg_pool_v2",
    "nn.ctc_beam_search_decoder": "opdock:nn.ctc_beam_search_decoder_v2",
    "nn.ctc_loss": "opdock:nn.ctc_loss_v2",
    "nn.fractional_avg_pool": "opdock.ops.fractional_pool:fractional_avg_pool_v2",
    "nn.fractional_max_pool": "opdock.ops.fractional_pool:fractional_max_pool_v2",
    "nn.max_pool": "opdock.ops.composed.pooling:max_pool_v2",
    "nn.sigmoid_cross_entropy_with_logits": "opdock:nn.sigmoid_cross_entropy_with_logits",
    "nn.softmax_cross_entropy_with_logits": "opdock:nn.softmax_cross_entropy_with_logits_v2",
    "nn.sparse_softmax_cross_entropy_with_logits": (
        "opdock:nn.sparse_softmax_cross_entropy_with_logits"
    ),
    "saved_model.load": "opdock.saved_model.imported:load_v2",
    "where": "opdock:where_v2",
}

# Attributes that change while a program runs, and are looked up each time.
LIVE: Final = frozenset({"ENABLE_CONTROL_FLOW_V2", "FLAGS"})
