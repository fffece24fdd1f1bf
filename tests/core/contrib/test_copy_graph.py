"""`tf.contrib.copy_graph`: what a copy computes, is called and needs."""

from __future__ import annotations

import pytest

import opdock as tf

copying = tf.contrib.copy_graph


@pytest.mark.parametrize("resource", [True, False])
@pytest.mark.parametrize("scope", ["", "there"])
def test_a_variable_has_its_name_type_and_initial_value(scope: str, resource: bool) -> None:
    with tf.Graph().as_default():
        kept = tf.get_variable(
            "a/v", initializer=[1.0, 2.0], use_resource=resource, trainable=False,
            collections=[tf.GraphKeys.GLOBAL_VARIABLES, "mine"],
        )  # fmt: skip
        trained = tf.get_variable("w", initializer=3)
    graph = tf.Graph()
    copies = [copying.copy_variable_to_graph(v, graph, scope) for v in (kept, trained)]
    before = f"{scope}/" if scope else ""
    assert [v.name for v in copies] == [f"{before}a/v:0", f"{before}w:0"]
    assert type(copies[0]) is type(kept) and copies[0].dtype == kept.dtype
    with graph.as_default():
        assert tf.trainable_variables() == copies[1:] and tf.global_variables() == copies
        assert tf.get_collection(f"{before}mine") == copies[:1]
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            first, second = sess.run(copies)
    assert first.tolist() == [1.0, 2.0] and second == 3


@pytest.mark.parametrize("resource", [True, False])
@pytest.mark.parametrize("scope", ["", "there"])
def test_an_operation_comes_with_all_that_it_needs(scope: str, resource: bool) -> None:
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [2], name="x")
        v = tf.get_variable("v", initializer=[1.0, 2.0], use_resource=resource)
        with tf.control_dependencies([v.assign_add([10.0, 10.0], name="more")]):
            with tf.device("/device:CPU:0"):
                read = v.read_value()
        turns = tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y + x), (0, x))[1]
        low, high = tf.split(turns * read, 2)
        with tf.colocate_with(low.op):
            y = tf.identity(high, name="y")
        tf.add_to_collection("out", y)
    graph = tf.Graph()
    own = copying.copy_variable_to_graph(v, graph, scope)
    made = copying.copy_op_to_graph(y, graph, [own], scope)
    again = copying.copy_op_to_graph(y.op, graph, [own], scope)
    before = f"{scope}/" if scope else ""
    assert made.name == f"{before}y:0" and made.graph is graph and again is made.op
    assert graph.get_collection(f"{before}out") == [made]
    assert made.op.colocation_groups() == [f"loc:@{before}split".encode()]
    place = copying.get_copied_op(x, graph, scope)
    with graph.as_default(), tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        assert sess.run(made, {place: [1.0, 2.0]}).tolist() == [2.0 * 4 * 12.0]
        assert sess.run(own).tolist() == [11.0, 12.0]


def test_long_chains_are_copied() -> None:
    with tf.Graph().as_default():
        x = y = tf.placeholder(tf.float32, [], name="x")
        for _ in range(3000):
            y = y + 1.0
    graph = tf.Graph()
    made = copying.copy_op_to_graph(y, graph, [])
    with graph.as_default(), tf.Session() as sess:
        assert sess.run(made, {copying.get_copied_op(x, graph): 1.0}) == 3001.0


def test_what_cannot_be_copied_is_told() -> None:
    with tf.Graph().as_default():
        x = tf.constant(1.0, name="x")
        entered = tf.raw_ops.Enter(data=x, frame_name="f")
        merged = tf.raw_ops.Merge(inputs=[entered, entered])[0]
        merged.op._update_input(1, merged + 1.0)
    with pytest.raises(ValueError, match="needs itself"):
        copying.copy_op_to_graph(merged, tf.Graph(), [])
    with pytest.raises(TypeError, match="Could not copy instance: 3"):
        copying.copy_op_to_graph(3, tf.Graph(), [])
    with pytest.raises(TypeError, match="is not a Variable"):
        copying.copy_variable_to_graph(x, tf.Graph())
    with pytest.raises(KeyError):
        copying.get_copied_op(x, tf.Graph())
