"""Variables that have their values when they are made."""

import copy
import gc
import pickle
import weakref

import numpy as np
import pytest

import opdock as tf
from opdock.graph.nodes.graph import get_default_graph


def kept() -> int:
    return len(get_default_graph().engine.resources.named("variable"))


def test_a_variable_is_a_resource_with_a_value():
    v = tf.Variable([1.0, 2.0], name="v")
    assert isinstance(v, tf.contrib.eager.Variable) and v.name == "v:0"
    assert v.numpy().tolist() == [1.0, 2.0]
    assert (v + 1).numpy().tolist() == [2.0, 3.0]
    assert "numpy=array([1., 2.]" in repr(v)


def test_updates_are_seen_at_once_and_give_the_variable():
    v = tf.Variable([1.0, 2.0])
    before = v.read_value()
    assert v.assign_add([1.0, 1.0]) is v and v.assign_sub([0.5, 0.5]) is v
    assert v.assign([5.0, 6.0], read_value=False) is None
    assert v.numpy().tolist() == [5.0, 6.0]
    assert before.numpy().tolist() == [1.0, 2.0]
    v[0].assign(9.0)
    v.scatter_update(tf.IndexedSlices([7.0], [1]))
    assert v.numpy().tolist() == [9.0, 7.0]


def test_what_is_assigned_is_the_variable_s_own():
    x = tf.constant([1.0, 2.0])
    v = tf.Variable(x)
    v.assign_add([1.0, 1.0])
    assert x.numpy().tolist() == [1.0, 2.0]


def test_variables_of_one_name_are_several():
    a, b = tf.Variable(1.0, name="same"), tf.Variable(2.0, name="same")
    assert (a.numpy(), b.numpy()) == (1.0, 2.0)
    c, d = tf.get_variable("x", [2]), tf.get_variable("x", [2])
    assert c is not d


def test_the_state_goes_with_the_variable():
    gc.collect()
    before = kept()
    v = tf.Variable(np.zeros(10))
    held = weakref.ref(v)
    assert kept() == before + 1
    del v
    tf.constant(0)
    gc.collect()
    assert held() is None and kept() == before


def test_copies_have_states_of_their_own():
    v = tf.Variable([1.0])
    other = copy.deepcopy(v)
    v.assign([2.0])
    assert other.numpy() == [1.0]


def test_what_graphs_ask_of_variables():
    v = tf.Variable(1.0)
    assert v.initializer is None and v.initialized_value().numpy() == 1.0
    with pytest.raises(RuntimeError, match="EAGER"):
        v.initial_value
    with pytest.raises(RuntimeError, match="EAGER"):
        v.eval()
    tf.global_variables_initializer()
    assert tf.global_variables() == []


def test_initializers_and_constraints():
    v = tf.get_variable(
        "w", [2, 3], initializer=tf.ones_initializer(), constraint=lambda x: tf.clip_by_norm(x, 1.0)
    )
    tf.train.GradientDescentOptimizer(0.1).apply_gradients([(tf.zeros([2, 3]), v)])
    assert np.linalg.norm(v.numpy()) == pytest.approx(1.0)


def test_the_global_step_counts():
    step = tf.train.get_or_create_global_step()
    optimizer, v = tf.train.GradientDescentOptimizer(0.5), tf.Variable(1.0)
    optimizer.minimize(lambda: v * v, global_step=step)
    assert step.numpy() == 1 and v.numpy() == 0.0


def test_a_variable_is_pickled_with_its_value():
    v = tf.Variable([1.0, 2.0], name="v", trainable=False)
    made = pickle.loads(pickle.dumps(v))
    assert (made.name, made.trainable, made.numpy().tolist()) == ("v:0", False, [1.0, 2.0])
    made.assign([0.0, 0.0])
    assert v.numpy().tolist() == [1.0, 2.0]


def test_a_template_shares_its_variables():
    template = tf.make_template("t", lambda x: tf.layers.dense(x, 2, name="d"))
    x = tf.ones([1, 3])
    assert np.array_equal(template(x).numpy(), template(x).numpy())
    assert [v.name for v in template.trainable_variables] == ["t/d/bias:0", "t/d/kernel:0"]
    other = tf.make_template("t", lambda x: tf.layers.dense(x, 2, name="d"))
    assert not np.array_equal(other(x).numpy(), template(x).numpy())


def test_templates_within_templates_have_variables_of_their_own():
    def inner():
        return tf.get_variable("v", [1], initializer=tf.zeros_initializer())

    def outer():
        parts = [tf.make_template("in", inner) for _ in range(2)]
        made = [part() for part in parts]
        assert [[v is m for v in p.variables] for p, m in zip(parts, made, strict=True)] == [
            [True], [True],
        ]  # fmt: skip
        return made

    one, other = tf.make_template("out", outer), tf.make_template("out", outer)
    assert one.variables == []
    first, again, theirs = one(), one(), other()
    assert [a is b for a, b in zip(first, again, strict=True)] == [True, True]
    assert [v.name for v in first] == ["out/in/v:0", "out/in_1/v:0"]
    assert [v.name for v in theirs] == ["out_1/in/v:0", "out_1/in_1/v:0"]
    assert [a is b for a, b in zip(one.variables, first, strict=True)] == [True, True]


def test_a_template_makes_no_trainable_variable_later():
    template = tf.make_template("t", lambda name: tf.get_variable(name, [1]))
    template("a")
    with pytest.raises(ValueError, match="Trainable variable created when calling a template"):
        template("b")
    with pytest.raises(ValueError, match="unique_name_ cannot be used"):
        tf.make_template("t", lambda: None, unique_name_="u")


def test_a_graph_is_asked_for_names_that_nobody_has() -> None:
    graph = tf.get_default_graph()
    with tf.name_scope("mine"):
        names = [graph.unique_name("slot") for _ in range(2)]
        assert names == ["mine/slot", "mine/slot_1"]
        assert tf.Variable(1.0, name="slot").name == tf.Variable(1.0, name="slot").name
