"""Common subexpressions: equal work is done once, and only equal work is equal."""

from __future__ import annotations

import tempfile

import numpy as np
import pytest

import opdock as tf


def count(program, op):
    return sum(n.op == op for n in program.block.nodes)


def test_equal_nodes_are_merged(compiled):
    x = tf.placeholder(tf.float32, [2])
    y = tf.exp(x) + tf.exp(x)
    with tf.Session() as session:
        assert count(compiled(session, y, {x: [0.0, 0.0]}), "Exp") == 1
        np.testing.assert_array_equal(session.run(y, {x: [0.0, 0.0]}), [2, 2])
        assert any("equal to 'Exp'" in r.why for r in session.explain(y, {x: [0.0, 0.0]}).rows)


def test_merging_goes_on_through_merged_inputs(compiled):
    x = tf.placeholder(tf.float32, [2])
    y = tf.exp(tf.sin(x)) + tf.exp(tf.sin(x))
    with tf.Session() as session:
        program = compiled(session, y, {x: [0.0, 0.0]})
        assert (count(program, "Sin"), count(program, "Exp")) == (1, 1)


def test_order_of_inputs_and_attributes_count(compiled):
    a, b = tf.placeholder(tf.float32, [2, 2]), tf.placeholder(tf.float32, [2, 2])
    feed = {a: [[1.0, 2.0], [3.0, 4.0]], b: [[0.0, 1.0], [0.0, 0.0]]}
    fetch = [a - b, b - a, tf.matmul(a, b), tf.matmul(a, b, transpose_a=True)]
    with tf.Session() as session:
        got = session.run(fetch, feed)
        assert count(compiled(session, fetch, feed), "Sub") == 2
        assert count(compiled(session, fetch, feed), "MatMul") == 2
    np.testing.assert_array_equal(got[0], -got[1])


def test_zeros_of_different_sign_are_different(compiled):
    x = tf.placeholder(tf.float32, [])
    fetch = [x / tf.constant(0.0), x / tf.constant(-0.0)]
    with tf.Session() as session:
        assert session.run(fetch, {x: 1.0}) == [np.inf, -np.inf]


def test_constants_of_different_types_are_different():
    fetch = [tf.constant(1), tf.constant(1.0), tf.constant(True), tf.constant(1, tf.int64)]
    with tf.Session() as session:
        assert [np.asarray(v).dtype.name for v in session.run(fetch)] == [
            "int32", "float32", "bool", "int64",
        ]  # fmt: skip


def test_random_ops_are_never_equal():
    a, b = tf.random_uniform([4], seed=1), tf.random_uniform([4], seed=2)
    with tf.Session() as session:
        x, y = session.run([a, b])
    assert (x != y).any()


def test_two_reads_of_a_variable_with_a_write_between_are_different():
    for resource in (False, True):
        v = tf.Variable(1.0, use_resource=resource)
        before = v.read_value() * 1.0 + 0.0
        with tf.control_dependencies([before]):
            write = v.assign_add(1.0)
        with tf.control_dependencies([write]):
            after = v.read_value() * 1.0 + 0.0
        with tf.Session() as session:
            session.run(v.initializer)
            assert session.run([before, after]) == [1, 2]


@pytest.mark.parametrize("resource", [False, True])
def test_what_reads_a_variable_twice_with_no_write_between_is_one(compiled, resource):
    v = tf.Variable([0.0, 1.0], use_resource=resource)
    doubled = tf.exp(v) + tf.exp(v)
    with tf.control_dependencies([doubled]):
        write = v.assign_add([1.0, 1.0])
    with tf.control_dependencies([write]):
        after = tf.exp(v.read_value())
    with tf.Session() as session:
        session.run(v.initializer)
        assert count(compiled(session, [doubled, after]), "Exp") == 2
        for got, exact in zip(
            session.run([doubled, after]), ([2, 2 * np.e], [np.e, np.e**2]), strict=True
        ):
            np.testing.assert_allclose(got, exact, rtol=1e-6)


def test_other_controls_make_another_node():
    v = tf.Variable(0)
    x = tf.placeholder(tf.float32, [])
    with tf.control_dependencies([v.assign_add(1)]):
        a = tf.exp(x)
    b = tf.exp(x)
    with tf.Session() as session:
        session.run(v.initializer)
        session.run(b, {x: 0.0})
        assert session.run(v) == 0
        session.run([b, a], {x: 0.0})
        assert session.run(v) == 1


def test_other_devices_make_another_node(compiled):
    x = tf.placeholder(tf.float32, [2])
    with tf.device("/device:ECHO:0"):
        a = tf.exp(x)
    with tf.device("/device:ECHO:1"):
        b = tf.exp(x)
    with tf.Session() as session:
        program = compiled(session, [a, b], {x: [1.0, 2.0]})
        where = {n.target.name[-6:] for n in program.block.nodes if n.op == "Exp"}
        assert where == {"ECHO:0", "ECHO:1"}


def test_each_print_prints(capfd):
    with tempfile.TemporaryDirectory():
        x = tf.placeholder(tf.float32, [])
        y = tf.Print(x, [x], "seen ") + tf.Print(x, [x], "seen ")
        with tf.Session() as session:
            session.run(y, {x: 1.0})
    assert capfd.readouterr().err.count("seen ") == 2
