"""Where the names of TensorFlow's modules are in opdock, as data."""

from __future__ import annotations

from typing import Final

# Internal module -> opdock's modules in which its names are looked up before TF's exports are.
SOURCES: Final[dict[str, tuple[str, ...]]] = {
    "python.client.session": ("opdock.runtime.session", "opdock.runtime.fetch"),
    "python.client.timeline": ("opdock.api.timeline",),
    "python.framework.constant_op": ("opdock.graph.nodes.constant",),
    "python.framework.device": ("opdock.graph.nodes.devicespec",),
    "python.framework.dtypes": ("opdock.dtypes", "opdock.util.dtype_names"),
    "python.framework.errors": ("opdock.errors",),
    "python.framework.errors_impl": ("opdock.errors",),
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
        "opdock.graph.nodes.registry",
    ),
    "python.framework.smart_cond": ("opdock.util.graph_helpers",),
    "python.framework.test_util": ("opdock.util.for_tests", "opdock.api.test"),
    "python.framework.random_seed": ("opdock.graph.nodes.seeds",),
    "python.framework.tensor_shape": ("opdock.shapes", "opdock.util.graph_helpers"),
    "python.eager.context": ("opdock.util.eager_context",),
    "python.platform.app": ("opdock.api.app",),
    "python.platform.flags": ("opdock.api.flags",),
    "python.platform.googletest": ("opdock.api.test",),
    "python.platform.test": ("opdock.api.test",),
    "python.platform.tf_logging": ("opdock.api.logging",),
    "python.ops.rnn_cell": ("opdock.layers.rnn_cell",),
    "python.ops.rnn_cell_impl": ("opdock.layers.rnn_cell",),
    "python.ops.summary_op_util": ("opdock.ops.summary",),
    "python.layers.utils": ("opdock.util.graph_helpers",),
    "python.util.all_util": ("opdock.util.decorating",),
    "python.util.deprecation": ("opdock.util.decorating",),
    "python.util.function_utils": ("opdock.util.inspecting",),
    "python.util.keyword_args": ("opdock.util.decorating",),
    "python.util.tf_contextlib": ("opdock.util.decorating",),
    "python.util.tf_decorator": ("opdock.util.decorating",),
    "python.util.tf_export": ("opdock.util.decorating",),
    "python.util.tf_inspect": ("opdock.util.inspecting",),
    "contrib.learn.python.learn.datasets": ("opdock.examples.tutorials.mnist.input_data",),
    "contrib.learn.python.learn.datasets.base": ("opdock.examples.tutorials.mnist.input_data",),
    "contrib.learn.python.learn.datasets.mnist": ("opdock.examples.tutorials.mnist.input_data",),
    "contrib.testing.python.framework.util_test": ("opdock.contrib.testing",),
    "contrib.layers.python.layers.utils": ("opdock.util.graph_helpers",),
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
    "python.training.experimental.loss_scale": ("opdock.train.experimental.loss_scale",),
    "python.training.supervisor": ("opdock.train.loops.supervisor", "opdock.train.loops.services"),
    "python.training.slot_creator": ("opdock.train.slot_creator",),
    "python.training.moving_averages": ("opdock.train.moving_averages",),
    "python.training.optimizer": ("opdock.train.optimizer",),
    "python.training.saver": ("opdock.train.saver", "opdock.train.checkpoint_management"),
    "python.training.checkpoint_management": ("opdock.train.checkpoint_management",),
    "python.training.training_util": ("opdock.train.training_util",),
    "python.util.nest": ("opdock.util.nest",),
    "python.data.util.nest": ("opdock.util.nest",),
    "python.util.compat": ("opdock.compat",),
}


def _of_train(*names: str) -> dict[str, str]:
    return {name: f"opdock:train.{name}" for name in names}


_GLOBAL_STEP: Final = _of_train(
    "assert_global_step", "create_global_step", "get_global_step", "get_or_create_global_step"
)
_CHECKPOINTS: Final = _of_train(
    "init_from_checkpoint", "list_variables", "load_checkpoint", "load_variable"
)

