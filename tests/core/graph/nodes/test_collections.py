"""Collections and their standard names."""

from __future__ import annotations

import pytest

import opdock as tf


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def test_adding_and_getting(graph):
    tf.add_to_collection("c", 1)
    tf.add_to_collections(["c", "d", "c"], 2)
    tf.add_to_collections("e", 3)
    assert tf.get_collection("c") == [1, 2]
    assert tf.get_collection("d") == [2]
    assert tf.get_collection("e") == [3]
    assert tf.get_collection("missing") == []
    assert set(graph.get_all_collection_keys()) == {"c", "d", "e"}


def test_a_collection_is_a_copy_unless_the_ref_is_asked_for(graph):
    tf.add_to_collection("c", 1)
    tf.get_collection("c").append(2)
    assert tf.get_collection("c") == [1]
    tf.get_collection_ref("c").append(2)
    tf.get_collection_ref("new").append(3)
    assert tf.get_collection("c") == [1, 2]
    assert tf.get_collection("new") == [3]
    graph.clear_collection("c")
    assert tf.get_collection("c") == []


def test_scope_is_a_pattern_for_the_start_of_names():
    with tf.variable_scope("ab"):
        a = tf.get_variable("v", [1])
    b = tf.get_variable("a", [1])
    c = tf.get_variable("xab", [1])
    tf.add_to_collection("c", a)
    tf.add_to_collection("c", b)
    tf.add_to_collection("c", c)
    tf.add_to_collection("c", "no name")
    assert tf.get_collection("c", "a") == [a, b]
    assert tf.get_collection("c", "ab/") == [a]
    assert tf.get_collection("c", ".*ab") == [a, c]


def test_where_variables_go():
    a = tf.Variable(1.0)
    b = tf.Variable(1.0, trainable=False)
    c = tf.Variable(1.0, collections=[tf.GraphKeys.LOCAL_VARIABLES], trainable=False)
    d = tf.Variable(1.0, collections=["mine"])
    assert tf.global_variables() == [a, b]
    assert tf.trainable_variables() == [a, d]
    assert tf.local_variables() == [c]
    assert tf.get_collection("mine") == [d]
    assert tf.get_collection(tf.GraphKeys.VARIABLES) == [a, b]


def test_standard_names():
    keys = tf.GraphKeys
    assert keys.GLOBAL_VARIABLES == "variables"
    assert keys.TRAINABLE_VARIABLES == "trainable_variables"
    assert keys.LOCAL_VARIABLES == "local_variables"
    assert keys.UPDATE_OPS == "update_ops"
    assert keys.SUMMARIES == "summaries"
    assert keys.REGULARIZATION_LOSSES == "regularization_losses"
    assert keys.LOSSES == "losses"
    assert keys.QUEUE_RUNNERS == "queue_runners"
    assert keys.GLOBAL_STEP == "global_step"
    assert keys.MOVING_AVERAGE_VARIABLES == "moving_average_variables"
    assert keys.TABLE_INITIALIZERS == "table_initializer"
    assert keys.WEIGHTS == "weights"
    assert keys.BIASES == "biases"
    assert keys.ACTIVATIONS == "activations"
