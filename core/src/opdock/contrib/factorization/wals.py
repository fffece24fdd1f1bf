"""Weighted alternating least squares as an estimator of `tf.contrib.learn`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import opdock as tf
from opdock.contrib.factorization.wals_model import WALSModel
from opdock.contrib.learn.estimator import Estimator
from opdock.contrib.learn.model_fn import ModeKeys, ModelFnOps
from opdock.train.loops.hook import (
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
)

__all__ = ["WALSMatrixFactorization"]


class _SweepHook(SessionRunHook):
    """Runs with each step the update of the sweep's side, and before a sweep what it needs.

    Args:
        is_row_sweep_var: a variable: whether the sweep is one of rows.
        is_sweep_done_var: a variable: whether it has had all of them.
        init_op: what runs once.
        row_prep_ops: what runs before a sweep of rows, one after the other.
        col_prep_ops: what runs before a sweep of columns.
        row_train_op: the step of a sweep of rows.
        col_train_op: the step of a sweep of columns.
        switch_op: what turns to the other side.
    """

    def __init__(
        self, is_row_sweep_var: Any, is_sweep_done_var: Any, init_op: Any, row_prep_ops: list[Any],
        col_prep_ops: list[Any], row_train_op: Any, col_train_op: Any, switch_op: Any,
    ) -> None:  # fmt: skip
        self._of_rows, self._done = is_row_sweep_var, is_sweep_done_var
        self._init_op, self._switch_op = init_op, switch_op
        self._rows, self._columns = (row_prep_ops, row_train_op), (col_prep_ops, col_train_op)
        self._begun = False

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        session = run_context.session
        done = session.run(self._done)
        if not self._begun:
            session.run(self._init_op)
        if done:
            session.run(self._switch_op)
        before, step = self._rows if session.run(self._of_rows) else self._columns
        if done or not self._begun:
            for op in before:
                session.run(op)
        self._begun = True
        return SessionRunArgs([step])


class _CountHook(SessionRunHook):
    """Counts the steps."""

    def __init__(self) -> None:
        step = tf.train.get_global_step()
        self._count = None if step is None else tf.assign_add(step, 1, name="global_step_incr").op

    def before_run(self, run_context: SessionRunContext) -> None:
        if self._count is not None:
            run_context.session.run(self._count)


class _StopAtSweepHook(SessionRunHook):
    """Ends a training after so many sweeps.

    Raises:
        RuntimeError: the graph does not count them.
    """

    def __init__(self, last_sweep: int) -> None:
        self._last = last_sweep
        self._completed: Any = None

    def begin(self) -> None:
        name = WALSMatrixFactorization.COMPLETED_SWEEPS
        try:
            self._completed = tf.get_default_graph().get_tensor_by_name(f"{name}:0")
        except KeyError as error:
            raise RuntimeError(
                f"{name} counter should be created to use StopAtSweepHook."
            ) from error

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return SessionRunArgs(self._completed)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        if run_values.results >= self._last:
            run_context.request_stop()


class WALSMatrixFactorization(Estimator):
    """A matrix of low rank that is near to a sparse one; see `WALSModel`.

    `fit` sweeps over rows and columns by turns. An `input_fn` gives features by name, and None:
    `INPUT_ROWS`, some rows as a sparse matrix, and `INPUT_COLS`, some columns as rows of another,
    both under their own numbers. A sweep ends when each row, or column, has come. To evaluate and
    to predict, `PROJECT_ROW` says which of the two is meant, and `PROJECTION_WEIGHTS` may weigh
    them.

    Args:
        num_rows: the number of rows.
        num_cols: the number of columns.
        embedding_dimension: the size of a factor.
        unobserved_weight, row_init, col_init, num_row_shards, num_col_shards, row_weights,
            col_weights: see `WALSModel`.
        regularization_coeff: the weight of the factors' squares, or None for 0.
        use_factors_weights_cache_for_training: whether training works on copies of factors and
            weights.
        use_gramian_cache_for_training: whether it works on copies of their products.
        max_sweeps: training ends after so many sweeps, of rows and of columns together.
        model_dir: where checkpoints go.
        config: see `Estimator`.

    Raises:
        ValueError: the configuration has several workers.
    """

    INPUT_ROWS: Final = "input_rows"
    INPUT_COLS: Final = "input_cols"
    PROJECT_ROW: Final = "project_row"
    PROJECTION_WEIGHTS: Final = "projection_weights"
    PROJECTION_RESULT: Final = "projection"
    COMPLETED_SWEEPS: Final = "completed_sweeps"
    LOSS: Final = "WALS_loss"
    RWSE: Final = "WALS_RWSE"

    def __init__(
        self, num_rows: int, num_cols: int, embedding_dimension: int,
        unobserved_weight: float = 0.1, regularization_coeff: float | None = None,
        row_init: Any = "random", col_init: Any = "random", num_row_shards: int = 1,
        num_col_shards: int = 1, row_weights: Any = 1, col_weights: Any = 1,
        use_factors_weights_cache_for_training: bool = True,
        use_gramian_cache_for_training: bool = True, max_sweeps: int | None = None,
        model_dir: str | None = None, config: Any = None,
    ) -> None:  # fmt: skip
        def model(training: bool) -> WALSModel:
            return WALSModel(
                num_rows, num_cols, embedding_dimension, unobserved_weight=unobserved_weight,
                regularization=regularization_coeff, row_init=row_init, col_init=col_init,
                num_row_shards=num_row_shards, num_col_shards=num_col_shards,
                row_weights=row_weights, col_weights=col_weights,
                use_factors_weights_cache=training and use_factors_weights_cache_for_training,
                use_gramian_cache=training and use_gramian_cache_for_training,
            )  # fmt: skip

        def model_fn(features: Any, labels: Any, mode: str) -> ModelFnOps:
            if labels is not None:
                raise ValueError(f"factorization has no labels: {labels!r}")
            made = model(training=mode == ModeKeys.TRAIN)
            if mode == ModeKeys.TRAIN:
                return _training(made, features, num_rows, num_cols, max_sweeps)
            return _evaluation(made, features) if mode == ModeKeys.EVAL else _inference(
                made, features
            )  # fmt: skip

        self._row_factors_names = [f"row_factors_shard_{i}" for i in range(num_row_shards)]
        self._col_factors_names = [f"col_factors_shard_{i}" for i in range(num_col_shards)]
        super().__init__(model_fn=model_fn, model_dir=model_dir, config=config)
        if self.config.num_worker_replicas > 1:
            raise ValueError("WALSMatrixFactorization must be run on a single worker replica.")

    def get_row_factors(self) -> list[Any]:
        """The factors of rows in the last checkpoint, by shard."""
        return [self.get_variable_value(name) for name in self._row_factors_names]

    def get_col_factors(self) -> list[Any]:
        """The factors of columns in the last checkpoint, by shard."""
        return [self.get_variable_value(name) for name in self._col_factors_names]

    def get_projections(self, input_fn: Callable[[], Any]) -> Iterator[Any]:
        """The factors that the rows or columns of an `input_fn` would have."""
        for result in self.predict(input_fn=input_fn):
            yield result[self.PROJECTION_RESULT]


def _state(value: Any, name: str) -> Any:
    return tf.Variable(
        value, trainable=False, name=name, collections=[tf.GraphKeys.GLOBAL_VARIABLES]
    )


def _training(
    model: WALSModel, features: Any, num_rows: int, num_cols: int, max_sweeps: int | None
) -> ModelFnOps:
    of_rows = _state(True, "is_row_sweep")
    done = _state(False, "is_sweep_done")
    completed = _state(0, WALSMatrixFactorization.COMPLETED_SWEEPS)
    loss_kept = _state(0.0, WALSMatrixFactorization.LOSS)
    error_kept = _state(0.0, WALSMatrixFactorization.RWSE)
    tf.summary.scalar("loss", loss_kept)
    tf.summary.scalar("root_weighted_squared_error", error_kept)
    tf.summary.scalar("completed_sweeps", completed)

    def side(sp_input: Any, count: int, update: Any, name: str) -> tuple[Any, Any]:
        """What forgets which of a side had their turn, and the step that gives some theirs."""
        had_turn = _state(tf.fill([count], False), f"processed_{name}")
        _, stored, loss, squares, weights = update(sp_input)
        ids = sp_input.indices[:, 0]
        noted = [
            tf.assign(loss_kept, loss + squares),
            tf.assign(error_kept, (loss / weights) ** 0.5),
        ]
        with tf.control_dependencies([stored, *noted]):
            marked = tf.scatter_update(
                had_turn, ids, tf.ones_like(ids, tf.bool), name=f"update_processed_{name}_indices"
            )
        with tf.control_dependencies([marked]):
            all_had = tf.reduce_all(had_turn)
            step = tf.group(
                tf.assign(done, all_had), tf.assign_add(completed, tf.cast(all_had, tf.int32)),
                name=f"{name}_sweep_train_op",
            )  # fmt: skip
        return had_turn.initializer, step

    rows, columns = (
        features[key]
        for key in (WALSMatrixFactorization.INPUT_ROWS, WALSMatrixFactorization.INPUT_COLS)
    )
    forget_rows, rows_step = side(rows, num_rows, model.update_row_factors, "rows")
    forget_columns, columns_step = side(
        columns, num_cols, lambda given: model.update_col_factors(given, transpose_input=True),
        "cols",
    )  # fmt: skip
    turned = tf.assign(of_rows, tf.logical_not(of_rows))
    sweep = _SweepHook(
        of_rows, done, model.worker_init,
        [model.row_update_prep_gramian_op, model.initialize_row_update_op],
        [model.col_update_prep_gramian_op, model.initialize_col_update_op],
        rows_step, columns_step,
        tf.group(turned, forget_rows, forget_columns, name="sweep_switch_op"),
    )  # fmt: skip
    hooks: list[SessionRunHook] = [sweep, _CountHook()]
    if max_sweeps is not None:
        hooks.append(_StopAtSweepHook(max_sweeps))
    return ModelFnOps(
        ModeKeys.TRAIN, predictions={}, loss=loss_kept, eval_metric_ops={}, train_op=tf.no_op(),
        training_hooks=hooks,
    )  # fmt: skip


def _inference(model: WALSModel, features: Any) -> ModelFnOps:
    keys = WALSMatrixFactorization
    weights = features.get(keys.PROJECTION_WEIGHTS)
    rows, columns = features[keys.INPUT_ROWS], features[keys.INPUT_COLS]
    projection = tf.cond(
        features[keys.PROJECT_ROW],
        lambda: model.project_row_factors(rows, projection_weights=weights),
        lambda: model.project_col_factors(columns, True, projection_weights=weights),
    )
    return ModelFnOps(
        ModeKeys.INFER, predictions={keys.PROJECTION_RESULT: projection}, train_op=tf.no_op()
    )


def _evaluation(model: WALSModel, features: Any) -> ModelFnOps:
    def loss(step: tuple[Any, ...]) -> Any:
        return step[2] + step[3]

    keys = WALSMatrixFactorization
    rows, columns = features[keys.INPUT_ROWS], features[keys.INPUT_COLS]
    found = tf.cond(
        features[keys.PROJECT_ROW],
        lambda: loss(model.update_row_factors(rows)),
        lambda: loss(model.update_col_factors(columns, transpose_input=True)),
    )
    return ModelFnOps(
        ModeKeys.EVAL, predictions={}, loss=found, eval_metric_ops={}, train_op=tf.no_op()
    )