# Module -> name -> "module:name" of opdock, where the names differ; "opdock:x" is the public tf.x.
NAMES: Final[dict[str, dict[str, str]]] = {
    "contrib.framework": {
        **_GLOBAL_STEP,
        **_CHECKPOINTS,
        "sort": "opdock:sort",
        "argsort": "opdock:argsort",
        "nest": "opdock.util.nest",
    },
    "contrib.framework.python.framework.checkpoint_utils": _CHECKPOINTS,
    "contrib.framework.python.ops.variables": _GLOBAL_STEP,
    "contrib.rnn": {
        "static_rnn": "opdock:nn.static_rnn",
        "static_bidirectional_rnn": "opdock:nn.static_bidirectional_rnn",
        "static_state_saving_rnn": "opdock:nn.static_state_saving_rnn",
    },
    "contrib.tensorboard.plugins.projector": {
        "EmbeddingInfo": "tensorboard.plugins.projector.projector_config_pb2:EmbeddingInfo",
        "ProjectorConfig": "tensorboard.plugins.projector.projector_config_pb2:ProjectorConfig",
        "SpriteMetadata": "tensorboard.plugins.projector.projector_config_pb2:SpriteMetadata",
        "visualize_embeddings": "opdock.summary.projector:visualize_embeddings",
    },
    "io.gfile": {
        "copy": "opdock:gfile.Copy",
        "exists": "opdock:gfile.Exists",
        "glob": "opdock:gfile.Glob",
        "isdir": "opdock:gfile.IsDirectory",
        "listdir": "opdock:gfile.ListDirectory",
        "makedirs": "opdock:gfile.MakeDirs",
        "mkdir": "opdock:gfile.MkDir",
        "remove": "opdock:gfile.Remove",
        "rename": "opdock:gfile.Rename",
        "rmtree": "opdock:gfile.DeleteRecursively",
        "stat": "opdock:gfile.Stat",
        "walk": "opdock:gfile.Walk",
    },
    "python.client.device_lib": {
        "list_local_devices": "opdock.util.graph_helpers:list_local_devices",
    },
    "python.framework.graph_io": {"write_graph": "opdock:train.write_graph"},
    "python.framework.ops": {
        "NoGradient": "opdock.graph.nodes.registry:not_differentiable",
        "NotDifferentiable": "opdock.graph.nodes.registry:not_differentiable",
        "executing_eagerly_outside_functions": "opdock.util.eager_context:executing_eagerly",
        "get_gradient_function": "opdock.graph.nodes.registry:gradient_of",
        "get_name_scope": "opdock.util.graph_helpers:get_name_scope",
        "internal_convert_n_to_tensor": "opdock.graph.nodes.convert:convert_n_to_tensor",
        "internal_convert_to_tensor": "opdock.graph.nodes.convert:convert_to_tensor",
        "convert_to_tensor_v2": "opdock.graph.nodes.convert:convert_to_tensor",
        "is_dense_tensor_like": "opdock.graph.nodes.operation:is_tensor",
        "name_scope_v1": "opdock.graph.nodes.scopes:name_scope",
        "register_dense_tensor_like_type": "opdock.util.decorating:do_not_generate_docs",
        "set_shapes_for_outputs": "opdock.util.graph_helpers:set_shapes_for_outputs",
        "uid": "opdock.util.graph_helpers:uid",
    },
    "python.framework.tensor_shape": {"as_shape": "opdock.shapes:as_tensor_shape"},
    "python.framework.tensor_util": {"MakeNdarray": "opdock.io.tensor_proto:make_ndarray"},
    "python.framework.device": {
        "check_valid": "opdock.graph.nodes.devicespec:DeviceSpec.from_string",
    },
    "python.lib.io.tf_record": {
        "tf_record_iterator": "opdock:python_io.tf_record_iterator",
        "TFRecordWriter": "opdock:python_io.TFRecordWriter",
    },
    "python.lib.io.file_io": {
        "FileIO": "opdock:gfile.GFile",
        "copy": "opdock:gfile.Copy",
        "create_dir": "opdock:gfile.MkDir",
        "delete_file": "opdock:gfile.Remove",
        "delete_recursively": "opdock:gfile.DeleteRecursively",
        "file_exists": "opdock:gfile.Exists",
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
    "python.ops.control_flow_ops": {
        "cond_v1": "opdock:cond",
        "with_dependencies": "opdock.util.graph_helpers:with_dependencies",
    },
    "python.ops.resource_variable_ops": {
        "ResourceVariable": "opdock.graph.variables.resource_variable:ResourceVariable",
        "is_resource_variable": "opdock.util.graph_helpers:is_resource_variable",
    },
    "python.ops.variables": {
        "RefVariable": "opdock:Variable",
        "Variable": "opdock:Variable",
        "VariableV1": "opdock:Variable",
    },
    "python.ops.variable_scope": {"variable": "opdock:Variable"},
    "python.platform.googletest": {"mock": "unittest.mock"},
    "python.platform.test": {"mock": "unittest.mock"},
    "python.pywrap_tensorflow": {
        "NewCheckpointReader": "opdock:train.NewCheckpointReader",
    },
    "distribute": {"Server": "opdock:train.Server"},
    "python.training.server_lib": {"_make_server_def": "opdock.train.server_lib:make_server_def"},
    "python.training.basic_session_run_hooks": {
        "_HookTimer": "opdock.train.loops.timers:HookTimer",
        "_MultiStepStopAtStepHook": "opdock.train.loops.hooks:MultiStepStopAtStepHook",
        "_as_graph_element": "opdock.train.loops.hooks:graph_element",
    },
    "python.training.evaluation": {
        "_MultiStepStopAfterNEvalsHook": (
            "opdock.train.loops.evaluation:MultiStepStopAfterNEvalsHook"
        ),
        "_StopAfterNEvalsHook": "opdock.train.loops.evaluation:StopAfterNEvalsHook",
        "_evaluate_once": "opdock.train.loops.evaluation:evaluate_once",
        "_get_or_create_eval_step": "opdock.train.loops.evaluation:get_or_create_eval_step",
    },
    "python.training.monitored_session": {
        "_CoordinatedSession": "opdock.train.loops.wrapped_sessions:CoordinatedSession",
        "_HookedSession": "opdock.train.loops.wrapped_sessions:HookedSession",
        "_PREEMPTION_ERRORS": "opdock.train.loops.wrapped_sessions:PREEMPTION_ERRORS",
        "_RecoverableSession": "opdock.train.loops.wrapped_sessions:RecoverableSession",
        "_WrappedSession": "opdock.train.loops.wrapped_sessions:WrappedSession",
    },
    "python.training.saver": {
        "_get_saver_or_default": "opdock.train.loops.scaffold:saver_or_default"
    },
    "python.training.training": {"NewCheckpointReader": "opdock:train.NewCheckpointReader"},
    "test": {"mock": "unittest.mock"},
    "python.tf2": {"enabled": "opdock.util.graph_helpers:enabled"},
    "python.util.compat": {"collections_abc": "collections.abc"},
}

# Names of TF 2's interface in 1.15 that are other than TF 1's of the same name.
V2: Final[dict[str, str]] = {
    "Variable": "opdock.graph.variables.resource_variable:ResourceVariable",
    "nn.sigmoid_cross_entropy_with_logits": "opdock:nn.sigmoid_cross_entropy_with_logits",
    "nn.softmax_cross_entropy_with_logits": "opdock:nn.softmax_cross_entropy_with_logits_v2",
    "nn.sparse_softmax_cross_entropy_with_logits": (
        "opdock:nn.sparse_softmax_cross_entropy_with_logits"
    ),
    "where": "opdock:where_v2",
}

# Attributes that change while a program runs, and are looked up each time.
LIVE: Final = frozenset({"FLAGS"})
