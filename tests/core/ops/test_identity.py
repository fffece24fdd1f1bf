"""Identities, gradient stops, checks and placeholders."""

from __future__ import annotations

import pytest

import opdock as tf


def run(fetch, feeds=None):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetch, feeds)


def names(graph):
    return [op.name for op in graph.get_operations()]


def test_a_placeholder_is_fed():
    x = tf.placeholder(tf.float32, [None, 2], name="x")
    assert x.op.type == "Placeholder" and x.shape.as_list() == [None, 2]
    with pytest.raises(tf.errors.InvalidArgumentError, match="'x' with dtype float"):
        run(x + 1.0)
    assert tf.placeholder("int32").shape.ndims is None


def test_a_default_may_be_fed_over():
    x = tf.placeholder_with_default([1.0, 2.0], [None])
    assert x.shape.as_list() == [None]
    assert run(x * 2.0).tolist() == [2.0, 4.0]
    assert run(x * 2.0, {x: [5.0]}).tolist() == [10.0]


def test_stop_and_prevent_gradient():
    x = tf.constant(2.0)
    assert tf.gradients(tf.stop_gradient(x) * 3.0, x) == [None]
    (g,) = tf.gradients(tf.stop_gradient(x) * x, x)
    assert run(g) == 2.0
    from opdock.ops.identity import prevent_gradient_op

    with pytest.raises(LookupError, match="not here"):
        tf.gradients(prevent_gradient_op(x, message="not here"), x)


def test_identity_of_composites():
    sparse = tf.SparseTensor([[0, 0]], [1.0], [2, 2])
    assert isinstance(tf.identity(sparse), tf.SparseTensor)
    slices = tf.IndexedSlices(tf.constant([1.0]), tf.constant([0]))
    assert isinstance(tf.identity(slices), tf.IndexedSlices)
    a, b = tf.identity_n([1.0, [2, 3]])
    assert a.op is b.op and b.dtype == tf.int32


def test_check_numerics_names_what_it_found():
    x = tf.check_numerics(tf.constant([1.0]) / tf.constant([0.0]), "boom")
    with pytest.raises(tf.errors.InvalidArgumentError, match="boom : Tensor had Inf values"):
        run(x)


def test_what_is_behind_a_handle_is_not_promised_to_stay():
    variable = tf.get_variable("v", [], initializer=tf.ones_initializer(), use_resource=True)
    handle = tf.guarantee_const(variable.handle)
    read = tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.float32)
    assert run(tf.guarantee_const(variable)) == 1.0
    for fetch in (handle, read):
        with pytest.raises(tf.errors.InvalidArgumentError, match="be a resource variable handle"):
            run(fetch)
