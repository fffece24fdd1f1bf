"""`tf.contrib.learn`'s functions that train, evaluate and run a graph that a program has built."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import opdock as tf
from opdock.contrib.learn.estimator import write_results
from opdock.contrib.learn.monitor_hooks import replace_monitors_with_hooks
from opdock.train.loops.evaluation import (
    StopAfterNEvalsHook,
    evaluate_once,
    get_or_create_eval_step,
)

__all__ = ["evaluate", "infer", "run_feeds", "run_feeds_iter", "run_n", "train"]


def run_feeds_iter(
    output_dict: Mapping[str, Any], feed_dicts: Iterable[Any],
    restore_checkpoint_path: str | None = None,
) -> Iterator[dict[str, Any]]:  # fmt: skip
    """Runs a graph for one feed after the other, in a session of its own with its queue runners.

    Args:
        output_dict: what is fetched, by name.
        feed_dicts: what is fed to each step; None for nothing.
        restore_checkpoint_path: a checkpoint; without one variables are initialized.

    Yields:
        What a step gave, by name.

    Raises:
        ValueError: nothing is fetched.
    """
    if not output_dict:
        raise ValueError(f"output_dict is invalid: {output_dict}.")
    graph = next(iter(output_dict.values())).graph
    with graph.as_default(), tf.Session() as session:
        if restore_checkpoint_path:
            tf.train.Saver().restore(session, restore_checkpoint_path)
        else:
            session.run(tf.global_variables_initializer())
        session.run([tf.local_variables_initializer(), tf.tables_initializer()])
        coordinator = tf.train.Coordinator()
        threads = []
        if tf.get_collection(tf.GraphKeys.QUEUE_RUNNERS):
            threads = tf.train.start_queue_runners(session, coordinator)
        try:
            for feed in feed_dicts:
                yield session.run(output_dict, feed)
        finally:
            coordinator.request_stop()
            coordinator.join(threads, stop_grace_period_secs=120)


def run_feeds(*args: Any, **kwargs: Any) -> list[dict[str, Any]]:
    """A list of all that `run_feeds_iter` yields."""
    return list(run_feeds_iter(*args, **kwargs))


def run_n(
    output_dict: Mapping[str, Any], feed_dict: Any = None,
    restore_checkpoint_path: str | None = None, n: int = 1,
) -> list[dict[str, Any]]:  # fmt: skip
    """Runs a graph so many times with the same feed; see `run_feeds_iter`.

    Args:
        output_dict: what is fetched, by name.
        feed_dict: what is fed.
        restore_checkpoint_path: a checkpoint; without one variables are initialized.
        n: how many times.
    """
    return run_feeds(output_dict, itertools.repeat(feed_dict, n), restore_checkpoint_path)


def infer(
    restore_checkpoint_path: str | None, output_dict: Mapping[str, Any], feed_dict: Any = None
) -> dict[str, Any]:
    """Runs a graph once; see `run_feeds_iter`."""
    return run_n(output_dict, feed_dict, restore_checkpoint_path)[0]


def train(
    graph: Any, output_dir: str, train_op: Any, loss_op: Any, global_step_tensor: Any = None,
    init_op: Any = None, init_feed_dict: Any = None, init_fn: Callable[..., Any] | None = None,
    log_every_steps: int = 10, supervisor_is_chief: bool = True, supervisor_master: str = "",
    supervisor_save_model_secs: int = 600, keep_checkpoint_max: int = 5,
    supervisor_save_summaries_steps: int = 100, feed_fn: Callable[[], Any] | None = None,
    steps: int | None = None, fail_on_nan_loss: bool = True, monitors: Any = None,
    max_steps: int | None = None,
) -> Any:  # fmt: skip
    """Runs a graph's training op, from the latest checkpoint on, and saves.

    Args:
        graph: the graph.
        output_dir: where checkpoints and summaries are.
        train_op, loss_op: what a step runs.
        global_step_tensor: the global step; the graph's own by default.
        init_op, init_feed_dict, init_fn: see `tf.train.Scaffold`; the function gets the session.
        log_every_steps: how often loss and step are logged.
        supervisor_is_chief, supervisor_master: see `tf.train.MonitoredTrainingSession`.
        supervisor_save_model_secs: the seconds between two checkpoints.
        keep_checkpoint_max: how many checkpoints are kept.
        supervisor_save_summaries_steps: the steps between two summaries.
        feed_fn: what each step is fed, a function without arguments; StopIteration ends it.
        steps: how many steps; without `max_steps` either, the input ends it.
        fail_on_nan_loss: whether a loss that is nan is an error; it ends the training otherwise.
        monitors: monitors, or hooks.
        max_steps: the global step at which it ends.

    Returns:
        The loss of the last step; None if there was none.

    Raises:
        ValueError: there is no folder, no op or no global step, or both numbers are given.
        NanLossDuringTrainingError: the loss is nan.
    """
    if not output_dir:
        raise ValueError(f"Output directory should be non-empty: {output_dir}.")
    if train_op is None or loss_op is None:
        raise ValueError("Missing train_op or loss_op.")
    if steps is not None and max_steps is not None:
        raise ValueError("Can not provide both steps and max_steps.")
    with graph.as_default():
        step = _step_of(graph, global_step_tensor)
        initial = None if init_fn is None else lambda _, session: init_fn(session)
        scaffold = tf.train.Scaffold(
            init_op, init_feed_dict, initial,
            saver=tf.train.Saver(sharded=True, max_to_keep=keep_checkpoint_max, defer_build=True),
        )  # fmt: skip
        hooks = [
            tf.train.NanTensorHook(loss_op, fail_on_nan_loss),
            tf.train.LoggingTensorHook({"loss": loss_op, "step": step}, log_every_steps),
            *replace_monitors_with_hooks(monitors),
        ]
        if feed_fn is not None:
            hooks.append(tf.train.FeedFnHook(feed_fn))
        if steps is not None or max_steps is not None:
            hooks.append(tf.train.StopAtStepHook(steps, max_steps))
        loss = None
        with tf.train.MonitoredTrainingSession(
            supervisor_master, supervisor_is_chief, output_dir, scaffold, hooks,
            save_checkpoint_secs=supervisor_save_model_secs,
            save_summaries_steps=supervisor_save_summaries_steps,
        ) as session:  # fmt: skip
            while not session.should_stop():
                _, loss = session.run([train_op, loss_op])
    return loss


def evaluate(
    graph: Any, output_dir: str | None, checkpoint_path: str | None,
    eval_dict: Mapping[str, Any], update_op: Any = None, global_step_tensor: Any = None,
    supervisor_master: str = "", log_every_steps: int = 10,
    feed_fn: Callable[[], Any] | None = None, max_steps: int | None = None,
) -> tuple[dict[str, Any], int]:  # fmt: skip
    """Runs what updates metrics, and then the metrics.

    Args:
        graph: the graph.
        output_dir: where a summary of the results goes; None for nowhere.
        checkpoint_path: a checkpoint; without one variables are initialized.
        eval_dict: the metrics' values, by name.
        update_op: what updates them; the values themselves by default.
        global_step_tensor: the global step; the graph's own by default.
        supervisor_master: the session's target.
        log_every_steps: ignored: how far it is is logged a few times.
        feed_fn: what each step is fed, a function without arguments; StopIteration ends it.
        max_steps: how many steps; the input ends it by default.

    Returns:
        The values of the metrics, and the global step.

    Raises:
        ValueError: there is no global step.
    """
    with graph.as_default():
        step = _step_of(graph, global_step_tensor)
        hooks: list[Any] = [] if feed_fn is None else [tf.train.FeedFnHook(feed_fn)]
        if max_steps is not None:
            hooks.append(StopAfterNEvalsHook(max_steps))
        get_or_create_eval_step()
        # Of a graph that has been trained the scaffold is older than what evaluations count with.
        ready = tf.group(tf.local_variables_initializer(), tf.tables_initializer())
        results = evaluate_once(
            checkpoint_path=checkpoint_path, master=supervisor_master,
            scaffold=tf.train.Scaffold(local_init_op=ready),
            eval_ops=dict(eval_dict) if update_op is None else update_op,
            final_ops={"values": dict(eval_dict), "step": step}, hooks=hooks,
        )  # fmt: skip
    if output_dir:
        write_results(output_dir, results["values"], results["step"])
    return results["values"], int(results["step"])


def _step_of(graph: Any, given: Any) -> Any:
    """The global step that a program gives, or that of the graph.

    Raises:
        ValueError: there is none.
    """
    step = tf.train.get_global_step(graph) if given is None else given
    if step is None:
        raise ValueError("No `global_step_tensor` was provided and none could be found.")
    tf.train.assert_global_step(step)
    return step
