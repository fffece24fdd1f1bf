"""Estimators of `tf.contrib.learn` as SavedModels: what serves, and what a folder keeps."""

from __future__ import annotations

import inspect
import os
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, Self

import opdock as tf
from opdock import errors
from opdock.api import logging
from opdock.contrib.layers.feature_column import create_feature_spec_for_parsing
from opdock.contrib.learn.keys import (
    COLLECTION_DEF_KEY_FOR_INPUT_FEATURE_KEYS,
    PredictionKey,
    ProblemType,
)
from opdock.contrib.learn.model_fn import ModelFnOps

__all__ = [
    "DEFAULT_INPUT_ALTERNATIVE_KEY", "ExportPath", "ExportStrategy", "GraphRewriteSpec",
    "InputFnOps",
    "build_all_signature_defs", "build_default_serving_input_fn", "build_parsing_serving_input_fn",
    "build_standardized_signature_def", "export_model", "garbage_collect_exports",
    "get_input_alternatives", "get_most_recent_export", "get_output_alternatives",
    "get_temp_export_dir", "get_timestamped_export_dir", "make_export_strategy",
    "make_parsing_export_strategy",
]  # fmt: skip

DEFAULT_INPUT_ALTERNATIVE_KEY = "default_input_alternative"
FEATURES_INPUT_ALTERNATIVE_KEY = "features_input_alternative"
MAX_DIRECTORY_CREATION_ATTEMPTS = 10

Tensors = Mapping[str, Any]
Outputs = Mapping[Any, tuple[int, Tensors]]


def no_bundle(what: str) -> errors.UnimplementedError:
    """The error of what would write a session bundle, the format before SavedModel."""
    told = (
        f"{what} would write a session bundle, the format before SavedModel, which opdock does not "
        "have. export_savedmodel(export_dir_base, serving_input_fn) writes a SavedModel; an "
        "ExportStrategy (make_export_strategy) has an Experiment do so while it trains."
    )
    return errors.UnimplementedError(None, None, told)


# ---------------------------------------------------------------------------- what serves
class InputFnOps(NamedTuple):
    """Features, labels, and the placeholders that they are made of, by name."""

    features: Any
    labels: Any
    default_inputs: Any


class GraphRewriteSpec(NamedTuple):
    """The tags of a graph in a SavedModel, and the transforms that made it of the first."""

    tags: Any
    transforms: Any


SERVED: Final = (GraphRewriteSpec(("serve",), ()),)
"""The graph as it is, for serving."""


def build_parsing_serving_input_fn(
    feature_spec: Mapping[str, Any], default_batch_size: int | None = None
) -> Callable[[], InputFnOps]:
    """A function of the features of serialized Examples that are fed.

    Args:
        feature_spec: what to parse, as of `tf.parse_example`.
        default_batch_size: how many there are; any number if None.
    """

    def input_fn() -> InputFnOps:
        fed = tf.placeholder(tf.string, [default_batch_size], name="input_example_tensor")
        return InputFnOps(tf.parse_example(fed, feature_spec), None, {"examples": fed})

    return input_fn


def build_default_serving_input_fn(
    features: Mapping[str, Any], default_batch_size: int | None = None
) -> Callable[[], InputFnOps]:
    """A function of features that are fed as they are.

    Args:
        features: tensors like them, by name.
        default_batch_size: how many there are; any number if None.
    """

    def input_fn() -> InputFnOps:
        fed = {
            name: tf.placeholder(
                like.dtype, [default_batch_size, *like.shape.as_list()[1:]], name=like.op.name
            )
            for name, like in features.items()
        }
        return InputFnOps(fed, None, fed)

    return input_fn


def get_input_alternatives(input_ops: Any) -> tuple[dict[str, Tensors], Any]:
    """The placeholders of each way to ask, and the features.

    Args:
        input_ops: `InputFnOps`, or a pair of features and labels.

    Raises:
        ValueError: there are no features.
    """
    features = input_ops[0]
    if not features:
        raise ValueError("Features must be defined.")
    if not isinstance(input_ops, InputFnOps):
        return {}, features
    return {DEFAULT_INPUT_ALTERNATIVE_KEY: input_ops.default_inputs}, features


