"""`tf.saved_model.constants`: the files of a SavedModel, and the keys inside it."""

from __future__ import annotations

from typing import Final

ASSETS_DIRECTORY: Final = "assets"
EXTRA_ASSETS_DIRECTORY: Final = "assets.extra"
ASSETS_KEY: Final = "saved_model_assets"
LEGACY_INIT_OP_KEY: Final = "legacy_init_op"
MAIN_OP_KEY: Final = "saved_model_main_op"
TRAIN_OP_KEY: Final = "saved_model_train_op"
SAVED_MODEL_SCHEMA_VERSION: Final = 1
SAVED_MODEL_FILENAME_PB: Final = "saved_model.pb"
SAVED_MODEL_FILENAME_PBTXT: Final = "saved_model.pbtxt"
SAVED_MODEL_FILENAME_JSON: Final = "saved_model.json"
VARIABLES_DIRECTORY: Final = "variables"
VARIABLES_FILENAME: Final = "variables"
# Signatures that name the initialization and the training op of a meta graph.
INIT_OP_SIGNATURE_KEY: Final = "__saved_model_init_op"
TRAIN_OP_SIGNATURE_KEY: Final = "__saved_model_train_op"
