"""`tf.saved_model.simple_save`: a model for serving in one call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opdock.graph.nodes.collections import GraphKeys, get_collection
from opdock.saved_model import signature_constants, tag_constants
from opdock.saved_model.builder import SavedModelBuilder
from opdock.saved_model.signature_def_utils import predict_signature_def

__all__ = ["simple_save"]


def simple_save(
    session: Any, export_dir: Any, inputs: Mapping[str, Any], outputs: Mapping[str, Any],
    legacy_init_op: Any = None,
) -> None:  # fmt: skip
    """Writes the session's graph and variables as a SavedModel that serves predictions.

    Args:
        session: the session that holds the variables.
        export_dir: where; a directory that does not exist or is empty.
        inputs: tensors by the names that callers use.
        outputs: tensors by the names that callers use.
        legacy_init_op: op to run after the variables are restored.

    Raises:
        AssertionError: the directory holds something.
        ValueError: there are no inputs or no outputs.
    """
    key = signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY
    signatures = {key: predict_signature_def(inputs, outputs)}
    builder = SavedModelBuilder(export_dir)
    builder.add_meta_graph_and_variables(
        session, tags=[tag_constants.SERVING], signature_def_map=signatures,
        assets_collection=get_collection(GraphKeys.ASSET_FILEPATHS), main_op=legacy_init_op,
        clear_devices=True,
    )  # fmt: skip
    builder.save()
