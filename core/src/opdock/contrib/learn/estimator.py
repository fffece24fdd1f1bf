"""Estimators of `tf.contrib.learn`: models with the loops that train, evaluate and ask them."""

from __future__ import annotations

import copy
import inspect
import tempfile
from collections.abc import Callable, Generator, Iterator, Mapping
from functools import partial
from typing import Any, Self

import opdock as tf
from opdock.contrib.learn import exporting
from opdock.contrib.learn.contracts import Evaluable, Trainable
from opdock.contrib.learn.feeding import check_inputs, inputs_of
from opdock.contrib.learn.keys import MetricKey
from opdock.contrib.learn.metric_spec import metric_ops
from opdock.contrib.learn.model_fn import ModeKeys, ModelFnOps
from opdock.contrib.learn.monitor_hooks import replace_monitors_with_hooks
from opdock.contrib.learn.run_config import RunConfig
from opdock.train.loops.evaluation import StopAfterNEvalsHook, evaluate_once

__all__ = [
    "BaseEstimator", "Estimator", "NotFittedError",
    "infer_real_valued_columns_from_input", "infer_real_valued_columns_from_input_fn",
]  # fmt: skip


class NotFittedError(ValueError, AttributeError):
    """A model was asked before it was trained."""


def infer_real_valued_columns_from_input_fn(input_fn: Callable[[], Any]) -> list[Any]:
    """Columns of numbers for the features that a function builds, in a graph of its own."""
    from opdock.contrib.layers.feature_column import infer_real_valued_columns

    with tf.Graph().as_default():
        features, _ = input_fn()
        columns: list[Any] = list(infer_real_valued_columns(features))
        return columns


def infer_real_valued_columns_from_input(x: Any) -> list[Any]:
    """Columns of numbers for an array [examples, ...], or for arrays by key."""
    input_fn, _ = inputs_of(x, None, None, None)
    return infer_real_valued_columns_from_input_fn(input_fn)