def get_output_alternatives(
    model_fn_ops: ModelFnOps, default_output_alternative_key: str | None = None
) -> tuple[Outputs, Any]:
    """The outputs of each head, and the key of those that are given if none is asked for.

    Args:
        model_fn_ops: the model.
        default_output_alternative_key: the head by default; it may be left out if there is one.

    Raises:
        ValueError: there is no such head, or there are several and none is named.
    """
    found, wanted = model_fn_ops.output_alternatives, default_output_alternative_key
    known = sorted(found or (), key=str)
    if wanted and wanted not in known:
        raise ValueError(
            f"Requested default_output_alternative: {wanted}, but available output_alternatives "
            f"are: {known}"
        )
    if not found:
        outputs = model_fn_ops.predictions
        if not isinstance(outputs, Mapping):
            outputs = {PredictionKey.GENERIC: outputs}
        key = "default_output_alternative"
        return {key: (ProblemType.UNSPECIFIED, outputs)}, key
    if not wanted and len(found) > 1:
        raise ValueError(
            f"Please specify a default_output_alternative.  Available output_alternatives are: "
            f"{known}"
        )
    return found, wanted or known[0]


def build_standardized_signature_def(
    input_tensors: Tensors, output_tensors: Tensors, problem_type: int
) -> Any:
    """A signature: classification or regression where it can be one, else prediction.

    Args:
        input_tensors, output_tensors: tensors by name.
        problem_type: one of `ProblemType`.

    Raises:
        ValueError: there are no inputs or no outputs.
    """
    for name, given in (("input_tensors", input_tensors), ("output_tensors", output_tensors)):
        if not given:
            raise ValueError(f"{name} must be provided.")
    if len(input_tensors) == 1:
        (examples,) = input_tensors.values()
        if problem_type in (ProblemType.CLASSIFICATION, ProblemType.LOGISTIC_REGRESSION):
            classes, scores = _classes(output_tensors), _scores(output_tensors)
            if classes is None and scores is None and len(output_tensors) == 1:
                (only,) = output_tensors.values()
                classes, scores = (only, None) if only.dtype == tf.string else (None, only)
            if classes is not None or scores is not None:
                return tf.saved_model.classification_signature_def(examples, classes, scores)
        if problem_type == ProblemType.LINEAR_REGRESSION and len(output_tensors) == 1:
            (predictions,) = output_tensors.values()
            return tf.saved_model.regression_signature_def(examples, predictions)
    return tf.saved_model.predict_signature_def(input_tensors, output_tensors)


def _classes(outputs: Tensors) -> Any:
    found = outputs.get(PredictionKey.CLASSES)
    return None if found is None or found.dtype != tf.string else found


def _scores(outputs: Tensors) -> Any:
    found = outputs.get(PredictionKey.SCORES)
    return outputs.get(PredictionKey.PROBABILITIES) if found is None else found


def build_all_signature_defs(
    input_alternatives: Mapping[str, Tensors],
    output_alternatives: Outputs,
    actual_default_output_alternative_key: Any,
) -> dict[str, Any]:
    """The signature of each way to ask and each head, as "way:head", and the default one.

    Raises:
        ValueError: there is no default way to ask.
    """
    made = {
        f"{asked}:{head or 'None'}": build_standardized_signature_def(inputs, outputs, kind)
        for asked, inputs in input_alternatives.items()
        for head, (kind, outputs) in output_alternatives.items()
    }
    inputs = input_alternatives.get(DEFAULT_INPUT_ALTERNATIVE_KEY)
    if not inputs:
        raise ValueError("A default input_alternative must be provided.")
    kind, outputs = output_alternatives[actual_default_output_alternative_key]
    key = tf.saved_model.signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY
    made[key] = build_standardized_signature_def(inputs, outputs, kind)
    return made


