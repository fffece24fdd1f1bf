"""From a model's results to the signatures and the folder of an export."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any, Final

from opdock.api import gfile, logging
from opdock.compat import as_bytes
from opdock.saved_model import signature_constants, signature_def_utils, tag_constants
from opdock.saved_model.model_utils import mode_keys
from opdock.saved_model.model_utils.export_output import (
    EvalOutput,
    ExportOutput,
    PredictOutput,
    TrainOutput,
)

EXPORT_TAG_MAP: Final = mode_keys.ModeKeyMap(
    predict=[tag_constants.SERVING], train=[tag_constants.TRAINING], test=[tag_constants.EVAL]
)
SIGNATURE_KEY_MAP: Final = mode_keys.ModeKeyMap(
    predict=signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY,
    train=signature_constants.DEFAULT_TRAIN_SIGNATURE_DEF_KEY,
    test=signature_constants.DEFAULT_EVAL_SIGNATURE_DEF_KEY,
)
SINGLE_FEATURE_DEFAULT_NAME: Final = "feature"
SINGLE_RECEIVER_DEFAULT_NAME: Final = "input"
SINGLE_LABEL_DEFAULT_NAME: Final = "label"
_SERVING: Final = signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY
_TRIES: Final = 10  # folders of exports are named by the second


def build_all_signature_defs(
    receiver_tensors: Any,
    export_outputs: Any,
    receiver_tensors_alternatives: Mapping[str, Any] | None = None,
    serving_only: bool = True,
) -> dict[str, Any]:
    """The signatures of all results, from the inputs and from each alternative to them.

    What has no signature (a classification of inputs that are no serialized examples) is left out
    and logged.

    Args:
        receiver_tensors: the inputs, a tensor or tensors by name.
        export_outputs: name -> ExportOutput.
        receiver_tensors_alternatives: name -> other inputs; their signatures are "name:output".
        serving_only: leave out what cannot be served, as training steps.

    Raises:
        ValueError: `export_outputs` is no dictionary.
    """
    if not isinstance(export_outputs, dict):
        raise ValueError(f"export_outputs must be a dict and not{type(export_outputs)}")
    inputs = {"": receiver_tensors}
    for name, tensors in (receiver_tensors_alternatives or {}).items():
        inputs[f"{name or 'None'}:"] = tensors
    made: dict[str, Any] = {}
    for prefix, tensors in inputs.items():
        received = tensors if isinstance(tensors, dict) else {SINGLE_RECEIVER_DEFAULT_NAME: tensors}
        for key, output in export_outputs.items():
            name = f"{prefix}{key or 'None'}"
            try:
                made[name] = output.as_signature_def(received)
            except ValueError as error:
                logging.info("Signature %r is left out of the export: %s", name, error)
    if _SERVING not in made:
        logging.warning("The export has no default signature (%s)", _SERVING)
    if not serving_only:
        return made
    return {k: v for k, v in made.items() if signature_def_utils.is_valid_signature(v)}


def get_timestamped_export_dir(export_dir_base: Any) -> bytes:
    """A folder below `export_dir_base` that does not exist yet, named by the seconds since 1970.

    Raises:
        RuntimeError: every second tried was taken.
    """
    for _ in range(_TRIES):
        folder = os.path.join(as_bytes(export_dir_base), as_bytes(str(int(time.time()))))
        if not gfile.Exists(folder):
            return folder
        logging.warning("The folder %s exists already: another second is tried", folder)
        time.sleep(1)
    raise RuntimeError(f"Failed to obtain a unique export directory name after {_TRIES} attempts.")


def get_temp_export_dir(timestamped_export_dir: Any) -> bytes:
    """The folder beside an export in which it is written before it is renamed."""
    folder, name = os.path.split(as_bytes(timestamped_export_dir))
    return os.path.join(folder, b"temp-" + name)


def export_outputs_for_mode(
    mode: Any,
    serving_export_outputs: Any = None,
    predictions: Any = None,
    loss: Any = None,
    metrics: Any = None,
) -> dict[str, ExportOutput]:
    """What an export offers for a mode: the results served, or those of a step.

    Raises:
        ValueError: the mode is none.
        TypeError: `serving_export_outputs` are no export outputs.
    """
    key = SIGNATURE_KEY_MAP[mode]
    if mode_keys.is_predict(mode):
        return get_export_outputs(serving_export_outputs, predictions)
    kind = TrainOutput if mode_keys.is_train(mode) else EvalOutput
    return {key: kind(loss=loss, predictions=predictions, metrics=metrics)}


def get_export_outputs(export_outputs: Any, predictions: Any) -> dict[str, ExportOutput]:
    """The results served, one of them under the default's name.

    Args:
        export_outputs: name -> ExportOutput, or None for the predictions as they are.
        predictions: a tensor, or tensors by name.

    Raises:
        TypeError: something is no ExportOutput.
        ValueError: of several results none is the default.
    """
    if export_outputs is None:
        export_outputs = {_SERVING: PredictOutput(predictions)}
    if not isinstance(export_outputs, dict):
        raise TypeError(f"export_outputs must be dict, given: {export_outputs}")
    if not all(isinstance(value, ExportOutput) for value in export_outputs.values()):
        raise TypeError(
            f"Values in export_outputs must be ExportOutput objects. Given: {export_outputs}"
        )
    if _SERVING not in export_outputs:
        if len(export_outputs) > 1:
            raise ValueError(
                "Multiple export_outputs were provided, but none of them is specified as the "
                "default.  Do this by naming one of them with "
                "signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY."
            )
        (export_outputs[_SERVING],) = export_outputs.values()
    return export_outputs
