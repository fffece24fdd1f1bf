"""How tf.keras of TensorFlow 1.13 to 1.15 exported models: a graph each for what is done with one.

The graphs share one checkpoint of the model's objects, and the model's structure stands beside them
as JSON, so that it can be made again.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from typing import Any, Final

from tf_keras.src import backend
from tf_keras.src.engine.sequential import Sequential
from tf_keras.src.models.cloning import clone_and_build_model
from tf_keras.src.optimizers import TFOptimizer
from tf_keras.src.optimizers.legacy.optimizer_v2 import OptimizerV2
from tf_keras.src.saving.legacy import saving_utils
from tf_keras.src.saving.legacy.model_config import model_from_json

from opdock.api import logging
from opdock.graph.nodes.collections import GraphKeys
from opdock.graph.nodes.graph import Graph
from opdock.graph.variables.variable_lists import local_variables_initializer
from opdock.io.files import as_path, make_directories, read_file, write_file
from opdock.ops.identity import placeholder
from opdock.saved_model import model_utils, utils
from opdock.saved_model.builder import _SavedModelBuilder
from opdock.saved_model.model_utils.mode_keys import KerasModeKeys
from opdock.saved_model.object_saving import save
from opdock.train.saver import Saver
from opdock.train.tracking.object_graph import ObjectGraphView
from opdock.util import nest

__all__ = ["export_saved_model", "load_from_saved_model"]

_STRUCTURE: Final = "saved_model.json"
_Mode = KerasModeKeys


def export_saved_model(
    model: Any, saved_model_path: Any, custom_objects: Mapping[str, Any] | None = None,
    as_text: bool = False, input_signature: Any = None, serving_only: bool = False,
) -> None:  # fmt: skip
    """Writes a model of tf.keras as a SavedModel: a meta graph each for what can be done with it.

    A model with an optimizer is written for training, evaluation and serving, any other for serving
    alone. `load_from_saved_model` makes the model again.

    Args:
        model: the model, whose inputs are known.
        saved_model_path: the directory, which must not be there or be empty.
        custom_objects: classes and functions by the names that the model's structure has for them.
        as_text: write the message as text.
        input_signature: specs of the inputs, where the model does not tell.
        serving_only: write it as `tf.saved_model.save` does; for models that are classes.

    Raises:
        NotImplementedError: the model is a class of its own, and not for serving only.
        ValueError: the inputs of a sequential model are not known.
        AssertionError: the directory holds files.
    """
    path = as_path(saved_model_path)
    if serving_only:
        save(model, path, signatures=saving_utils.trace_model_call(model, input_signature))
        return
    if not model._is_graph_network:
        if not isinstance(model, Sequential):
            raise NotImplementedError(
                "Subclassed models can only be exported for serving. Please set argument "
                "serving_only=True."
            )
        if not model.built:
            raise ValueError(
                "Input tensor shapes have not been defined for the sequential model: build or "
                "train it before it is exported."
            )
    builder = _SavedModelBuilder(path)
    utils.get_or_create_variables_dir(path)
    model.save_weights(utils.get_variables_path(path), save_format="tf", overwrite=True)
    modes = [_Mode.TRAIN, _Mode.TEST] if model.optimizer else []
    if model.optimizer and not _is_exported(model.optimizer):
        logging.warning(
            "The model's optimizer is none of tf.train or tf.keras.optimizers: only the graph for "
            "serving is exported."
        )
        modes = []
    builder._has_saved_variables = True
    for number, mode in enumerate([*modes, _Mode.PREDICT]):
        _add(builder, mode, model, path, custom_objects, input_signature, is_first=number == 0)
    builder.save(as_text)
    assets = os.path.join(path, "assets")
    make_directories(assets)
    write_file(os.path.join(assets, _STRUCTURE), model.to_json().encode())


def load_from_saved_model(
    saved_model_path: Any, custom_objects: Mapping[str, Any] | None = None
) -> Any:
    """The model of tf.keras that `export_saved_model` wrote; it is not compiled.

    Args:
        saved_model_path: the directory.
        custom_objects: classes and functions by the names that the model's structure has for them.

    Raises:
        NotFoundError: the directory has no model's structure.
        ValueError: the structure names a class that is not known.
    """
    path = as_path(saved_model_path)
    structure = read_file(os.path.join(path, "assets", _STRUCTURE)).decode()
    model = model_from_json(structure, custom_objects)
    model.load_weights(utils.get_variables_path(path)).expect_partial()
    return model


def _is_exported(optimizer: Any) -> bool:
    return isinstance(optimizer, (TFOptimizer, OptimizerV2))


def _add(
    builder: Any, mode: Any, model: Any, path: str, custom_objects: Any, signature: Any,
    is_first: bool,
) -> None:  # fmt: skip
    """Adds the meta graph of a mode: of a copy of the model, in a graph and session of its own."""
    runtime: Any = importlib.import_module("opdock")
    # Its numbers are variables of the model's own graph and session.
    trained_by = model.optimizer if mode != _Mode.PREDICT else None
    config = trained_by.get_config() if isinstance(trained_by, OptimizerV2) else None
    phase = backend.deprecated_internal_learning_phase_scope(int(mode == _Mode.TRAIN))
    with Graph().as_default() as graph, phase, runtime.Session().as_default():
        given = None if signature is None else nest.map_structure(_as_placeholder, signature)
        copy = clone_and_build_model(
            model, input_tensors=given, custom_objects=custom_objects,
            compile_clone=mode != _Mode.PREDICT, optimizer_config=config,
        )  # fmt: skip
        trains = None
        if mode == _Mode.TRAIN:
            graph.add_to_collection(GraphKeys.GLOBAL_STEP, copy.optimizer.iterations)
            copy._make_train_function()
            trains = copy.train_function.updates_op
        elif mode == _Mode.TEST:
            copy._make_test_function()
        else:
            copy._make_predict_function()
        graph.get_collection_ref(GraphKeys.UPDATE_OPS).extend(copy.state_updates)
        checkpoint = utils.get_variables_path(path)
        copy.load_weights(checkpoint).assert_existing_objects_matched()
        if is_first:
            # The copy's optimizer may have slots that a model which never trained lacks.
            copy.save_weights(checkpoint, save_format="tf", overwrite=True)
        builder.add_meta_graph(
            model_utils.EXPORT_TAG_MAP[mode], _signatures(copy, mode),
            init_op=local_variables_initializer(), train_op=trains,
            saver=Saver(ObjectGraphView(copy).frozen_saveable_objects()),
        )  # fmt: skip


def _as_placeholder(spec: Any) -> Any:
    return placeholder(spec.dtype, spec.shape, name=spec.name)


def _signatures(model: Any, mode: Any) -> dict[str, Any]:
    """What a model takes and gives in a mode; its metrics become local variables."""
    inputs = dict(zip(model.input_names, model.inputs, strict=True))
    if model.optimizer:
        inputs |= {t.name.partition(":")[0]: t for t in model._targets if t is not None}
    outputs = dict(zip(model.output_names, model.outputs, strict=True))
    metrics = saving_utils.extract_model_metrics(model)
    if mode != _Mode.PREDICT:
        local = model.outputs[0].graph.get_collection_ref(GraphKeys.LOCAL_VARIABLES)
        for metric in (metrics or {}).values():
            local.extend(v for v in metric.variables if not any(v is one for one in local))
    exported = model_utils.export_outputs_for_mode(
        mode, predictions=outputs, loss=model.total_loss if model.optimizer else None,
        metrics=metrics,
    )  # fmt: skip
    return model_utils.build_all_signature_defs(
        inputs, export_outputs=exported, serving_only=mode == _Mode.PREDICT
    )