# ------------------------------------------------------------------------- what is written
def export_model(
    call_model_fn: Callable[[Any], ModelFnOps], checkpoint_path: str, export_dir_base: Any,
    serving_input_fn: Callable[[], Any], default_output_alternative_key: str | None,
    assets_extra: Mapping[str, str] | None, as_text: bool, graph_rewrite_specs: Any,
    strip_default_attrs: bool,
) -> bytes:  # fmt: skip
    """Writes a SavedModel into a new folder below one, whose name is the time.

    Args:
        call_model_fn: makes the model of features.
        checkpoint_path: where its values are.
        export_dir_base: the folder above.
        serving_input_fn: makes the features, as `InputFnOps`.
        default_output_alternative_key: the head by default.
        assets_extra: other files by where they go, below "assets.extra".
        as_text: whether the graph is written as text.
        graph_rewrite_specs: one `GraphRewriteSpec` without transforms.
        strip_default_attrs: whether attributes with default values are left out.

    Returns:
        The folder.

    Raises:
        UnimplementedError: graphs are to be transformed.
    """
    first, *others = graph_rewrite_specs
    if first.transforms:
        raise ValueError("The first element of graph_rewrite_specs must specify no transforms.")
    if others:
        told = "export_savedmodel writes the graph as it is: transform it with opdock.transforms."
        raise errors.UnimplementedError(None, None, told)
    folder = get_timestamped_export_dir(export_dir_base)
    unfinished = get_temp_export_dir(folder)
    builder = tf.saved_model.builder.SavedModelBuilder(os.fsdecode(unfinished))
    with tf.Graph().as_default() as graph:
        tf.train.create_global_step(graph)
        asked, features = get_input_alternatives(serving_input_fn())
        if isinstance(features, Mapping):
            for key in features:
                tf.add_to_collection(COLLECTION_DEF_KEY_FOR_INPUT_FEATURE_KEYS, key)
        made = call_model_fn(features)
        outputs, default = get_output_alternatives(made, default_output_alternative_key)
        signatures = build_all_signature_defs(asked, outputs, default)
        begin = tf.group(tf.local_variables_initializer(), tf.tables_initializer())
        with tf.Session(graph=graph) as session:
            given = None if made.scaffold is None else made.scaffold.saver
            saver = given or tf.train.Saver(sharded=True)
            saver.restore(session, checkpoint_path)
            builder.add_meta_graph_and_variables(
                session, first.tags, signature_def_map=signatures,
                assets_collection=tf.get_collection(tf.GraphKeys.ASSET_FILEPATHS), main_op=begin,
                strip_default_attrs=strip_default_attrs,
            )  # fmt: skip
    for where, source in (assets_extra or {}).items():
        target = os.path.join(os.fsdecode(unfinished), "assets.extra", os.fsdecode(where))
        tf.gfile.MakeDirs(os.path.dirname(target))
        tf.gfile.Copy(source, target)
    builder.save(as_text)
    tf.gfile.Rename(os.fsdecode(unfinished), os.fsdecode(folder))
    return folder


def get_timestamped_export_dir(export_dir_base: Any) -> bytes:
    """A folder that is not there yet, below one, whose name is the time in seconds.

    Raises:
        RuntimeError: each of ten seconds has its folder already.
    """
    for attempt in range(1, MAX_DIRECTORY_CREATION_ATTEMPTS + 1):
        folder = os.path.join(os.fsencode(export_dir_base), b"%d" % int(time.time()))
        if not tf.gfile.Exists(os.fsdecode(folder)):
            return folder
        logging.warning(
            "Export directory %s already exists; retrying (attempt %d/%d)", folder, attempt,
            MAX_DIRECTORY_CREATION_ATTEMPTS,
        )  # fmt: skip
        time.sleep(1)
    raise RuntimeError(
        "Failed to obtain a unique export directory name after "
        f"{MAX_DIRECTORY_CREATION_ATTEMPTS} attempts."
    )


def get_temp_export_dir(timestamped_export_dir: Any) -> bytes:
    """Where a folder is written before it takes its place."""
    above, name = os.path.split(os.fsencode(timestamped_export_dir))
    return os.path.join(above, b"temp-" + name)


def _exports(export_dir_base: Any) -> list[str]:
    """The folders below one whose names are times, the oldest first."""
    base = os.fsdecode(export_dir_base)
    names = [name.rstrip("/") for name in tf.gfile.ListDirectory(base)]
    times = sorted(name for name in names if len(name) == 10 and name.isdigit())
    return [os.path.join(base, name) for name in times]


class ExportPath(NamedTuple):
    """A folder, and the version that its name says."""

    path: str
    export_version: Any


def get_most_recent_export(export_dir_base: Any) -> ExportPath | None:
    """The newest export below a folder, or None."""
    found = _exports(export_dir_base)
    return ExportPath(found[-1], int(os.path.basename(found[-1]))) if found else None


def garbage_collect_exports(export_dir_base: Any, exports_to_keep: int | None) -> None:
    """Deletes all exports below a folder but the newest.

    Args:
        export_dir_base: the folder.
        exports_to_keep: how many are left; all if None.
    """
    if exports_to_keep is None:
        return
    found = _exports(export_dir_base)
    for folder in found[: max(len(found) - exports_to_keep, 0)]:
        try:
            tf.gfile.DeleteRecursively(folder)
        except errors.NotFoundError as error:
            logging.warning("Can not delete %s recursively: %s", folder, error)


