"""Where the names of `tf.contrib`'s modules are in opdock, where they are elsewhere: as data."""

from __future__ import annotations

from typing import Final


def _of_train(*names: str) -> dict[str, str]:
    return {name: f"opdock:train.{name}" for name in names}


def _public(*names: str) -> dict[str, str]:
    return {name: f"opdock:{name}" for name in names}


GLOBAL_STEP: Final = _of_train(
    "assert_global_step", "create_global_step", "get_global_step", "get_or_create_global_step"
)
CHECKPOINTS: Final = {
    name: f"opdock.contrib.framework.checkpoint_utils:{name}"
    for name in ("init_from_checkpoint", "list_variables", "load_checkpoint", "load_variable")
}

_EXPERIMENTAL: Final = {"experimental": "opdock.util.deprecation:experimental"}

# What of tfe is for graphs as well, and for tests that run in both ways.
EAGER: Final = {
    **_public(
        "GradientTape", "TensorSpec", "custom_gradient", "enable_eager_execution",
        "executing_eagerly", "function", "make_template",
    ),
    **{
        name: f"opdock.util.eager_context:{name}"
        for name in (
            "ASYNC", "DEVICE_PLACEMENT_EXPLICIT", "DEVICE_PLACEMENT_SILENT",
            "DEVICE_PLACEMENT_WARN", "SYNC", "async_wait", "execution_mode", "num_gpus",
            "async_clear_error", "list_devices",
            "set_execution_mode",
        )
    },
    **{
        name: f"opdock.contrib.eager.callbacks:{name}"
        for name in (
            "ExecutionCallback", "add_execution_callback", "clear_execution_callbacks", "errstate",
            "inf_callback", "inf_nan_callback", "nan_callback", "seterr",
        )
    },
    **{
        name: f"opdock.contrib.eager.saving:{name}"
        for name in ("Saver", "get_optimizer_variables", "restore_variables_on_create")
    },
    "Network": "opdock.contrib.eager.network:Network",
    "Sequential": "opdock.contrib.eager.network:Sequential",
    "EagerVariableStore": "opdock.graph.variables.eager_store:EagerVariableStore",
    "run": "opdock.contrib.eager.starting:run",
    "Checkpoint": "opdock:train.Checkpoint",
    "Checkpointable": "opdock.graph.variables.tracked_attributes:AutoTrackable",
    "gradients_function": "opdock.eager.functions:gradients_function",
    "value_and_gradients_function": "opdock.eager.functions:val_and_grad_function",
    "implicit_gradients": "opdock.eager.functions:implicit_grad",
    "implicit_value_and_gradients": "opdock.eager.functions:implicit_val_and_grad",
    "Iterator": "opdock.data.eager_iterator:EagerIterator",
    "Variable": "opdock.graph.variables.resource_variable:ResourceVariable",
    "defun": "opdock.ops.composed.function:defun",
    "in_eager_mode": "opdock:executing_eagerly",
    "py_func": "opdock:py_function",
    "run_all_tests_in_graph_and_eager_modes": (
        "opdock.util.for_tests:run_all_in_graph_and_eager_modes"
    ),
    "run_test_in_graph_and_eager_modes": "opdock.util.for_tests:run_in_graph_and_eager_modes",
}  # fmt: skip

# Made when TensorFlow was built, so not among its sources: all of their ops are known by name.
BUILT_MODULES: Final = frozenset(
    {
        "contrib.image.ops", "contrib.image.ops.gen_image_ops",
        "contrib.image.ops.gen_distort_image_ops", "contrib.resampler.ops",
        "contrib.resampler.ops.gen_resampler_ops",
        "contrib.factorization.python.ops.gen_factorization_ops",
        "contrib.tensor_forest.python.ops.gen_model_ops",
        "contrib.tensor_forest.python.ops.gen_stats_ops",
    }
)  # fmt: skip

# Modules whose functions TensorFlow generates from op definitions, beside those named gen_*_ops.
GENERATED: Final = frozenset(
    {
        "contrib.factorization.python.ops.clustering_ops",
        "python.framework.test_ops",
        "contrib.tensor_forest.python.ops.model_ops",
        "contrib.tensor_forest.python.ops.stats_ops",
    }
)

_KERAS_MODELS: Final = {
    "load_keras_model": "opdock.keras_base.exporting:load_from_saved_model",
    "save_keras_model": "opdock.keras_base.exporting:export_saved_model",
}

_HEAD_OF_DISTRIBUTION: Final = {
    "estimator_head_distribution_regression": (
        "opdock.contrib.learn.distribution_head:estimator_head_distribution_regression"
    ),
}

