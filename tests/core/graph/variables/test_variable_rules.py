"""Who decides what kind of variable is made, and what scopes refuse."""

from __future__ import annotations

import functools
import threading
from typing import Any

import pytest

import opdock as tf


@pytest.fixture(autouse=True)
def _graph():
    with tf.Graph().as_default():
        yield


def test_resource_variables_by_default_on_request() -> None:
    tf.enable_resource_variables()
    try:
        assert tf.resource_variables_enabled()
        assert not tf.Variable(1.0).dtype._is_ref_dtype
        assert tf.Variable(1.0, use_resource=False).dtype._is_ref_dtype
    finally:
        tf.disable_resource_variables()
    assert tf.Variable(1.0).dtype._is_ref_dtype


def test_creators_are_given_every_argument_and_nest() -> None:
    seen: list[dict[str, Any]] = []

    def outer(next_creator: Any, **kwargs: Any) -> Any:
        seen.append(kwargs)
        return next_creator(**kwargs)

    def inner(next_creator: Any, **kwargs: Any) -> Any:
        return next_creator(**{**kwargs, "name": "forced"})

    with tf.variable_creator_scope(outer), tf.variable_creator_scope(inner):
        assert tf.Variable(1.0, False, name="mine").op.name == "forced"
    assert seen[0]["trainable"] is False
    assert seen[0]["synchronization"] is tf.VariableSynchronization.AUTO
    scope = tf.variable_creator_scope(outer)
    scope.__enter__()
    with tf.variable_creator_scope(inner):
        with pytest.raises(RuntimeError, match="without proper nesting"):
            scope.__exit__(None, None, None)


def test_what_is_read_as_a_sum_is_not_trained() -> None:
    on_read = tf.VariableSynchronization.ON_READ
    assert not tf.Variable(1.0, synchronization=on_read).trainable
    assert not tf.get_variable("a", [], synchronization=on_read).trainable
    assert tf.get_variable("b", [], synchronization=on_read, trainable=True).trainable


def test_variable_scopes_close_in_order() -> None:
    with tf.variable_scope("aa"):
        scope = tf.variable_scope("bb")
        scope.__enter__()
        with tf.variable_scope("cc"):
            with pytest.raises(RuntimeError, match="Improper nesting of variable_scope"):
                scope.__exit__(None, None, None)
        scope.__exit__(None, None, None)
        assert tf.get_variable_scope().name == "aa"


def test_the_root_scope_keeps_the_name_scope() -> None:
    root = tf.get_variable_scope()
    with tf.name_scope("around"), tf.variable_scope(root):
        assert tf.no_op().name == "around/NoOp"


def test_each_thread_has_its_own_scope() -> None:
    graph = tf.get_default_graph()
    names: list[str] = []

    def build() -> None:
        with graph.as_default():
            names.append(tf.get_variable("v", [1]).op.name)

    with tf.variable_scope("main"):
        thread = threading.Thread(target=build)
        thread.start()
        thread.join()
    assert names == ["v"]


def test_other_partitions_are_refused() -> None:
    with tf.variable_scope("s", partitioner=tf.fixed_size_partitioner(2)):
        tf.get_variable("v", [4, 1])
    with tf.variable_scope("s", partitioner=tf.fixed_size_partitioner(4), reuse=True):
        with pytest.raises(ValueError, match=r"specified partitions \[4, 1\] and found partitions"):
            tf.get_variable("v", [4, 1])


def test_an_initial_value_from_inside_a_loop() -> None:
    def body(i: Any) -> Any:
        return i + tf.Variable(tf.zeros([], tf.int32)).read_value()

    with pytest.raises(ValueError, match="inside a control-flow construct"):
        tf.while_loop(lambda i: i < 3, body, [0])


def test_local_variables_take_the_same_arguments() -> None:
    v = tf.get_local_variable("v", [2], tf.int32, tf.zeros_initializer(), None, True)
    assert not v.trainable
    assert v in tf.local_variables()


def test_assert_variables_initialized() -> None:
    v, w = tf.Variable([1, 2]), tf.Variable(3.0, use_resource=True)
    checked = tf.assert_variables_initialized()
    with tf.Session() as sess:
        sess.run(v.initializer)
        for fetch in checked, checked.op:
            with pytest.raises(tf.errors.FailedPreconditionError):
                sess.run(fetch)
        sess.run(w.initializer)
        assert sess.run(checked).tolist() == [1, 0]


def test_operators_are_documented_as_those_of_tensors() -> None:
    for name in functools.WRAPPER_ASSIGNMENTS:
        assert getattr(tf.Variable.__add__, name) == getattr(tf.Tensor.__add__, name)
