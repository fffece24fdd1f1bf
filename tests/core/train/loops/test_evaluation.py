"""One evaluation of a checkpoint."""

from __future__ import annotations

import pytest

import opdock as tf
from opdock.train.loops import evaluation


@pytest.fixture
def checkpoint(tmp_path):
    with tf.Graph().as_default(), tf.Session() as sess:
        v = tf.Variable(20, name="v")
        sess.run(v.initializer)
        yield tf.train.Saver().save(sess, str(tmp_path / "model"))


@pytest.fixture
def v(checkpoint):
    with tf.Graph().as_default():
        yield tf.Variable(0, name="v")


def total():
    return tf.get_local_variable("total", initializer=0)


@pytest.mark.parametrize("shape", [lambda op: op, lambda op: [op], lambda op: {"a": op}])
def test_so_many_steps(checkpoint, v, shape):
    add = tf.assign_add(total(), v)
    hook = evaluation.StopAfterNEvalsHook(3)
    step = evaluation.get_or_create_eval_step()
    found = evaluation.evaluate_once(
        checkpoint, eval_ops=shape(add), hooks=[hook],
        final_ops={"total": total_of(add), "steps": step},
    )  # fmt: skip
    assert found == {"total": 60, "steps": 3}


def total_of(add):
    return add.op.graph.get_collection(tf.GraphKeys.LOCAL_VARIABLES)[0]


def test_until_the_input_ends(checkpoint, v):
    element = tf.train.input_producer(tf.constant([1, 2, 3]), num_epochs=1).dequeue()
    sums = total()
    found = evaluation.evaluate_once(
        checkpoint, eval_ops=tf.assign_add(sums, element), final_ops=sums
    )
    assert found == 6


def test_steps_of_several_turns(checkpoint, v):
    seen = []

    class Turns(tf.train.SessionRunHook):
        def begin(self):
            self.turns = evaluation.get_or_create_steps_per_run_variable()

        def before_run(self, run_context):
            return tf.train.SessionRunArgs(self.turns)

        def after_run(self, run_context, run_values):
            seen.append(int(run_values.results))

    hook = evaluation.MultiStepStopAfterNEvalsHook(5, steps_per_run=2)
    evaluation.evaluate_once(checkpoint, eval_ops=tf.no_op(), hooks=[hook, Turns()])
    assert seen == [2, 2, 1]


def test_final_ops_alone(checkpoint, v):
    assert evaluation.evaluate_once(checkpoint, final_ops=v) == 20
    assert evaluation.evaluate_once(checkpoint) is None


def test_one_step_counter(v):
    evaluation.get_or_create_eval_step()
    tf.add_to_collection(tf.GraphKeys.EVAL_STEP, v)
    with pytest.raises(ValueError, match="Multiple tensors"):
        evaluation.get_or_create_eval_step()
