"""Where the modules of tf.keras, public and internal, are in the library tf_keras: as data."""

from __future__ import annotations

from typing import Final

_V1: Final = "tf_keras.api._v1.keras"
_V2: Final = "tf_keras.api._v2.keras"
_SRC: Final = "tf_keras.src"

# Module of TensorFlow's below python.keras -> those of tf_keras that have its names, which moved.
_MOVED: Final[dict[str, str]] = {
    "engine.base_layer": "engine.base_layer engine.base_layer_v1",
    "engine.base_preprocessing_layer_v1": "engine.base_preprocessing_layer",
    "engine.network": "engine.functional engine.functional_utils utils.layer_utils engine.training",
    "engine.saving": "saving.legacy.save saving.legacy.hdf5_format",
    "engine.training": "engine.training_v1 engine.training",
    "engine.training_arrays": "engine.training_arrays_v1",
    "engine.training_distributed": "engine.training_distributed_v1",
    "engine.training_eager": "engine.training_eager_v1",
    "engine.training_generator": "engine.training_generator_v1",
    "engine.training_utils": "engine.training_utils_v1 engine.training_utils",
    "initializers": "initializers.initializers_v1 initializers",
    "layers": "@layers layers layers.rnn.legacy_cells layers.rnn.rnn_utils",
    "layers.advanced_activations": "layers.activation",
    "layers.convolutional": "@layers layers.convolutional layers.reshaping",
    "layers.convolutional_recurrent": (
        "layers layers.rnn layers.rnn.base_conv_rnn layers.rnn.base_conv_lstm "
        "layers.rnn.conv_lstm2d"
    ),
    "layers.core": (
        "layers.core layers.regularization layers.reshaping layers.core.tf_op_layer layers"
    ),
    "layers.cudnn_recurrent": (
        "layers.rnn.cudnn_gru layers.rnn.cudnn_lstm layers.rnn.base_cudnn_rnn"
    ),
    "layers.dense_attention": "layers.attention layers.attention.base_dense_attention",
    "layers.embeddings": "layers.core.embedding",
    "layers.local": "layers.locally_connected layers.locally_connected.locally_connected_utils",
    "layers.merge": "layers.merging layers.merging.base_merge",
    "layers.noise": "layers.regularization",
    "layers.normalization": (
        "layers.normalization.batch_normalization_v1 layers.normalization.layer_normalization "
        "layers.normalization.batch_normalization"
    ),
    "layers.normalization_v2": "layers.normalization.batch_normalization",
    "layers.recurrent": (
        "@layers layers.rnn layers.rnn.base_rnn layers.rnn.rnn_utils "
        "layers.rnn.dropout_rnn_cell_mixin layers.rnn.gru layers.rnn.lstm layers.rnn.simple_rnn "
        "layers.rnn.stacked_rnn_cells"
    ),
    "layers.recurrent_v2": "layers.rnn.gru layers.rnn.lstm layers.rnn.gru_lstm_utils",
    "layers.rnn_cell_wrapper_v2": "layers.rnn.cell_wrappers",
    "layers.wrappers": "layers.rnn layers.rnn.base_wrapper",
    "losses": "losses @losses",
    "metrics": "metrics @metrics metrics.base_metric utils.metrics_utils",
    "mixed_precision.experimental": "mixed_precision",
    "models": "models @models models.cloning",
    "optimizer_v2": "optimizers.legacy",
    "optimizer_v2.learning_rate_schedule": "optimizers.schedules.learning_rate_schedule",
    "optimizers": "@optimizers optimizers.optimizer_v1 optimizers",
    "optimizer_v2.gradient_descent": "optimizers.legacy.gradient_descent",
    "premade": "premade_models",
    "saving": "saving.legacy.save saving.legacy.model_config saving.legacy.hdf5_format",
    "saving.hdf5_format": "saving.legacy.hdf5_format",
    "saving.model_config": "saving.legacy.model_config",
    "saving.save": "saving.legacy.save",
    "saving.saved_model": "saving.legacy.saved_model",
    "saving.saved_model_experimental": "saving.legacy.saved_model_experimental",
    "saving.saving_utils": "saving.legacy.saving_utils",
    "testing_utils": "testing_infra.test_utils",
    "utils": "@utils utils",
    "utils.generic_utils": (
        "utils.generic_utils saving.object_registration saving.legacy.serialization"
    ),
    "utils.multi_gpu_utils": "utils.multi_gpu_utils",
    "utils.tf_utils": "utils.tf_utils utils.tf_contextlib utils.control_flow_util",
    "utils.vis_utils": "utils.vis_utils",
}


def _place(modules: str) -> tuple[str, ...]:
    """The package and the modules; `@name` is tf_keras's public module of version 1's interface."""
    found = tuple(
        f"{_V1}.{m.removeprefix('@')}" if m.startswith("@") else f"{_SRC}.{m}"
        for m in modules.split()
    )
    package = next((m for m in found if m.startswith(_SRC)), found[0])
    return (package, *found)


# Path of TensorFlow's -> the package below which its modules are, and the modules with its names.
PLACES: Final[dict[str, tuple[str, ...]]] = {
    "keras": (_V1, _V1),
    "compat.v2.keras": (_V2, _V2),
    # TensorFlow 2's own names of parts of Keras.
    **{f"compat.v2.{part}": (f"{_V2}.{part}",) * 2 for part in ("losses", "metrics", "optimizers")},
    "python.keras": (_SRC, _V1),
    **{f"python.keras.{path}": _place(modules) for path, modules in _MOVED.items()},
    # Layers of Keras, as in TensorFlow. The variables of the second have the names of name scopes.
    **{
        f"python.feature_column.{module}": (f"{_SRC}.feature_column.{module}",) * 2
        for module in ("dense_features", "dense_features_v2", "sequence_feature_column")
    },
}

# Names of tf.keras that tf_keras no longer has, or has under another name: "module:name".
ELSEWHERE: Final[dict[str, str]] = {
    # A graph of layers without training; today it is a model that nobody trains.
    "python.keras.engine.network.Network": f"{_V1}:Model",
    **dict.fromkeys(
        (
            "compat.v2.keras.experimental.PeepholeLSTMCell",
            "keras.experimental.PeepholeLSTMCell",
            "python.keras.layers.recurrent.PeepholeLSTMCell",
        ),
        "opdock.keras_base.peephole:PeepholeLSTMCell",
    ),
    **{
        f"{module}.{name}": f"opdock.keras_base.exporting:{name}"
        for module in ("keras.experimental", "python.keras.saving.saved_model_experimental")
        for name in ("export_saved_model", "load_from_saved_model")
    },
}
