"""`Operation` and `Tensor`: what users see of nodes and edges."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import opdock as tf


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def test_an_operation_knows_itself(graph):
    a = tf.constant([[1.0, 2.0]], name="a")
    m = tf.matmul(a, a, transpose_b=True, name="m")
    op = m.op
    assert (op.name, op.type, op.graph) == ("m", "MatMul", graph)
    assert list(op.inputs) == [a, a]
    assert op.outputs == [m]
    assert op.values() == (m,)
    assert op.control_inputs == []
    assert repr(op) == "<tf.Operation 'm' type=MatMul>"
    assert op.op_def.name == "MatMul"
    assert 'name: "m"' in str(op)


def test_attributes_are_as_tensorflow_gives_them():
    x = tf.placeholder(tf.float32, [None, 3])
    assert x.op.get_attr("dtype") is tf.float32
    assert [d.size for d in x.op.get_attr("shape").dim] == [-1, 3]
    c = tf.constant([1, 2])
    assert list(tf.make_ndarray(c.op.get_attr("value"))) == [1, 2]
    conv = tf.nn.conv2d(tf.zeros([1, 4, 4, 1]), tf.zeros([2, 2, 1, 1]), [1, 1, 1, 1], "SAME")
    assert conv.op.get_attr("padding") == b"SAME"
    assert list(conv.op.get_attr("strides")) == [1, 1, 1, 1]
    assert conv.op.get_attr("use_cudnn_on_gpu") is True
    with pytest.raises(ValueError, match="no attr named 'x'"):
        conv.op.get_attr("x")


def test_node_def():
    with tf.device("/gpu:1"), tf.control_dependencies([tf.no_op(name="first")]):
        y = tf.add(tf.constant(1.0, name="a"), tf.constant(2.0, name="b"), name="y")
    node = y.op.node_def
    assert (node.name, node.op, node.device) == ("y", "Add", "/device:GPU:1")
    assert list(node.input) == ["a", "b"]
    assert list(tf.constant(1).op.node_def.input) == []


def test_where_an_operation_was_made():
    x = tf.constant(1)
    file, line, function, text = x.op.traceback[-1]
    assert file == __file__
    assert function == "test_where_an_operation_was_made"
    assert "tf.constant(1)" in text
    assert x.op.user_line == f"{__file__}:{line}"


def test_text_of_tensors():
    assert str(tf.placeholder(tf.float32, [None, 2], "a")) == (
        'Tensor("a:0", shape=(?, 2), dtype=float32)'
    )
    assert str(tf.placeholder(tf.int32, name="b")) == 'Tensor("b:0", dtype=int32)'
    assert (
        repr(tf.placeholder(tf.float32, [2], "c")) == "<tf.Tensor 'c:0' shape=(2,) dtype=float32>"
    )
    assert repr(tf.placeholder(tf.bool, name="d")) == "<tf.Tensor 'd:0' shape=<unknown> dtype=bool>"
    with tf.device("/cpu:0"):
        e = tf.constant(1, name="e")
    assert str(e) == 'Tensor("e:0", shape=(), dtype=int32, device=/device:CPU:0)'


def test_set_shape_refines_and_never_contradicts():
    x = tf.placeholder(tf.float32)
    x.set_shape([None, 3])
    x.set_shape([2, None])
    assert x.shape.as_list() == x.get_shape().as_list() == [2, 3]
    for wrong in ([4, 3], [2], [2, 3, 1]):
        with pytest.raises(ValueError, match="must be equal"):
            x.set_shape(wrong)
    x.set_shape(None)
    assert x.shape.as_list() == [2, 3]


def test_a_static_shape_is_one_object_until_more_is_known():
    x = tf.placeholder(tf.float32, [None, 3])
    before = x.shape
    assert x.shape is before and x.get_shape() is before
    x.set_shape([2, 3])
    assert x.shape.as_list() == [2, 3] and before.as_list() == [None, 3]


def test_consumers():
    x = tf.constant(1.0)
    assert x.consumers() == []
    y, z = x + 1, x * x
    assert x.consumers() == [y.op, z.op] or x.consumers() == [y.op, z.op, z.op]


def test_equality_is_identity():
    a, b = tf.constant(1), tf.constant(1)
    assert a == a
    assert a != b
    assert len({a, b, a}) == 2
    assert copy.copy(a) is a
    assert (a == 1) is False


def test_what_a_symbolic_tensor_refuses():
    x = tf.placeholder(tf.float32, [2], name="x")
    with pytest.raises(TypeError, match="Python `bool` is not allowed"):
        bool(x)
    with pytest.raises(TypeError, match="Python `bool` is not allowed"):
        x < 3 and x > 1
    with pytest.raises(TypeError, match="iterating over"):
        list(x)
    with pytest.raises(TypeError, match="len is not well defined"):
        len(x)
    with pytest.raises(NotImplementedError, match="symbolic Tensor \\(x:0\\)"):
        np.asarray(x)
    with pytest.raises(TypeError):
        range(x)


def test_eval_and_run_need_a_session_of_the_graph():
    x = tf.constant(3)
    with pytest.raises(ValueError, match="Cannot evaluate tensor using `eval\\(\\)`: No default"):
        x.eval()
    with pytest.raises(ValueError, match="Cannot execute operation using `run\\(\\)`: No default"):
        x.op.run()
    with tf.Session() as session:
        assert x.eval() == 3
        assert x.eval({x: 4}) == 4
        assert x.op.run() is None
        with tf.Graph().as_default():
            other = tf.constant(1)
            with pytest.raises(ValueError, match="graph is different"):
                other.eval()
            with pytest.raises(ValueError, match="graph is different"):
                other.eval(session=session)


def test_numpy_on_the_left_gives_a_tensor():
    x = tf.placeholder(tf.float32, [2])
    for y in (np.ones(2, np.float32) + x, np.float32(2) * x, 1 - x, [1.0, 2.0] / x):
        assert isinstance(y, tf.Tensor)
    with tf.Session() as session:
        assert list(session.run(np.array([1, 2], np.float32) - x, {x: [1, 1]})) == [0, 1]


@pytest.mark.parametrize("resource", [False, True])
def test_operators_between_variables_and_everything(resource):
    v = tf.Variable([4.0, 9.0], use_resource=resource)
    w = tf.Variable([2.0, 2.0], use_resource=resource)
    n = tf.Variable([7, 9], use_resource=resource)
    table = [
        (v + w, [6, 11]), (v - 1, [3, 8]), (1 - v, [-3, -8]), (v * w, [8, 18]), (v / w, [2, 4.5]),
        (2 / w, [1, 1]), (v // w, [2, 4]), (n % 4, [3, 1]), (v**2, [16, 81]), (2**w, [4, 4]),
        (-v, [-4, -9]), (abs(-v), [4, 9]), (v > 5, [False, True]), (w <= v, [True, True]),
        (v[1], 9), (v[:1], [4]), (n // 2, [3, 4]), (np.ones(2, np.float32) + v, [5, 10]),
        ((v > 5) & (w > 0), [False, True]), (~(v > 5), [True, False]), ((v > 5) | True, [1, 1]),
    ]  # fmt: skip
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for (_, want), got in zip(table, session.run([t for t, _ in table]), strict=True):
            np.testing.assert_array_equal(got, want)


def test_overriding_an_operator_that_is_none():
    with pytest.raises(ValueError, match="disallowed"):
        tf.Tensor._override_operator("__len__", lambda a: 1)


def test_editing_a_node_is_seen_by_running_sessions():
    a, b = tf.constant(1), tf.constant(5)
    y = tf.identity(a) * 2
    with tf.Session() as session:
        assert session.run(y) == 2
        y.op.inputs[0].op._update_input(0, b)
        assert session.run(y) == 10


def test_an_input_is_replaced_where_it_fits() -> None:
    with tf.Graph().as_default():
        x, y = tf.constant(1), tf.constant(2)
        z = x + y
        z.op._update_input(0, y)
        assert (x.consumers(), y.consumers()) == ([], [z.op, z.op])
        with pytest.raises(tf.errors.OutOfRangeError, match=r"index \[2\] is greater than"):
            z.op._update_input(2, x)
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"shapes: \[3\] and \[\]"):
            z.op._update_input(0, tf.constant([1, 2, 3]))
        z.op._add_control_input(x.op)
        assert x.op._control_outputs == [z.op]
        z.op._remove_all_control_inputs()
        assert z.op.control_inputs == []


def test_references_compare_by_identity() -> None:
    with tf.Graph().as_default():
        x, v = tf.constant(1), tf.Variable(1)
        kept = {x.experimental_ref(): "x", v.experimental_ref(): "v"}
        assert kept[x.experimental_ref()] == "x"
        assert v.experimental_ref().deref() is v
        assert x.experimental_ref() != tf.constant(1).experimental_ref()


def test_inputs_cannot_be_changed_in_place():
    with tf.Graph().as_default():
        total = tf.add(1.0, 2.0).op
    with pytest.raises(AttributeError, match="append"):
        total.inputs.append(None)
    assert len(total.inputs) == 2


def test_traceback_with_start_lines_says_where_functions_begin():
    with tf.Graph().as_default():
        op = tf.no_op()
    assert [frame[:4] for frame in op.traceback_with_start_lines] == op.traceback
    first = test_traceback_with_start_lines_says_where_functions_begin.__code__.co_firstlineno
    assert first in [frame[4] for frame in op.traceback_with_start_lines]


def test_an_operation_is_no_tensor():
    with tf.Graph().as_default():
        op = tf.no_op("nothing")
        with pytest.raises(TypeError, match="Can't convert Operation 'nothing' to Tensor"):
            tf.convert_to_tensor(op)
        with pytest.raises(TypeError, match=r"Can't convert Operation .*target dtype=tf.int32"):
            tf.convert_to_tensor(op, tf.int32)
