"""The global step."""

from __future__ import annotations

import pytest

import opdock as tf


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def test_made_once():
    assert tf.train.get_global_step() is None
    step = tf.train.create_global_step()
    assert step.op.name == "global_step"
    assert step.dtype.base_dtype is tf.int64
    assert step.shape.as_list() == []
    assert step not in tf.trainable_variables()
    assert tf.train.get_global_step() is tf.train.get_or_create_global_step() is step
    assert tf.get_collection(tf.GraphKeys.GLOBAL_STEP) == [step]
    with pytest.raises(ValueError, match='"global_step" already exists'):
        tf.train.create_global_step()


def test_value():
    step = tf.train.get_or_create_global_step()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(tf.assign_add(step, 5))
        assert tf.train.global_step(session, step) == 5


def test_what_is_no_global_step():
    tf.train.assert_global_step(tf.Variable(0, trainable=False))
    with pytest.raises(TypeError, match="integer"):
        tf.train.assert_global_step(tf.Variable(0.0))
    with pytest.raises(TypeError, match="scalar"):
        tf.train.assert_global_step(tf.Variable([1, 2]))


def test_found_by_name():
    v = tf.Variable(0, name="global_step", trainable=False)
    found = tf.train.get_global_step()
    assert found is v or found.op is v.op


def test_a_global_step_of_one_element_is_its_value():
    step = tf.Variable([123], name="global_step")
    with tf.Session() as sess:
        sess.run(step.initializer)
        assert tf.train.global_step(sess, step) == 123
