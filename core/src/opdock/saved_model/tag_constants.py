"""`tf.saved_model.tag_constants`: tags by which the meta graphs of a SavedModel are told apart."""

from __future__ import annotations

from typing import Final

SERVING: Final = "serve"
TRAINING: Final = "train"
EVAL: Final = "eval"
GPU: Final = "gpu"
TPU: Final = "tpu"
