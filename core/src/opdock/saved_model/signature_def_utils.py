"""`tf.saved_model.signature_def_utils`: signatures, which name a graph's inputs and outputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opdock import dtypes, errors
from opdock.dtypes import DType
from opdock.graph.nodes.operation import Tensor
from opdock.io import protos
from opdock.saved_model import signature_constants as names
from opdock.saved_model.utils import (
    build_tensor_info,
    build_tensor_info_from_op,
    get_element_from_tensor_info,
)

__all__ = [
    "build_signature_def", "classification_signature_def", "is_valid_signature",
    "load_op_from_signature_def", "op_signature_def", "predict_signature_def",
    "regression_signature_def", "supervised_eval_signature_def", "supervised_train_signature_def",
]  # fmt: skip


def build_signature_def(
    inputs: Mapping[str, Any] | None = None, outputs: Mapping[str, Any] | None = None,
    method_name: str | None = None,
) -> Any:  # fmt: skip
    """Builds a `SignatureDef`.

    Args:
        inputs: `TensorInfo`s by name.
        outputs: `TensorInfo`s by name.
        method_name: what a server calls, e.g. "tensorflow/serving/predict".

    Returns:
        The `SignatureDef`.
    """
    signature = protos.SignatureDef()
    for name, info in (inputs or {}).items():
        signature.inputs[name].CopyFrom(info)
    for name, info in (outputs or {}).items():
        signature.outputs[name].CopyFrom(info)
    if method_name is not None:
        signature.method_name = method_name
    return signature


def regression_signature_def(examples: Any, predictions: Any) -> Any:
    """Builds the signature of a regression.

    Args:
        examples: string `Tensor` of serialized Examples.
        predictions: float `Tensor`.

    Returns:
        A `SignatureDef`.

    Raises:
        ValueError: a tensor is None or of another type.
    """
    inputs = {names.REGRESS_INPUTS: _examples(examples, "Regression")}
    if predictions is None:
        raise ValueError("Regression predictions cannot be None.")
    outputs = {names.REGRESS_OUTPUTS: _typed(predictions, dtypes.float32, "Regression output")}
    return build_signature_def(inputs, outputs, names.REGRESS_METHOD_NAME)


def classification_signature_def(examples: Any, classes: Any, scores: Any) -> Any:
    """Builds the signature of a classification.

    Args:
        examples: string `Tensor` of serialized Examples.
        classes: string `Tensor`, or None.
        scores: float `Tensor`, or None.

    Returns:
        A `SignatureDef`.

    Raises:
        ValueError: both outputs are None, or a tensor is of another type.
    """
    if examples is not None and isinstance(examples, Tensor) and classes is None is scores:
        raise ValueError("Classification classes and scores cannot both be None.")
    inputs = {names.CLASSIFY_INPUTS: _examples(examples, "Classification")}
    outputs = {}
    if classes is not None:
        info = _typed(classes, dtypes.string, "Classification classes")
        outputs[names.CLASSIFY_OUTPUT_CLASSES] = info
    if scores is not None:
        info = _typed(scores, dtypes.float32, "Classification scores")
        outputs[names.CLASSIFY_OUTPUT_SCORES] = info
    return build_signature_def(inputs, outputs, names.CLASSIFY_METHOD_NAME)


def predict_signature_def(inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> Any:
    """Builds the signature of a prediction.

    Args:
        inputs: tensors by name.
        outputs: tensors by name.

    Returns:
        A `SignatureDef`.

    Raises:
        ValueError: there are no inputs or no outputs.
    """
    for what, given in (("inputs", inputs), ("outputs", outputs)):
        if not given:
            raise ValueError(f"Prediction {what} cannot be None or empty.")
    return build_signature_def(_infos(inputs), _infos(outputs), names.PREDICT_METHOD_NAME)


def supervised_train_signature_def(
    inputs: Mapping[str, Any], loss: Mapping[str, Any] | None,
    predictions: Mapping[str, Any] | None = None, metrics: Mapping[str, Any] | None = None,
) -> Any:  # fmt: skip
    """Builds the signature of a training step, of tensors by name; ValueError without inputs."""
    return _supervised(names.SUPERVISED_TRAIN_METHOD_NAME, inputs, loss, predictions, metrics)


def supervised_eval_signature_def(
    inputs: Mapping[str, Any], loss: Mapping[str, Any] | None,
    predictions: Mapping[str, Any] | None = None, metrics: Mapping[str, Any] | None = None,
) -> Any:  # fmt: skip
    """Builds the signature of an evaluation, of tensors by name; ValueError without inputs."""
    return _supervised(names.SUPERVISED_EVAL_METHOD_NAME, inputs, loss, predictions, metrics)


def _supervised(method: str, inputs: Mapping[str, Any], *outputs: Mapping[str, Any] | None) -> Any:
    if not inputs:
        raise ValueError(f"{method} inputs cannot be None or empty.")
    found = {name: tensor for given in outputs for name, tensor in (given or {}).items()}
    return build_signature_def(_infos(inputs), _infos(found), method)


def _infos(tensors: Mapping[str, Any]) -> dict[str, Any]:
    return {name: build_tensor_info(tensor) for name, tensor in tensors.items()}


def _examples(examples: Any, what: str) -> Any:
    if examples is None:
        raise ValueError(f"{what} examples cannot be None.")
    if not isinstance(examples, Tensor):
        raise ValueError(f"{what} examples must be a string Tensor.")
    return _typed(examples, dtypes.string, f"{what} examples")


def _typed(tensor: Any, dtype: DType, what: str) -> Any:
    info = build_tensor_info(tensor)
    if info.dtype != dtype.as_datatype_enum:
        kind = "string" if dtype is dtypes.string else "float"
        raise ValueError(f"{what} must be a {kind} Tensor.")
    return info


# ---------------------------------------------------------------- what servers accept
def is_valid_signature(signature_def: Any) -> bool:
    """Whether a server can use a `SignatureDef`: one to classify, to regress or to predict.

    Args:
        signature_def: the SignatureDef.
    """
    if signature_def is None:
        return False
    inputs = {name: info.dtype for name, info in signature_def.inputs.items()}
    outputs = {name: info.dtype for name, info in signature_def.outputs.items()}
    text, number = protos.DataType.DT_STRING, protos.DataType.DT_FLOAT
    method = signature_def.method_name
    if method == names.PREDICT_METHOD_NAME:
        return bool(inputs and outputs)
    if method == names.REGRESS_METHOD_NAME:
        wanted = {names.REGRESS_OUTPUTS: number}
        return inputs == {names.REGRESS_INPUTS: text} and outputs == wanted
    if method == names.CLASSIFY_METHOD_NAME:
        allowed = {names.CLASSIFY_OUTPUT_CLASSES: text, names.CLASSIFY_OUTPUT_SCORES: number}
        fits = bool(outputs) and outputs.items() <= allowed.items()
        return fits and inputs == {names.CLASSIFY_INPUTS: text}
    return False


# ---------------------------------------------------------------- ops in signatures
def op_signature_def(op: Any, key: str) -> Any:
    """Builds a `SignatureDef` whose one output, `key`, names an operation (or a tensor)."""
    return build_signature_def(outputs={key: build_tensor_info_from_op(op)})


def load_op_from_signature_def(
    signature_def: Any, key: str, import_scope: str | None = None
) -> Any:
    """The operation that `op_signature_def` named.

    Args:
        signature_def: the `SignatureDef`.
        key: name of the output.
        import_scope: the scope into which the operation was imported.

    Returns:
        An operation or a tensor of the default graph.

    Raises:
        NotFoundError: the graph has no such operation.
    """
    try:
        return get_element_from_tensor_info(signature_def.outputs[key], import_scope=import_scope)
    except KeyError:
        raise errors.NotFoundError(
            None,
            None,
            f"The {key} could not be found in the graph. Please make sure the SavedModel was"
            " created by the internal _SavedModelBuilder. If you are using the public API, please"
            f' make sure the SignatureDef in the SavedModel does not contain the key "{key}".',
        ) from None
