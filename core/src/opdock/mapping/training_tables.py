"""Where the names of TF's modules for training and its summaries are in opdock, as data."""

from __future__ import annotations

from typing import Final

# Internal module -> opdock's modules in which its names are looked up before TF's exports are.
TRAINING_SOURCES: Final[dict[str, tuple[str, ...]]] = {
    **{
        f"python.tpu.{module}": ("opdock.contrib.tpu_export",)
        for module in ("functional", "ops.tpu_ops", "tpu")
    },
    "python.training.saver": (
        "opdock.train.saver",
        "opdock.train.saver_builder",
        "opdock.train.checkpoint_management",
    ),
    "python.training.checkpoint_utils": (
        "opdock.train.checkpoint_utils",
        "opdock.train.checkpoint_initializers",
    ),
    "python.training.warm_starting_util": ("opdock.train.warm_starting",),
    "python.training.tracking.base": ("opdock.train.tracking.base",),
    "python.training.tracking.data_structures": (
        "opdock.graph.variables.tracked_attributes",
        "opdock.graph.variables.tracked_containers",
        "opdock.graph.variables.trackable",
        "opdock.train.tracking.containers",
    ),
    "python.training.tracking.tracking": (
        "opdock.graph.variables.tracked_attributes",
        "opdock.graph.variables.trackable",
        "opdock.graph.variables.trackable_resources",
    ),
    "python.saved_model.revived_types": ("opdock.saved_model.revived",),
    "python.training.tracking.graph_view": ("opdock.train.tracking.object_graph",),
    "python.training.tracking.python_state": ("opdock.train.tracking.base",),
    "python.training.tracking.util": ("opdock.train.tracking.util",),
    "python.ops.summary_ops_v2": ("opdock.summary.recording",),
    "python.training.saving.saveable_object": ("opdock.train.saveable",),
    "python.training.saving.saveable_object_util": ("opdock.train.saveable",),
}

# Module -> name -> "module:name" of opdock; "opdock:x" is the public tf.x.
TRAINING_NAMES: Final[dict[str, dict[str, str]]] = {
    "python.training.server_lib": {"_make_server_def": "opdock.train.server_lib:make_server_def"},
    "python.training.tracking.data_structures": {
        "_DictWrapper": "opdock.graph.variables.tracked_containers:DictWrapper"
    },
    "python.saved_model.loader_impl": {
        "_get_main_op_tensor": "opdock.saved_model.loader:op_of_collection"
    },
    "python.training.device_setter": {
        "_RoundRobinStrategy": "opdock.train.device_setter:RoundRobin"
    },
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
    "python.training.checkpoint_ops": {
        f"_{name}": f"opdock.train.remapped_matrices:{name}"
        for name in (
            "load_and_remap_matrix",
            "load_and_remap_matrix_initializer",
            "load_embedding_initializer",
        )
    },
    "python.training.warm_starting_util": {
        "_get_var_info": "opdock.train.warm_starting:var_info",
        "_infer_var_name": "opdock.train.warm_starting:infer_var_name",
        "_warm_start_var_with_vocab": "opdock.train.warm_starting:warm_start_var_with_vocab",
    },
    "python.ops.summary_ops_v2": {
        "_INVALID_SCOPE_CHARACTERS": "opdock.ops.summary:_ILLEGAL",
        "all_v2_summary_ops": "opdock.summary.recording:all_summary_ops",
        "create_file_writer_v2": "opdock.summary.recording_v2:create_file_writer",
    }
    | {
        name: f"opdock.summary.recording_v2:{name}"
        for name in (
            "create_noop_writer",
            "get_step",
            "set_step",
            "summary_scope",
            "write",
            "write_raw_pb",
        )
    },
    "python.training.training": {"NewCheckpointReader": "opdock:train.NewCheckpointReader"},
}