# ------------------------------------------------------------------------------ strategies
class _Strategy(NamedTuple):
    name: str
    export_fn: Callable[..., Any]
    strip_default_attrs: bool | None


class ExportStrategy(_Strategy):
    """A way to export an estimator: a function, and the name of the folder that it writes into.

    Args:
        name: the name.
        export_fn: a function of an estimator, a folder, and any of checkpoint_path, eval_result
            and strip_default_attrs, by these names.
        strip_default_attrs: what it is given by that name.
    """

    __slots__ = ()

    def __new__(
        cls, name: str, export_fn: Callable[..., Any], strip_default_attrs: bool | None = None
    ) -> Self:
        """Makes a strategy."""
        return super().__new__(cls, name, export_fn, strip_default_attrs)

    def export(
        self, estimator: Any, export_path: Any, checkpoint_path: str | None = None,
        eval_result: Any = None,
    ) -> Any:  # fmt: skip
        """Exports an estimator.

        Args:
            estimator: the estimator.
            export_path: the folder.
            checkpoint_path: where its values are; its latest checkpoint if None.
            eval_result: what an evaluation of it gave.

        Raises:
            ValueError: the function takes eval_result and not checkpoint_path.
        """
        taken = inspect.signature(self.export_fn).parameters
        if "eval_result" in taken and "checkpoint_path" not in taken:
            raise ValueError("An export_fn accepting eval_result must also accept checkpoint_path.")
        offered = {
            "checkpoint_path": checkpoint_path,
            "eval_result": eval_result,
            "strip_default_attrs": self.strip_default_attrs,
        }
        given = {key: value for key, value in offered.items() if key in taken}
        return self.export_fn(estimator, export_path, **given)


def make_export_strategy(
    serving_input_fn: Callable[[], Any], default_output_alternative_key: str | None = None,
    assets_extra: Mapping[str, str] | None = None, as_text: bool = False,
    exports_to_keep: int | None = 5, strip_default_attrs: bool | None = None,
) -> ExportStrategy:  # fmt: skip
    """A strategy that writes SavedModels, and keeps the newest.

    Args:
        serving_input_fn: makes the features.
        default_output_alternative_key: the head by default; None for an estimator of
            `tf.estimator`.
        assets_extra: other files by where they go, below "assets.extra".
        as_text: whether the graph is written as text.
        exports_to_keep: how many exports are kept; all if None.
        strip_default_attrs: whether attributes with default values are left out.
    """

    def export_fn(
        estimator: Any, export_dir_base: Any, checkpoint_path: str | None = None,
        strip_default_attrs: bool | None = False,
    ) -> Any:  # fmt: skip
        named = {"default_output_alternative_key": default_output_alternative_key}
        if next(iter(named)) not in inspect.signature(estimator.export_savedmodel).parameters:
            if default_output_alternative_key is not None:
                raise ValueError(
                    "default_output_alternative_key is not supported in core Estimator. Given: "
                    f"{default_output_alternative_key}"
                )
            named = {}
        written = estimator.export_savedmodel(
            export_dir_base, serving_input_fn, assets_extra=assets_extra, as_text=as_text,
            checkpoint_path=checkpoint_path, strip_default_attrs=bool(strip_default_attrs), **named,
        )  # fmt: skip
        garbage_collect_exports(export_dir_base, exports_to_keep)
        return written

    return ExportStrategy("Servo", export_fn, strip_default_attrs)


def make_parsing_export_strategy(
    feature_columns: Any, default_output_alternative_key: str | None = None,
    assets_extra: Mapping[str, str] | None = None, as_text: bool = False,
    exports_to_keep: int | None = 5, target_core: bool = False,
    strip_default_attrs: bool | None = None,
) -> ExportStrategy:  # fmt: skip
    """`make_export_strategy` of serialized Examples.

    Args:
        feature_columns: the columns of the model, which say what is parsed.
        target_core: whether it is for estimators of `tf.estimator`.
        default_output_alternative_key, assets_extra, as_text, exports_to_keep,
            strip_default_attrs: as of `make_export_strategy`.
    """
    spec = create_feature_spec_for_parsing(feature_columns)
    if target_core:
        library: Any = tf
        serving: Any = library.estimator.export.build_parsing_serving_input_receiver_fn(spec)
    else:
        serving = build_parsing_serving_input_fn(spec)
    return make_export_strategy(
        serving, default_output_alternative_key, assets_extra, as_text, exports_to_keep,
        strip_default_attrs,
    )  # fmt: skip