class BaseEstimator(Evaluable, Trainable):
    """What estimators share: the loops around the graphs that `_get_*_ops` build.

    Args:
        model_dir: where the checkpoints are; a new temporary folder by default.
        config: a `RunConfig`.

    Raises:
        ValueError: `model_dir` and that of the config differ.
    """

    def __init__(self, model_dir: str | None = None, config: Any = None) -> None:
        config = RunConfig() if config is None else config
        if model_dir is not None and config.model_dir not in (None, model_dir):
            raise ValueError(
                "model_dir are set both in constructor and RunConfig, but with different values. "
                f"In constructor: '{model_dir}', in RunConfig: '{config.model_dir}' "
            )
        self._model_dir = model_dir or config.model_dir or tempfile.mkdtemp()
        if config.model_dir is None:
            config = config.replace(model_dir=self._model_dir)
        self._config = config
        self._session_config = config.session_config or tf.ConfigProto(allow_soft_placement=True)

    @property
    def config(self) -> Any:
        """A copy of the settings."""
        return copy.deepcopy(self._config)

    @property
    def model_dir(self) -> str:
        """Where the checkpoints are."""
        return str(self._model_dir)

    def fit(
        self, x: Any = None, y: Any = None, input_fn: Any = None, steps: int | None = None,
        batch_size: int | None = None, monitors: Any = None, max_steps: int | None = None,
    ) -> Self:  # fmt: skip
        """Trains the model, from its latest checkpoint where there is one.

        Args:
            x, y: features and labels in memory, which are shuffled.
            input_fn: a function that builds both, in the place of arrays.
            steps: how many more steps; without end by default.
            batch_size: how many examples of arrays a step has; all by default.
            monitors: `SessionRunHook`s, or monitors as `BaseMonitor`.
            max_steps: the global step at which training ends.

        Raises:
            ValueError: arrays and a function, or neither; `steps` and `max_steps`.
        """
        if steps is not None and max_steps is not None:
            raise ValueError("Can not provide both steps and max_steps.")
        check_inputs(x, y, input_fn, batch_size)
        if max_steps is not None and self._step() >= max_steps:
            return self
        input_fn, feed_fn = inputs_of(x, y, input_fn, batch_size, shuffle=True, epochs=None)
        hooks = replace_monitors_with_hooks(monitors, self)
        for hook in hooks:
            if hasattr(hook, "set_estimator"):
                hook.set_estimator(self)
        if feed_fn is not None:
            hooks.append(tf.train.FeedFnHook(feed_fn))
        if steps is not None or max_steps is not None:
            hooks.append(tf.train.StopAtStepHook(steps, max_steps))
        loss = self._train_model(input_fn, hooks)
        tf.logging.info("Loss for final step: %s.", loss)
        return self

    def partial_fit(
        self, x: Any = None, y: Any = None, input_fn: Any = None, steps: int | None = 1,
        batch_size: int | None = None, monitors: Any = None,
    ) -> Self:  # fmt: skip
        """`fit` with a single step by default."""
        return self.fit(x, y, input_fn, steps, batch_size, monitors)

    def evaluate(
        self, x: Any = None, y: Any = None, input_fn: Any = None, feed_fn: Any = None,
        batch_size: int | None = None, steps: int | None = None, metrics: Any = None,
        name: str | None = None, checkpoint_path: str | None = None, hooks: Any = None,
        log_progress: bool = True,
    ) -> dict[str, Any]:  # fmt: skip
        """The metrics of a trained model.

        Args:
            x, y: features and labels in memory, taken once.
            input_fn: a function that builds both, in the place of arrays.
            feed_fn: what gives the values that each step is fed.
            batch_size: how many examples of arrays a step has; all by default.
            steps: how many steps; until the input ends by default.
            metrics: see `metric_spec.metric_ops`.
            name: what the folder of its summaries is called.
            checkpoint_path: the latest one by default.
            hooks: `SessionRunHook`s.
            log_progress: whether each step is told.

        Raises:
            ValueError: arrays and a function, or neither.
            NotFittedError: there is no checkpoint.
        """
        check_inputs(x, y, input_fn, batch_size)
        if feed_fn is not None and x is not None:
            raise ValueError("Can not provide both feed_fn and x or y.")
        input_fn, own_feed_fn = inputs_of(x, y, input_fn, batch_size)
        metrics = {} if metrics is None else metrics
        if not isinstance(metrics, Mapping):
            raise ValueError(f"Metrics argument should be None or dict. Got {metrics}.")
        return self._evaluate_model(
            input_fn, steps, feed_fn or own_feed_fn, metrics, name, checkpoint_path, hooks,
            log_progress,
        )  # fmt: skip

    def predict(
        self, x: Any = None, input_fn: Any = None, batch_size: int | None = None,
        outputs: Any = None, as_iterable: bool = True, iterate_batches: bool = False,
    ) -> Any:  # fmt: skip
        """What a trained model says of features.

        Args:
            x: features in memory, taken once.
            input_fn: a function that builds features, alone or with labels.
            batch_size: how many examples of arrays a step has; all by default.
            outputs: the names of some predictions; all by default.
            as_iterable: whether they are an iterator, which ends with the input.
            iterate_batches: whether it gives those of a step together.

        Raises:
            ValueError: arrays and a function, or neither; no such output.
            NotFittedError: there is no checkpoint.
        """
        check_inputs(x, None, input_fn, batch_size)
        input_fn, feed_fn = inputs_of(x, None, input_fn, batch_size)
        session, predictions = self._predictor(input_fn, outputs)
        each = _each_step(session, predictions, feed_fn)
        if not as_iterable:
            every = list(each) if x is not None else [next(each)]
            each.close()
            return _joined(every)
        return each if iterate_batches else _each_example(each)

    def export(self, export_dir: str, *args: Any, **settings: Any) -> str:
        """Raises UnimplementedError: it would write a session bundle, which nothing reads now."""
        del args, settings
        raise tf.errors.UnimplementedError(
            None, None,
            f"export to {export_dir} would write a session bundle, the format before SavedModel, "
            "which opdock does not have. export_savedmodel(export_dir_base, serving_input_fn) "
            "writes a SavedModel; ExportStrategy has an Experiment do so while it trains.",
        )  # fmt: skip

    def get_variable_value(self, name: str) -> Any:
        """A variable's value in the latest checkpoint."""
        return tf.train.load_variable(self._model_dir, name)

    def get_variable_names(self) -> list[str]:
        """The variables in the latest checkpoint."""
        return [name for name, _ in tf.train.list_variables(self._model_dir)]

    def _get_train_ops(self, features: Any, labels: Any) -> ModelFnOps:
        raise NotImplementedError(f"{type(self).__name__} does not say how it trains.")

    def _get_eval_ops(self, features: Any, labels: Any, metrics: Any) -> ModelFnOps:
        raise NotImplementedError(f"{type(self).__name__} does not say how it is evaluated.")

    def _get_predict_ops(self, features: Any) -> ModelFnOps:
        raise NotImplementedError(f"{type(self).__name__} does not say how it predicts.")

    def _step(self) -> int:
        """The global step of the latest checkpoint, or 0."""
        latest = tf.train.latest_checkpoint(self._model_dir)
        return 0 if latest is None else int(tf.train.load_variable(latest, "global_step"))

    def _checkpoint(self) -> str:
        latest = tf.train.latest_checkpoint(self._model_dir)
        if latest is None:
            raise NotFittedError(f"Couldn't find trained model at {self._model_dir}.")
        return str(latest)

    def _device(self) -> Any:
        config = self._config
        if not config.num_ps_replicas:
            return None
        worker = f"/job:{config.task_type}/task:{config.task_id}" if config.task_type else None
        return tf.train.replica_device_setter(
            ps_tasks=config.num_ps_replicas,
            worker_device=worker or "/job:worker",
            cluster=config.cluster_spec,
        )

    def _train_model(self, input_fn: Callable[[], Any], hooks: list[Any]) -> Any:
        """Trains until a hook or the input ends it; the last loss."""
        config = self._config
        with tf.Graph().as_default() as graph, graph.device(self._device()):
            tf.set_random_seed(config.tf_random_seed)
            step = tf.train.create_global_step(graph)
            features, labels = input_fn()
            made = self._get_train_ops(features, labels)
            tf.add_to_collection(tf.GraphKeys.LOSSES, made.loss)
            hooks = [
                *hooks,
                tf.train.NanTensorHook(made.loss),
                tf.train.LoggingTensorHook({"loss": made.loss, "step": step}, every_n_iter=100),
                *made.training_hooks,
            ]
            scaffold = made.scaffold or tf.train.Scaffold()
            if not (scaffold.saver or tf.get_collection(tf.GraphKeys.SAVERS)):
                saver = tf.train.Saver(
                    sharded=True,
                    max_to_keep=config.keep_checkpoint_max,
                    keep_checkpoint_every_n_hours=config.keep_checkpoint_every_n_hours,
                    defer_build=True,
                    save_relative_paths=True,
                )
                tf.add_to_collection(tf.GraphKeys.SAVERS, saver)
            with tf.train.MonitoredTrainingSession(
                master=config.master,
                is_chief=config.is_chief,
                checkpoint_dir=self._model_dir,
                scaffold=scaffold,
                hooks=hooks,
                chief_only_hooks=[*self._saving(hooks, made, scaffold), *made.training_chief_hooks],
                save_checkpoint_secs=0,
                save_summaries_steps=config.save_summary_steps,
                max_wait_secs=config.session_creation_timeout_secs,
                config=self._session_config,
            ) as session:
                loss = None
                while not session.should_stop():
                    _, loss = session.run([made.train_op, made.loss])
        return loss

    def _saving(self, hooks: list[Any], made: ModelFnOps, scaffold: Any) -> list[Any]:
        """A hook that saves, where the user has none."""
        config = self._config
        saves = config.save_checkpoints_secs or config.save_checkpoints_steps
        own = (*hooks, *made.training_chief_hooks)
        if not saves or any(isinstance(h, tf.train.CheckpointSaverHook) for h in own):
            return []
        return [
            tf.train.CheckpointSaverHook(
                self._model_dir,
                save_secs=config.save_checkpoints_secs,
                save_steps=config.save_checkpoints_steps,
                scaffold=scaffold,
            )
        ]

    def _evaluate_model(
        self, input_fn: Callable[[], Any], steps: int | None, feed_fn: Any, metrics: Any,
        name: str | None, checkpoint_path: str | None, hooks: Any, log_progress: bool,
    ) -> dict[str, Any]:  # fmt: skip
        checkpoint_path = checkpoint_path or self._checkpoint()
        with tf.Graph().as_default() as graph:
            tf.set_random_seed(self._config.tf_random_seed)
            step = tf.train.create_global_step(graph)
            features, labels = input_fn()
            made = self._get_eval_ops(features, labels, metrics)
            pairs = {k: v for k, v in made.eval_metric_ops.items() if isinstance(v, tuple | list)}
            values = {k: v[0] if k in pairs else v for k, v in made.eval_metric_ops.items()}
            key = "global_step"
            while key in values:
                key = f"_{key}"
            hooks = list(hooks or ())
            if feed_fn is not None:
                hooks.append(tf.train.FeedFnHook(feed_fn))
            if steps:
                hooks.append(StopAfterNEvalsHook(steps, log_progress=log_progress))
            results: dict[str, Any] = evaluate_once(
                checkpoint_path=checkpoint_path,
                master=self._config.evaluation_master,
                scaffold=made.scaffold,
                eval_ops=tf.group(*(update for _, update in pairs.values())),
                final_ops={**values, key: step},
                hooks=hooks,
                config=self._session_config,
            )
        folder = "eval" if not name else f"eval_{name}"
        write_results(f"{self._model_dir}/{folder}", results, results[key])
        return results

    def _predictor(self, input_fn: Callable[[], Any], outputs: Any) -> tuple[Any, Any]:
        """A session with the model's variables, and what is fetched from it."""
        checkpoint = self._checkpoint()
        with tf.Graph().as_default() as graph:
            tf.set_random_seed(self._config.tf_random_seed)
            tf.train.create_global_step(graph)
            made_input = input_fn()
            features = made_input[0] if isinstance(made_input, tuple | list) else made_input
            made = self._get_predict_ops(features)
            predictions = _some(made.predictions, outputs)
            creator = tf.train.ChiefSessionCreator(
                checkpoint_filename_with_path=checkpoint,
                scaffold=made.scaffold,
                config=self._session_config,
            )
            return tf.train.MonitoredSession(session_creator=creator), predictions


