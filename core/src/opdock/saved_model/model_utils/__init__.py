"""What models of estimators and Keras become in a SavedModel."""

from __future__ import annotations

from opdock.saved_model.model_utils.export_output import (
    ClassificationOutput,
    EvalOutput,
    ExportOutput,
    PredictOutput,
    RegressionOutput,
    TrainOutput,
)
from opdock.saved_model.model_utils.export_utils import (
    EXPORT_TAG_MAP,
    SIGNATURE_KEY_MAP,
    build_all_signature_defs,
    export_outputs_for_mode,
    get_export_outputs,
    get_temp_export_dir,
    get_timestamped_export_dir,
)

__all__ = [
    "EXPORT_TAG_MAP",
    "SIGNATURE_KEY_MAP",
    "ClassificationOutput",
    "EvalOutput",
    "ExportOutput",
    "PredictOutput",
    "RegressionOutput",
    "TrainOutput",
    "build_all_signature_defs",
    "export_outputs_for_mode",
    "get_export_outputs",
    "get_temp_export_dir",
    "get_timestamped_export_dir",
]