# Module -> name -> "module:name" of opdock; "opdock:x" is the public tf.x.
CONTRIB: Final[dict[str, dict[str, str]]] = {
    "contrib.eager": EAGER,
    "contrib.eager.python.tfe": {**EAGER, "metrics": "opdock:contrib.eager.metrics"},
    # Hooks that tensorflow-estimator has elsewhere.
    "contrib.estimator": {
        "read_eval_metrics": (
            "tensorflow_estimator.python.estimator.early_stopping:read_eval_metrics"
        ),
        **{
            name: f"opdock:estimator.experimental.{name}"
            for name in (
                "InMemoryEvaluatorHook",
                "make_early_stopping_hook",
                "make_stop_at_checkpoint_step_hook",
                "stop_if_higher_hook",
                "stop_if_lower_hook",
                "stop_if_no_decrease_hook",
                "stop_if_no_increase_hook",
            )
        },
    },
    "contrib.data": {name: f"opdock:data.{name}" for name in ("Dataset", "Iterator")},
    "contrib.compiler.jit": {"experimental_jit_scope": "opdock:xla.experimental.jit_scope"},
    "contrib.compiler.xla": {"compile": "opdock:xla.experimental.compile"},
    "contrib.hooks": _of_train("ProfilerHook"),
    "contrib.framework": {
        "BoundedTensorSpec": "opdock.graph.nodes.boundedspec:BoundedTensorSpec",
        "RecordInput": "opdock.ops.composed.record_input:RecordInput",
        "TensorSpec": "opdock:TensorSpec",
        "assert_scalar": "opdock.ops.composed.check_static:assert_scalar",
        **{
            name: f"opdock.util.deprecation:{name}"
            for name in ("deprecated", "deprecated_arg_values", "deprecated_args")
        },
        **GLOBAL_STEP,
        **CHECKPOINTS,
        **_EXPERIMENTAL,
        "prepend_name_scope": "opdock.train.collection_defs:prepend_name_scope",
        **{
            name: f"opdock.util.graph_helpers:{name}"
            for name in ("smart_case", "smart_cond", "smart_constant_value")
        },
        "strip_name_scope": "opdock.train.collection_defs:strip_name_scope",
        **_public(
            "argsort",
            "assert_same_float_dtype",
            "convert_to_tensor_or_sparse_tensor",
            "is_non_decreasing",
            "is_numeric_tensor",
            "is_strictly_increasing",
            "is_tensor",
            "sort",
        ),
    },
    "contrib.framework.python.framework": _EXPERIMENTAL,
    "contrib.framework.python.framework.checkpoint_utils": CHECKPOINTS,
    "contrib.framework.python.ops.variables": GLOBAL_STEP,
    # What tf.distributions has and what the library has are two kinds; this one knows both.
    "contrib.distributions": {
        "kl_divergence": "opdock:distributions.kl_divergence",
        **_HEAD_OF_DISTRIBUTION,
    },
    "contrib.distributions.python.ops.estimator": _HEAD_OF_DISTRIBUTION,
    "contrib.distributions.python.ops.test_util": {
        name: f"opdock.distributions.for_tests:{name}"
        for name in ("DiscreteScalarDistributionTestHelpers", "VectorDistributionTestHelpers")
    },
    "contrib.metrics": {"confusion_matrix": "opdock:math.confusion_matrix"},
    "contrib.metrics.python.ops.confusion_matrix_ops": {
        "confusion_matrix": "opdock:math.confusion_matrix"
    },
    "contrib.saved_model": _KERAS_MODELS,
    "contrib.saved_model.python.saved_model.keras_saved_model": _KERAS_MODELS,
    "contrib.saved_model.python.saved_model.reader": {
        name: f"opdock.tools.saved_model_utils:{name}"
        for name in ("get_saved_model_tag_sets", "read_saved_model")
    },
    "contrib.image.python.ops.dense_image_warp": {
        "_interpolate_bilinear": "opdock.contrib.image.warps:interpolate_bilinear",
    },
    "contrib.image.python.ops.sparse_image_warp": {
        "_get_boundary_locations": "opdock.contrib.image.warps:boundary_locations",
        "_get_grid_locations": "opdock.contrib.image.warps:grid_locations",
    },
    "contrib.layers.python.layers.embedding_ops": {
        f"_{name}": f"opdock.contrib.layers.scattered:{name}"
        for name in (
            "sampled_scattered_embedding_lookup",
            "sampled_scattered_embedding_lookup_sparse",
        )
    },
    "contrib.layers.python.layers.feature_column": {
        f"_{name}": f"opdock.contrib.layers.feature_column.{module}:{name}"
        for module, names in {
            "base": "FeatureColumn",
            "crossed": "CrossedColumn",
            "embedded": "EmbeddingColumn OneHotColumn ScatteredEmbeddingColumn",
            "numeric": (
                "BucketizedColumn RealValuedColumn RealValuedVarLenColumn "
                "real_valued_var_len_column"
            ),
            "parsing": "create_sequence_feature_spec_for_parsing",
            "sparse": "SparseColumn SparseIdLookupConfig WeightedSparseColumn",
        }.items()
        for name in names.split()
    },
    "contrib.layers.python.layers.layers": {
        "_inner_flatten": "opdock.contrib.layers.shaping:inner_flatten",
    },
    "contrib.layers.python.layers.feature_column_ops": {
        "_Transformer": "opdock.contrib.layers.feature_column.inputs:Transformer",
    },
    **{
        f"contrib.opt.python.training.{name}_optimizer": {
            constant: f"opdock.contrib.opt.centers:{constant}"
            for constant in ("GLOBAL_VARIABLE_NAME", "GRAD_VARIABLE_NAME", "LOCAL_VARIABLE_NAME")
        }
        for name in ("agn", "elastic_average", "model_average")
    },
    "contrib.metrics.python.ops.metric_ops": {
        "_next_array_size": "opdock.contrib.metrics.concat:next_array_size",
    },
    # The hooks and sessions of tf.train, under the names that they had before they moved there.
    "contrib.learn.python.learn.basic_session_run_hooks": _of_train(
        "CheckpointSaverHook",
        "LoggingTensorHook",
        "NanLossDuringTrainingError",
        "NanTensorHook",
        "StepCounterHook",
        "StopAtStepHook",
        "SummarySaverHook",
    ),
    "contrib.learn.python.learn.estimators.debug": {
        name: f"opdock.contrib.learn.canned:{name}"
        for name in ("DebugClassifier", "DebugRegressor")
    },
    "contrib.learn.python.learn.estimators.estimator": {
        "GraphRewriteSpec": "opdock.contrib.learn.exporting:GraphRewriteSpec",
    },
    "contrib.learn.python.learn.estimators.dynamic_rnn_estimator": {
        "PredictionType": "opdock.contrib.learn.recurrent:PredictionType",
        "_get_dynamic_rnn_model_fn": "opdock.contrib.learn.dynamic_rnn:model_fn_of_sequences",
        "_get_output_alternatives": "opdock.contrib.learn.dynamic_rnn:output_alternatives",
        "_get_state_name": "opdock.contrib.learn.recurrent:state_name",
        "_single_value_predictions": "opdock.contrib.learn.recurrent:single_value_predictions",
        **{
            name: f"opdock.contrib.learn.recurrent:{name}"
            for name in (
                "build_sequence_input",
                "construct_rnn",
                "dict_to_state_tuple",
                "state_tuple_to_dict",
            )
        },
    },
    "contrib.learn.python.learn.estimators.state_saving_rnn_estimator": {
        "StateSavingRnnEstimator": "opdock.contrib.learn.state_saving_rnn:StateSavingRnnEstimator",
        "construct_state_saving_rnn": (
            "opdock.contrib.learn.state_saving_rnn:construct_state_saving_rnn"
        ),
        "state_tuple_to_dict": "opdock.contrib.learn.recurrent:state_tuple_to_dict",
        "_get_rnn_model_fn": "opdock.contrib.learn.state_saving_rnn:model_fn_of_segments",
        "_get_state_name": "opdock.contrib.learn.recurrent:state_name",
        "_prepare_features_for_sqss": (
            "opdock.contrib.learn.state_saving_rnn:sequences_and_context"
        ),
        "_prepare_inputs_for_rnn": "opdock.contrib.learn.state_saving_rnn:features_by_step",
    },
    "contrib.learn.python.learn.estimators.rnn_common": {
        name: f"opdock.contrib.learn.recurrent:{name}"
        for name in (
            "PredictionType",
            "RNNKeys",
            "apply_dropout",
            "construct_rnn_cell",
            "get_eval_metric_ops",
            "mask_activations_and_labels",
            "multi_value_predictions",
            "select_last_activations",
        )
    },
    # Heads had protected names before they had public ones.
    "contrib.learn.python.learn.estimators.head": {
        f"_{name}": f"opdock:contrib.learn.{name}"
        for name in (
            "Head",
            "binary_svm_head",
            "multi_class_head",
            "multi_head",
            "multi_label_head",
            "poisson_regression_head",
            "regression_head",
        )
    },
    "contrib.learn.python.learn.evaluable": {
        "Evaluable": "opdock.contrib.learn.contracts:Evaluable",
    },
    "contrib.learn.python.learn.trainable": {
        "Trainable": "opdock.contrib.learn.contracts:Trainable",
    },
    **{
        f"contrib.learn.python.learn.learn_io.{kind}_io": {
            f"{kind}_input_fn": f"opdock.contrib.learn.array_inputs:{kind}_input_fn"
        }
        for kind in ("numpy", "pandas")
    },
    "contrib.learn.python.learn.learn_io.generator_io": {
        "generator_input_fn": "opdock.contrib.learn.generator_io:generator_input_fn",
    },
    "contrib.learn.python.learn.learn_io.data_feeder": {
        name: f"opdock.contrib.learn.data_feeder:{name}"
        for name in (
            "DataFeeder",
            "StreamingDataFeeder",
            "check_array",
            "setup_predict_data_feeder",
            "setup_processor_data_feeder",
            "setup_train_data_feeder",
        )
    },
    "contrib.learn.python.learn.preprocessing.categorical_vocabulary": {
        "CategoricalVocabulary": "opdock.contrib.learn.preprocessing:CategoricalVocabulary",
    },
    "contrib.learn.python.learn.preprocessing.text": {
        name: f"opdock.contrib.learn.preprocessing:{name}"
        for name in ("VocabularyProcessor", "tokenizer")
    },
    "contrib.learn.python.learn.learn_io.graph_io": {
        "KEY_FEATURE_NAME": "opdock.contrib.learn.io:KEY_FEATURE_NAME",
        "_get_file_names": "opdock.contrib.learn.io:file_names",
        "queue_parsed_features": "opdock.contrib.learn.io:queue_parsed_features",
    },
    "contrib.learn.python.learn.utils.input_fn_utils": {
        "build_default_serving_input_fn": (
            "opdock.contrib.learn.exporting:build_default_serving_input_fn"
        ),
    },
    "contrib.learn.python.learn.utils.gc": {
        "Path": "opdock.contrib.learn.exporting:ExportPath",
        **{
            name: f"opdock.contrib.learn.export_choices:{name}"
            for name in (
                "get_paths",
                "largest_export_versions",
                "mod_export_version",
                "negation",
                "one_of_every_n_export_versions",
                "union",
            )
        },
    },
    "contrib.learn.python.learn.utils.saved_model_export_utils": {
        **{
            name: f"opdock.contrib.learn.export_choices:{name}"
            for name in (
                "BestModelSelector",
                "extend_export_strategy",
                "make_best_model_export_strategy",
            )
        },
        **{
            name: f"opdock.contrib.learn.exporting:{name}"
            for name in (
                "DEFAULT_INPUT_ALTERNATIVE_KEY",
                "FEATURES_INPUT_ALTERNATIVE_KEY",
                "build_all_signature_defs",
                "build_standardized_signature_def",
                "garbage_collect_exports",
                "get_input_alternatives",
                "get_most_recent_export",
                "get_output_alternatives",
                "get_temp_export_dir",
                "get_timestamped_export_dir",
                "make_parsing_export_strategy",
            )
        },
    },
    "contrib.learn.python.learn.monitored_session": _of_train(
        "ChiefSessionCreator",
        "MonitoredSession",
        "Scaffold",
        "SessionCreator",
        "WorkerSessionCreator",
    ),
    "contrib.learn.python.learn.session_run_hook": _of_train(
        "SessionRunArgs",
        "SessionRunContext",
        "SessionRunHook",
        "SessionRunValues",
    ),
    "contrib.learn.python.learn.summary_writer_cache": {
        "SummaryWriterCache": "opdock:summary.FileWriterCache",
    },
    **{
        f"contrib.predictor.{module}_predictor": {
            f"{name}Predictor": f"opdock.contrib.predictor:{name}Predictor"
        }
        for module, name in (
            ("contrib_estimator", "ContribEstimator"),
            ("core_estimator", "CoreEstimator"),
            ("saved_model", "SavedModel"),
        )
    },
    "contrib.quantize.python.common": {
        "BatchNormGroups": "opdock.contrib.quantize.wiring:batch_norm_groups",
        "CreateOrGetQuantizationStep": "opdock.contrib.quantize.wiring:quantization_step",
        "RerouteTensor": "opdock.contrib.quantize.wiring:reroute",
    },
    "contrib.quantize.python.fold_batch_norms": {
        "FoldBatchNorms": "opdock.contrib.quantize.rewrites:fold_batch_norms",
    },
    "contrib.quantize.python.graph_matcher": {
        name: f"opdock.contrib.quantize.graph_matcher:{name}"
        for name in ("GraphMatcher", "MatchResult", "OneofPattern", "OpTypePattern", "Pattern")
    },
    "contrib.quantize.python.input_to_ops": {
        "InputToOps": "opdock.contrib.quantize.input_to_ops:InputToOps",
    },
    "contrib.quantize.python.quant_ops": {
        "FixedQuantize": "opdock.contrib.quantize.ranges:fixed_quantize",
        "LastValueQuantize": "opdock.contrib.quantize.ranges:last_value_quantize",
        "MovingAvgQuantize": "opdock.contrib.quantize.ranges:moving_average_quantize",
    },
    "contrib.quantize.python.quantize": {
        "Quantize": "opdock.contrib.quantize.insertion:quantize",
    },
    "contrib.rnn": {
        "static_rnn": "opdock:nn.static_rnn",
        "static_bidirectional_rnn": "opdock:nn.static_bidirectional_rnn",
        "static_state_saving_rnn": "opdock:nn.static_state_saving_rnn",
    },
    "contrib.rnn.python.ops.core_rnn_cell": {
        "_Linear": "opdock.contrib.rnn.linear:Linear",
        "_linear": "opdock.contrib.rnn.linear:linear",
    },
    "contrib.rnn.python.ops.rnn_cell": {
        "NTMControllerState": "opdock.contrib.rnn.turing:NTMControllerState",
    },
    "contrib.seq2seq.python.ops.attention_wrapper": {
        "_BaseAttentionMechanism": "opdock.contrib.seq2seq.attention_base:BaseAttentionMechanism",
        "_BaseMonotonicAttentionMechanism": (
            "opdock.contrib.seq2seq.attention_base:BaseMonotonicAttentionMechanism"
        ),
        "_bahdanau_score": "opdock.contrib.seq2seq.attention:bahdanau_score",
        "_compute_attention": "opdock.contrib.seq2seq.attention_wrapper:compute_attention",
        "_luong_score": "opdock.contrib.seq2seq.attention:luong_score",
        "_maybe_mask_score": "opdock.contrib.seq2seq.attention_base:mask_score",
        "_monotonic_probability_fn": "opdock.contrib.seq2seq.attention_base:monotonic_probability",
        "_prepare_memory": "opdock.contrib.seq2seq.attention_base:prepare_memory",
        "_zero_state_tensors": "opdock.layers.rnn_base:zero_states",
    },
    "contrib.seq2seq.python.ops.beam_search_decoder": {
        "_beam_search_step": "opdock.contrib.seq2seq.beam_step:beam_search_step",
        "_check_batch_beam": "opdock.contrib.seq2seq.beam_paths:check_beams",
        "_check_static_batch_beam_maybe": "opdock.contrib.seq2seq.beam_paths:may_have_beams",
        "_length_penalty": "opdock.contrib.seq2seq.beam_step:length_penalty",
        "_mask_probs": "opdock.contrib.seq2seq.beam_step:mask_probs",
    },
    "contrib.seq2seq.python.ops.decoder": {
        "_transpose_batch_time": "opdock.layers.rnn:transpose_batch_time",
        "_zero_state_tensors": "opdock.layers.rnn_base:zero_states",
    },
    "contrib.seq2seq.python.ops.helper": {
        "bernoulli_sample": "opdock.contrib.seq2seq.helpers:bernoulli_sample",
        "categorical_sample": "opdock.contrib.seq2seq.helpers:categorical_sample",
    },
    "contrib.text.python.ops.skip_gram_ops": {
        "_filter_input": "opdock.contrib.text:filter_input",
    },
    "contrib.training.python.training.sequence_queueing_state_saver": {
        "_SequenceInputWrapper": (
            "opdock.contrib.training.sequence_queueing_state_saver:SequenceInput"
        ),
        "_padding": "opdock.contrib.training.batch_sequences:padding",
    },
    "contrib.tensorboard.plugins.projector": {
        "EmbeddingInfo": "tensorboard.plugins.projector.projector_config_pb2:EmbeddingInfo",
        "ProjectorConfig": "tensorboard.plugins.projector.projector_config_pb2:ProjectorConfig",
        "SpriteMetadata": "tensorboard.plugins.projector.projector_config_pb2:SpriteMetadata",
        "visualize_embeddings": "opdock.summary.projector:visualize_embeddings",
    },
    "contrib.stateless": {
        **{
            f"stateless_{name}": f"opdock:random.stateless_{where}"
            for name, where in {
                "categorical": "categorical",
                "random_normal": "normal",
                "random_uniform": "uniform",
                "truncated_normal": "truncated_normal",
            }.items()
        },
    },
}
