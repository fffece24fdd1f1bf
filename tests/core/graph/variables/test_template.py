"""`make_template` shares variables between calls; `init_scope` leaves bodies."""

from __future__ import annotations

import pytest

import opdock as tf


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as g:
        yield g


def scale(x, initial=2.0, trainable=True):
    w = tf.get_variable("w", [], initializer=tf.constant_initializer(initial), trainable=trainable)
    return tf.multiply(x, w, name="scaled")


def test_calls_share_variables():
    template = tf.make_template("scale", scale, initial=3.0)
    assert template.variable_scope is None
    assert template.variables == []
    first, second = template(1.0), template(2.0)
    other = tf.make_template("scale", scale)(1.0)
    assert [v.name for v in tf.global_variables()] == ["scale/w:0", "scale_1/w:0"]
    assert [t.op.name for t in (first, second, other)] == [
        "scale/scaled", "scale_1/scaled", "scale_2/scaled"
    ]  # fmt: skip
    assert template.trainable_variables == template.variables == tf.global_variables()[:1]
    assert template.variable_scope_name == "scale/"
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        assert sess.run([first, second, other]) == [3.0, 6.0, 2.0]


def test_scope_now_and_unique_names():
    early = tf.make_template("a", scale, create_scope_now_=True)
    late = tf.make_template("a", scale)
    late(1.0)
    early(1.0)
    assert late.variables[0].name == "a_1/w:0"
    assert early.variables[0].name == "a/w:0"
    named = tf.make_template("b", scale, unique_name_="same")
    with tf.variable_scope("outer"):
        named(1.0)
    assert named.variables[0].name == "outer/same/w:0"
    with pytest.raises(ValueError, match="unique_name_"):
        tf.make_template("c", scale, create_scope_now_=True, unique_name_="d")


def test_a_trainable_variable_of_a_later_call_is_an_error():
    template = tf.make_template("bad", lambda: tf.Variable(1.0))
    template()
    with pytest.raises(ValueError, match="perhaps you used tf.Variable when you meant"):
        template()


def test_custom_getter():
    template = tf.make_template(
        "t", scale, custom_getter_=lambda getter, *args, **kwargs: getter(*args, **kwargs) * 10.0
    )
    y = template(1.0)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        assert sess.run(y) == 20.0


def test_init_scope_leaves_a_branch(graph):
    made = []

    def branch():
        with tf.init_scope():
            made.append(tf.constant(2.0, name="once"))
        return made[0] * 2.0

    blocked = tf.no_op()
    with tf.name_scope("s"), tf.control_dependencies([blocked]):
        y = tf.cond(tf.placeholder_with_default(True, []), branch, lambda: 0.0)
        with tf.init_scope():
            assert tf.constant(1.0).op.name == "s/Const"
            assert tf.no_op().control_inputs == []
    assert made[0].graph is graph
    with tf.Session() as sess:
        assert sess.run(y) == 4.0


def test_what_is_not_trained():
    def build():
        tf.get_variable("a", [1])
        return tf.get_variable("b", [1], trainable=False)

    with tf.Graph().as_default():
        made = tf.make_template("scope", build)
        made()
        assert [v.name for v in made.trainable_variables] == ["scope/a:0"]
        assert [v.name for v in made.non_trainable_variables] == ["scope/b:0"]
        assert made.weights == made.variables