def _some(predictions: Any, outputs: Any) -> Any:
    if not outputs:
        return predictions
    if not isinstance(predictions, Mapping):
        raise ValueError("outputs argument is not valid in case of non-dict predictions.")
    found = {k: v for k, v in predictions.items() if k in outputs}
    if not found:
        raise ValueError(
            f"Expected to run at least one output from {predictions.keys()}, provided {outputs}."
        )
    return found


def _each_step(session: Any, predictions: Any, feed_fn: Any) -> Generator[Any, None, None]:
    """The predictions step by step; a single step where nothing brings other input."""
    runs_on = feed_fn is not None or session.graph.get_collection(tf.GraphKeys.QUEUE_RUNNERS)
    with session:
        while not session.should_stop():
            try:
                made = session.run(predictions, feed_fn() if feed_fn else None)
            except tf.errors.OutOfRangeError:
                return
            yield made
            if not runs_on:
                return


def _each_example(steps: Iterator[Any]) -> Iterator[Any]:
    for made in steps:
        if not isinstance(made, Mapping):
            yield from made
            continue
        first = next(iter(made.values()))
        sparse = isinstance(first, tf.SparseTensorValue)
        for i in range(first.dense_shape[0] if sparse else len(first)):
            yield {key: value[i] for key, value in made.items()}


