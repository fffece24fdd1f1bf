"""`tf.train`: optimizers, checkpoints and training helpers; each loads when first used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

# Module -> the public names that it gives to tf.train.
_WHERE: dict[str, str] = {
    "opdock.train.tracking.util": "Checkpoint",
    "opdock.train.tracking.manager": "CheckpointManager",
    "opdock.train.saver": "Saver export_meta_graph import_meta_graph",
    "opdock.train.checkpoint_management": (
        "checkpoint_exists generate_checkpoint_state_proto get_checkpoint_mtimes"
        " get_checkpoint_state latest_checkpoint remove_checkpoint update_checkpoint_state"
    ),
    "opdock.train.checkpoint_utils": (
        "NewCheckpointReader checkpoints_iterator list_variables load_checkpoint load_variable"
    ),
    "opdock.train.checkpoint_initializers": "init_from_checkpoint",
    "opdock.train.warm_starting": "VocabInfo warm_start",
    "opdock.train.graph_io": "write_graph",
    "opdock.io.event_files": "summary_iterator",
    "opdock.train.optimizer": "Optimizer",
    "opdock.train.gradient_descent": (
        "GradientDescentOptimizer MomentumOptimizer ProximalGradientDescentOptimizer"
    ),
    "opdock.train.adagrad": (
        "AdagradDAOptimizer AdagradOptimizer FtrlOptimizer ProximalAdagradOptimizer"
    ),
    "opdock.train.adaptive": "AdadeltaOptimizer AdamOptimizer RMSPropOptimizer",
    "opdock.train.sync_replicas_optimizer": "SyncReplicasOptimizer",
    "opdock.train.training_util": (
        "assert_global_step create_global_step get_global_step get_or_create_global_step"
        " global_step"
    ),
    "opdock.train.learning_rate_decay": (
        "cosine_decay cosine_decay_restarts exponential_decay inverse_time_decay"
        " linear_cosine_decay natural_exp_decay noisy_linear_cosine_decay piecewise_constant"
        " piecewise_constant_decay polynomial_decay"
    ),
    "opdock.train.moving_averages": "ExponentialMovingAverage",
    "opdock.train.device_setter": "replica_device_setter",
    "opdock.train.coordinator": "Coordinator LooperThread",
    "opdock.train.server_lib": "ClusterSpec Server",
    "opdock.train.loops.hook": ("SessionRunArgs SessionRunContext SessionRunHook SessionRunValues"),
    "opdock.train.loops.timers": "SecondOrStepTimer",
    "opdock.train.loops.hooks": (
        "FeedFnHook FinalOpsHook GlobalStepWaiterHook LoggingTensorHook NanLossDuringTrainingError"
        " NanTensorHook StopAtStepHook"
    ),
    "opdock.train.loops.saving_hooks": (
        "CheckpointSaverHook CheckpointSaverListener ProfilerHook StepCounterHook SummarySaverHook"
    ),
    "opdock.train.loops.scaffold": "Scaffold",
    "opdock.train.loops.session_manager": "SessionManager",
    "opdock.train.loops.monitored_session": (
        "ChiefSessionCreator MonitoredSession MonitoredTrainingSession SessionCreator"
        " SingularMonitoredSession WorkerSessionCreator"
    ),
    "opdock.train.loops.supervisor": "Supervisor",
    "opdock.train.loops.basic_loops": "basic_train_loop",
    "opdock.train.queue_runner": "QueueRunner add_queue_runner start_queue_runners",
    "opdock.train.producers": (
        "input_producer limit_epochs match_filenames_once range_input_producer"
        " slice_input_producer string_input_producer"
    ),
    "opdock.train.batching": (
        "batch batch_join maybe_batch maybe_batch_join maybe_shuffle_batch"
        " maybe_shuffle_batch_join shuffle_batch shuffle_batch_join"
    ),
    "opdock.io.protos": (
        "BytesList CheckpointState ClusterDef Example Feature FeatureList FeatureLists Features"
        " FloatList Int64List JobDef QueueRunnerDef SaverDef SequenceExample ServerDef"
    ),
}
_NAMES = {name: module for module, names in _WHERE.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    where = _NAMES.get(name)
    if where is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(where), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_NAMES})
