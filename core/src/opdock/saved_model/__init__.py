"""`tf.saved_model`: graphs with their variables, assets and signatures, in TF's directory format.

A SavedModel is there once its `saved_model.pb` is, which is written last and in one step; what it
refers to, variables and assets, is complete by then.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_CONSTANTS = (
    "ASSETS_DIRECTORY ASSETS_KEY LEGACY_INIT_OP_KEY MAIN_OP_KEY SAVED_MODEL_FILENAME_PB"
    " SAVED_MODEL_FILENAME_PBTXT SAVED_MODEL_SCHEMA_VERSION VARIABLES_DIRECTORY VARIABLES_FILENAME"
)
_SIGNATURE_CONSTANTS = (
    "CLASSIFY_INPUTS CLASSIFY_METHOD_NAME CLASSIFY_OUTPUT_CLASSES CLASSIFY_OUTPUT_SCORES"
    " DEFAULT_SERVING_SIGNATURE_DEF_KEY PREDICT_INPUTS PREDICT_METHOD_NAME PREDICT_OUTPUTS"
    " REGRESS_INPUTS REGRESS_METHOD_NAME REGRESS_OUTPUTS"
)
# Module -> the public names that it gives to tf.saved_model.
_WHERE: dict[str, str] = {
    "constants": _CONSTANTS,
    "signature_constants": _SIGNATURE_CONSTANTS,
    "tag_constants": "GPU SERVING TPU TRAINING",
    "builder": "Builder",
    "imported": "load_v2",
    "loader": "contains_saved_model load maybe_saved_model_directory",
    "main_op": "main_op_with_restore",
    "signature_def_utils": (
        "build_signature_def classification_signature_def is_valid_signature"
        " predict_signature_def regression_signature_def"
    ),
    "object_saving": "save",
    "simple": "simple_save",
    "utils": "build_tensor_info get_tensor_from_tensor_info",
}
_NAMES = {name: module for module, names in _WHERE.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    where = _NAMES.get(name)
    if where is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{where}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_NAMES})