def _joined(steps: list[Any]) -> Any:
    """The predictions of all steps as one array, or as one of each name."""
    import numpy as np

    if isinstance(steps[0], Mapping):
        return {key: np.concatenate([s[key] for s in steps]) for key in steps[0]}
    return np.concatenate(steps)


def write_results(folder: str, results: Mapping[str, Any], step: int) -> None:
    """A summary of the numbers among the results."""
    summary = tf.Summary()
    for key, value in results.items():
        if key != "global_step" and getattr(value, "ndim", None) == 0:
            summary.value.add(tag=str(key), simple_value=float(value))
    writer = tf.summary.FileWriterCache.get(folder)
    writer.add_summary(summary, step)
    writer.flush()


class Estimator(BaseEstimator):
    """An estimator whose graphs a function builds.

    Args:
        model_fn: a function of features, labels and any of mode, params, config and model_dir, by
            these names, which returns `ModelFnOps` or (predictions, loss, train_op).
        model_dir, config: see `BaseEstimator`.
        params: what it is given as `params`.
        feature_engineering_fn: a function that makes of features and labels those of `model_fn`.

    Raises:
        ValueError: params for a function that takes none.
    """

    def __init__(
        self, model_fn: Callable[..., Any] | None = None, model_dir: str | None = None,
        config: Any = None, params: Any = None,
        feature_engineering_fn: Callable[[Any, Any], Any] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(model_dir=model_dir, config=config)
        if model_fn is not None and params is not None and "params" not in _arguments(model_fn):
            raise ValueError(
                f"Estimator's model_fn ({model_fn}) does not have a params argument, but params "
                f"({params}) were passed to the Estimator's constructor."
            )
        self._model_fn = model_fn
        self.params = params
        self._feature_engineering_fn = feature_engineering_fn or (lambda x, y: (x, y))

    @property
    def model_fn(self) -> Callable[..., ModelFnOps]:
        """The function of features, labels, mode and config, its params bound."""
        return lambda features, labels, mode, config: self._call_model_fn(
            features, labels, mode, config=config
        )

    def _call_model_fn(
        self, features: Any, labels: Any, mode: str, metrics: Any = None, config: Any = None
    ) -> ModelFnOps:
        features, labels = self._feature_engineering_fn(features, labels)
        offered = {
            "mode": mode,
            "params": self.params,
            "config": config or self.config,
            "model_dir": self.model_dir,
        }
        assert self._model_fn is not None
        taken = _arguments(self._model_fn)
        made = self._model_fn(features, labels, **{k: v for k, v in offered.items() if k in taken})
        if not isinstance(made, ModelFnOps):
            if len(made) != 3:
                raise ValueError(
                    "Unrecognized value returned by model_fn, please return ModelFnOps."
                )
            made = ModelFnOps(mode, *made)
        if metrics:
            made.eval_metric_ops.update(metric_ops(metrics, features, labels, made.predictions))
        return made

    def export_savedmodel(
        self, export_dir_base: Any, serving_input_fn: Callable[[], Any],
        default_output_alternative_key: str | None = None,
        assets_extra: Mapping[str, str] | None = None, as_text: bool = False,
        checkpoint_path: str | None = None,
        graph_rewrite_specs: Any = exporting.SERVED,
        strip_default_attrs: bool = False,
    ) -> bytes:  # fmt: skip
        """Writes the model as a SavedModel into a new folder; see `exporting.export_model`.

        Raises:
            ValueError: there is no `serving_input_fn`.
            NotFittedError: there is no checkpoint.
        """
        if serving_input_fn is None:
            raise ValueError("serving_input_fn must be defined.")
        return exporting.export_model(
            lambda features: self._call_model_fn(features, None, ModeKeys.INFER),
            checkpoint_path or self._checkpoint(), export_dir_base, serving_input_fn,
            default_output_alternative_key, assets_extra, as_text, graph_rewrite_specs,
            strip_default_attrs,
        )  # fmt: skip

    def _get_train_ops(self, features: Any, labels: Any) -> ModelFnOps:
        return self._call_model_fn(features, labels, ModeKeys.TRAIN)

    def _get_eval_ops(self, features: Any, labels: Any, metrics: Any) -> ModelFnOps:
        made = self._call_model_fn(features, labels, ModeKeys.EVAL, metrics)
        if MetricKey.LOSS not in made.eval_metric_ops:
            made.eval_metric_ops[MetricKey.LOSS] = tf.metrics.mean(made.loss)
        return made

    def _get_predict_ops(self, features: Any) -> ModelFnOps:
        return self._call_model_fn(features, None, ModeKeys.INFER)


def _arguments(fn: Callable[..., Any]) -> frozenset[str]:
    """The names of a function's arguments that nothing has bound yet."""
    bound = set(fn.keywords) if isinstance(fn, partial) else set()
    return frozenset(inspect.signature(fn).parameters) - bound
