"""`tf.contrib.training`: steps, what is done to their gradients, loops of training and judging."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import opdock as tf
from opdock.contrib import training


@pytest.fixture(autouse=True)
def _graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def _model() -> tuple[Any, Any]:
    weight = tf.get_variable("w", initializer=4.0)
    return weight, tf.square(weight)


def test_a_step_updates_first_and_is_collected() -> None:
    weight, loss = _model()
    seen = tf.get_variable("seen", initializer=0, trainable=False)
    tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, tf.assign_add(seen, 1))
    step = training.create_train_op(
        loss, tf.train.GradientDescentOptimizer(0.25), summarize_gradients=True,
        transform_grads_fn=training.clip_gradient_norms_fn(2.0),
    )  # fmt: skip
    assert tf.get_collection(tf.GraphKeys.TRAIN_OP)[-1] is step
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        assert sess.run(step) == 16.0
        assert sess.run([weight, seen, tf.train.get_global_step()]) == [3.5, 1, 1]
    tags = [op.name for op in tf.get_default_graph().get_operations() if "Summary" in op.type]
    assert tags == ["summarize_grads/w_gradient", "summarize_grads/w_gradient_norm"]


def test_numbers_are_checked_and_steps_need_not_count() -> None:
    _, loss = _model()
    optimizer = tf.train.GradientDescentOptimizer(0.25)
    step = training.create_train_op(loss / 0.0, optimizer, global_step=None)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        with pytest.raises(tf.errors.InvalidArgumentError, match="LossTensor is inf or nan"):
            sess.run(step)
    assert tf.train.get_global_step() is None
    with pytest.raises(AssertionError, match="there is no variable to train"):
        training.create_train_op(loss, optimizer, variables_to_train=[])


def test_gradients_are_multiplied_where_it_is_asked_for() -> None:
    table = tf.get_variable("table", [3, 1], initializer=tf.ones_initializer())
    other = tf.get_variable("other", initializer=1.0)
    slices = tf.IndexedSlices(tf.constant([[2.0]]), tf.constant([1]))
    found = training.multiply_gradients(
        [(slices, table), (tf.constant(5.0), other)], {table: 3.0, "other": 2.0}
    )
    with tf.Session() as sess:
        assert sess.run(found[0][0].values).tolist() == [[6.0]]
        assert sess.run(found[1][0]) == 10.0
    for given, factors, told in (
        ((), {table: 1.0}, "must be a list"),
        ([], {}, "is empty"),
        ([], [1], "must be a dict"),
        ([(None, other)], {other: 1.0}, "Requested multiple of `None` gradient"),
    ):
        with pytest.raises(ValueError, match=told):
            training.multiply_gradients(given, factors)  # type: ignore[arg-type]


def test_a_training_and_the_judging_of_its_checkpoints(tmp_path: Path) -> None:
    logs = str(tmp_path / "train")
    _, loss = _model()
    step = training.create_train_op(loss, tf.train.GradientDescentOptimizer(0.25))
    last = training.train(step, logs, hooks=[tf.train.StopAtStepHook(num_steps=3)])
    assert last == 1.0  # 4, 2, 1
    with pytest.raises(ValueError, match="logdir cannot be None when save_summaries_steps"):
        training.train(step, None)

    with tf.Graph().as_default():
        weight = tf.get_variable("w", initializer=0.0)
        tf.train.get_or_create_global_step()
        tf.summary.scalar("weight", weight)
        seen = tf.get_local_variable("seen", initializer=0)
        judged = str(tmp_path / "judged")
        values = training.evaluate_repeatedly(
            logs, eval_ops=tf.assign_add(seen, 1), final_ops=[weight, seen],
            hooks=[training.StopAfterNEvalsHook(4), training.SummaryAtEndHook(judged)],
            max_number_of_evaluations=1,
        )  # fmt: skip
        assert values == [0.5, 4]
    (path,) = Path(judged).iterdir()
    told = [v for e in tf.train.summary_iterator(str(path)) for v in e.summary.value]
    assert [(v.tag, v.simple_value) for v in told] == [("weight", 0.5)]
    with pytest.raises(ValueError, match="One of log_dir or summary_writer"):
        training.SummaryAtEndHook()


def test_judging_ends_when_nothing_comes(tmp_path: Path) -> None:
    asked: list[int] = []

    def enough() -> bool:
        asked.append(1)
        return len(asked) == 2

    found = training.evaluate_repeatedly(
        str(tmp_path), final_ops=tf.constant(1.0), timeout=0, timeout_fn=enough
    )
    assert found is None
    assert len(asked) == 2
