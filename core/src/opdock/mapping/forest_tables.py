"""Where the names of `tf.contrib.tensor_forest`'s modules are in opdock: as data."""

from __future__ import annotations

from typing import Final

_FOREST: Final = "opdock.contrib.tensor_forest"
_CLIENT: Final = "contrib.tensor_forest.client"
_PYTHON: Final = "contrib.tensor_forest.python"

# Internal module -> opdock's modules.
FOREST_SOURCES: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(
        (
            "contrib.decision_trees.proto.generic_tree_model_extensions_pb2",
            "contrib.decision_trees.proto.generic_tree_model_pb2",
            "contrib.tensor_forest.proto.fertile_stats_pb2",
            "contrib.tensor_forest.proto.tensor_forest_params_pb2",
        ),
        ("opdock.io.forest_messages",),
    ),
    f"{_CLIENT}.eval_metrics": (f"{_FOREST}.eval_metrics",),
    f"{_CLIENT}.random_forest": (f"{_FOREST}.estimators", f"{_FOREST}.models"),
    f"{_PYTHON}.ops.data_ops": (f"{_FOREST}.inputs",),
    f"{_PYTHON}.ops.model_ops": (f"{_FOREST}.resources",),
    f"{_PYTHON}.ops.stats_ops": (f"{_FOREST}.resources",),
    f"{_PYTHON}.tensor_forest": (f"{_FOREST}.hparams", f"{_FOREST}.graphs"),
}

# Internal module -> name -> "module:name" of opdock.
FOREST_NAMES: Final[dict[str, dict[str, str]]] = {
    f"{_CLIENT}.eval_metrics": {
        "_accuracy": f"{_FOREST}.eval_metrics:accuracy",
        "_top_k_generator": f"{_FOREST}.eval_metrics:top_k",
    },
    f"{_CLIENT}.random_forest": {
        "CoreTensorForestEstimator": f"{_FOREST}.core_estimator:CoreTensorForestEstimator",
        "get_combined_model_fn": f"{_FOREST}.estimators:combined_model_fn",
        "get_model_fn": f"{_FOREST}.estimators:model_fn_of_forest",
    },
    f"{_PYTHON}.ops.data_ops": {
        "CastToFloat": f"{_FOREST}.inputs:as_floats",
        "GetColumnName": f"{_FOREST}.inputs:column_name",
        "ParseDataTensorOrDict": f"{_FOREST}.inputs:parsed_features",
        "ParseLabelTensorOrDict": f"{_FOREST}.inputs:parsed_labels",
    },
}
