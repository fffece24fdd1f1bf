"""Resource variables: what a handle says of the variable, and what updates return."""

from __future__ import annotations

import pytest

import opdock as tf
from opdock.graph.nodes.constant_value import constant_value
from opdock.ops.registry import get


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def variable(value, **kwargs):
    return tf.Variable(value, use_resource=True, **kwargs)


def run(*fetches):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetches)


def test_a_handle_tells_type_and_shape():
    v = variable([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    assert get("ReadVariableOp")(v.handle, dtype=tf.float32).shape.as_list() == [3, 2]
    rows = get("ResourceGather")(v.handle, [[0, 1]], dtype=tf.float32)
    assert rows.shape.as_list() == [1, 2, 2]
    cells = get("ResourceGatherNd")(v.handle, [[0, 1]], dtype=tf.float32)
    assert cells.shape.as_list() == [1]
    assert constant_value(get("VariableShape")(v.handle)).tolist() == [3, 2]
    inside = tf.cond(
        tf.placeholder(tf.bool), lambda: get("ReadVariableOp")(v.handle, dtype=tf.float32),
        lambda: tf.zeros([3, 2]),
    )  # fmt: skip
    assert inside.shape.as_list() == [3, 2]


def test_what_does_not_fit_the_handle():
    v = variable([0, 1, 2, 3])
    with pytest.raises(ValueError, match=r"Shapes \(4,\) and \(\) are incompatible"):
        v.assign(1)
    with pytest.raises(ValueError, match="Shapes must be equal rank, but are 1 and 0"):
        v.assign_add(1)
    with pytest.raises(ValueError, match="wrong dtype. Expected int32 got float32"):
        get("ReadVariableOp")(v.handle, dtype=tf.float32)
    with pytest.raises(ValueError, match="wrong dtype. Expected int32 got float32"):
        get("AssignVariableOp")(v.handle, [1.0, 2.0, 3.0, 4.0])
    with pytest.raises(ValueError, match=r"are 3 and 2|must be equal"):
        tf.scatter_update(v, [0, 1], [0, 1, 2])


def test_an_update_is_waited_for_without_a_read():
    v = variable(1.0)
    update = v.assign_add(1.0)
    assert tf.group(update).control_inputs == [update.op]
    with tf.control_dependencies([update]):
        later = tf.no_op()
    assert later.control_inputs == [update.op]
    assert update.op.outputs == [] and update.name == update.op.name


def test_an_update_is_the_variable_after_it():
    v = variable([1.0, 2.0])
    twice = v.assign_add([1.0, 1.0]).assign_add([10.0, 10.0])
    assert isinstance(twice, tf.Variable)
    assert run(twice, twice * 2, tf.gather(twice, [1]))[0].tolist() == [12, 13]
    after = v.assign([5.0, 6.0])
    assert [x.tolist() for x in run(after + 1, after.sparse_read([0]))] == [[6, 7], [5]]


def test_updates_in_a_branch():
    v = variable(1.0)
    choose = tf.placeholder(tf.bool)
    result = tf.cond(choose, lambda: v.assign_add(2.0), lambda: v.assign(7.0))
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run(result, {choose: True}) == 3
        assert session.run(result, {choose: False}) == 7
        assert session.run(v) == 7


def test_updates_of_rows():
    v = variable([2.0, 6.0])
    rows = tf.IndexedSlices(tf.constant([2.0]), tf.constant([1]))
    updates = [v.scatter_mul, v.scatter_div, v.scatter_max, v.scatter_min]
    for update, expected in zip(updates, ([2, 12], [2, 3], [2, 6], [2, 2]), strict=True):
        assert run(update(rows))[0].tolist() == expected


def test_a_cached_value():
    with tf.device("/job:ps"):
        v = variable(2.0, caching_device="/job:localhost")
    assert v.value().device == "/job:localhost"
    assert v.value() is v.value()
    with pytest.raises(ValueError, match="no attr"):
        v.value().op.get_attr("_class")
    again = tf.Variable.from_proto(v.to_proto())
    assert again.value() is v.value()


def test_an_assignment_is_made_in_the_graph_of_the_variable():
    v = variable(1.0)
    with tf.Graph().as_default():
        assert v.assign(2.0).graph is v.graph


def test_a_step_may_assign_another_shape():
    v = variable([[1.0]])
    value = tf.placeholder(tf.float32)
    with tf.Session() as session:
        assert session.run(v.assign(value), {value: [[1.0, 2.0]]}).tolist() == [[1, 2]]
        assert session.run(v).tolist() == [[1, 2]]
