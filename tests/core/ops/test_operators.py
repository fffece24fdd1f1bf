"""Python's operators on tensors: the nodes they make, their names, and how types disagree."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf


def described(graph):
    return [(o.name, o.type) for o in graph.get_operations() if o.type != "Const"]


def run(fetch, feeds=None):
    with tf.Session() as session:
        return session.run(fetch, feeds)


@pytest.mark.parametrize(
    ("apply", "name", "kind"),
    [
        (lambda x: x + 1.0, "add", "AddV2"),
        (lambda x: x - 1.0, "sub", "Sub"),
        (lambda x: x * 2.0, "mul", "Mul"),
        (lambda x: x / 2.0, "truediv", "RealDiv"),
        (lambda x: x // 2.0, "floordiv", "FloorDiv"),
        (lambda x: x % 2.0, "mod", "FloorMod"),
        (lambda x: x**2.0, "pow", "Pow"),
        (lambda x: x < 2.0, "Less", "Less"),
        (lambda x: x <= 2.0, "LessEqual", "LessEqual"),
        (lambda x: x > 2.0, "Greater", "Greater"),
        (lambda x: x >= 2.0, "GreaterEqual", "GreaterEqual"),
    ],
)
def test_the_other_operand_is_converted_inside_the_operators_scope(graph, apply, name, kind):
    out = apply(tf.placeholder(tf.float32, [2], name="x"))
    assert (out.op.name, out.op.type) == (name, kind)
    assert [t.name for t in out.op.inputs] == ["x:0", f"{name}/y:0"]


def test_on_the_left_it_is_called_x(graph):
    out = 2.0 - tf.placeholder(tf.float32, [2], name="t")
    assert [t.name for t in out.op.inputs] == ["sub/x:0", "t:0"]


def test_two_tensors_need_no_scope_but_have_its_name(graph):
    x, y = tf.placeholder(tf.float32, name="x"), tf.placeholder(tf.float32, name="y")
    assert (x + y).name == "add:0" and (x + y).name == "add_1:0" and (x * y).name == "mul:0"
    with tf.name_scope("outer"):
        assert (x * y).name == "outer/mul:0"


def test_unary_operators(graph):
    x, b = tf.constant([-1.5, 2.0]), tf.constant([True, False])
    assert [t.op.type for t in (-x, abs(x), ~b)] == ["Neg", "Abs", "LogicalNot"]
    assert run([-x, abs(x)])[1].tolist() == [1.5, 2.0]


def test_logic(graph):
    a, b = tf.constant([True, True, False]), tf.constant([True, False, False])
    results = run([a & b, a | b, a ^ b, True & b])
    assert [r.tolist() for r in results] == [
        [True, False, False], [True, True, False], [False, True, False], [True, False, False],
    ]  # fmt: skip
    assert (a ^ b).op.name == "xor_1"


def test_equality_is_identity(graph):
    x, same = tf.constant(1.0), tf.constant(1.0)
    assert (x == same) is False and (x == x.op.outputs[0]) is True
    assert (x != 1.0) is True and len({x, same}) == 2


def test_integers_divide_as_in_python_3(graph):
    x, y = tf.constant([7, -7]), tf.constant([2, 2])
    assert run(x / y).tolist() == [3.5, -3.5] and (x / y).dtype == tf.float64
    assert run(x // y).tolist() == [3, -4] and run(x % y).tolist() == [1, 1]
    assert (tf.constant([7], tf.int16) / tf.constant([2], tf.int16)).dtype == tf.float32


def test_types_that_differ(graph):
    with pytest.raises(TypeError, match="'y' of 'AddV2' Op has type float32 that does not match"):
        tf.constant(1) + tf.constant(1.0)
    with pytest.raises(TypeError, match="int32"):
        tf.constant(2) * 1.5
    with pytest.raises(TypeError, match="must have the same dtype"):
        tf.constant(1) / tf.constant(1.0)
    with pytest.raises(TypeError, match="bool"):
        tf.constant([1]) & tf.constant([2])


def test_shapes_that_do_not_broadcast(graph):
    with pytest.raises(ValueError, match=r"must be equal, but are 3 and 4 for 'add'"):
        tf.zeros([2, 3]) + tf.zeros([2, 4])
    fed = tf.placeholder(tf.float32)
    with pytest.raises(tf.errors.InvalidArgumentError):
        run(fed + tf.zeros([2, 4]), {fed: np.zeros((2, 3))})


def test_an_operand_that_knows_tensors_is_asked(graph):
    class Knows:
        def __radd__(self, other):
            return "asked"

    assert tf.constant(1.0) + Knows() == "asked"


def test_a_numpy_array_on_the_left_does_not_take_over(graph):
    out = np.array([1.0, 2.0], np.float32) * tf.constant([3.0, 4.0])
    assert isinstance(out, tf.Tensor) and run(out).tolist() == [3.0, 8.0]


def test_strings_are_concatenated(graph):
    out = tf.constant([b"a", b"b"]) + b"c"
    assert out.op.type == "Add" and run(out).tolist() == [b"ac", b"bc"]


def test_a_sparse_tensor_times_a_dense_one(graph):
    sparse = tf.SparseTensor([[0, 1], [1, 0]], [2.0, 3.0], [2, 2])
    out = sparse * tf.constant([[1.0, 10.0], [100.0, 1000.0]])
    assert isinstance(out, tf.SparseTensor)
    assert run(out.values).tolist() == [20.0, 300.0]


def test_a_horizon_before_add_v2(graph):
    """What older programs know: graphs that were written for them have the op that they have."""
    x = tf.constant([1.0])
    with tf.compat.forward_compatibility_horizon(2019, 6, 7):
        old = [x + x, x + 1.0, 1.0 + x]
    assert [y.op.type for y in old] == ["Add"] * 3
    assert [y.op.type for y in (x + x, x + 1.0, 1.0 + x)] == ["AddV2"] * 3
    assert [value.tolist() for value in run(old)] == [[2.0]] * 3
