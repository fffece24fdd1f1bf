"""Softmax and cross entropies: axes, names, checks of shapes and labels, second derivatives."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf
from opdock.autodiff.checker import compute_gradient_error


def run(fetch, feeds=None):
    with tf.Session() as session:
        return session.run(fetch, feeds)


def draw(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape)


def softmax(x, axis=-1):
    powers = np.exp(x - x.max(axis=axis, keepdims=True))
    return powers / powers.sum(axis=axis, keepdims=True)


# ---------------------------------------------------------------- softmax
def test_names():
    x = tf.zeros([2, 3])
    assert tf.nn.softmax(x).op.name == "Softmax"
    assert tf.nn.log_softmax(x).op.name == "LogSoftmax"
    assert tf.nn.softmax(x, axis=0, name="s").op.name == "s"
    hot = tf.nn.softmax_cross_entropy_with_logits(labels=x, logits=x)
    assert hot.op.name == "softmax_cross_entropy_with_logits_sg/Reshape_2"
    ids = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[0, 1], logits=x)
    assert ids.op.name == (
        "SparseSoftmaxCrossEntropyWithLogits/SparseSoftmaxCrossEntropyWithLogits"
    )


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2])
def test_axes(axis):
    x = draw(2, 3, 4)
    y = tf.nn.softmax(tf.constant(x), axis=axis)
    assert y.shape.as_list() == [2, 3, 4]
    np.testing.assert_allclose(run(y), softmax(x, axis), rtol=1e-12)
    unknown, which = tf.placeholder(tf.float64), tf.placeholder(tf.int32, [])
    late = tf.nn.softmax(unknown, axis=which)
    np.testing.assert_allclose(run(late, {unknown: x, which: axis}), softmax(x, axis), rtol=1e-12)
    np.testing.assert_allclose(
        run(tf.nn.softmax(unknown, axis=axis), {unknown: x}), softmax(x, axis), rtol=1e-12
    )


def test_axis_out_of_range():
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"\(2\) must be in the range"):
        tf.nn.softmax(tf.zeros([2, 3]), axis=2)
    with pytest.raises(ValueError, match="Cannot specify both 'dim' and 'axis'"):
        tf.nn.softmax(tf.zeros([2, 3]), axis=1, dim=1)


# ---------------------------------------------------------------- cross entropy
def test_an_axis_that_is_known_late():
    axis = tf.placeholder(tf.int32, [])
    y = tf.nn.softmax(tf.constant(draw(2, 3)), axis=axis)
    np.testing.assert_allclose(run(y, {axis: -2}), softmax(draw(2, 3), 0), rtol=1e-12)
    for wrong in (2, 100, -3):
        with pytest.raises(tf.errors.InvalidArgumentError, match="out of range"):
            run(y, {axis: wrong})


def test_labels_of_a_wrong_rank_that_are_known_late():
    labels, logits = tf.placeholder(tf.int32), tf.placeholder(tf.float32, [None, 2])
    y = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"labels must be 1-D.*shape \[\]"):
        run(y, {labels: 1, logits: [[1.0, 2.0]]})


def test_gradient_to_labels_only_in_version_2():
    labels, logits = tf.constant(softmax(draw(2, 3))), tf.constant(draw(2, 3) * 2)
    old = tf.nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    new = tf.nn.softmax_cross_entropy_with_logits_v2(labels=labels, logits=logits)
    assert tf.gradients(old, labels) == [None]
    (grad,) = tf.gradients(new, labels)
    np.testing.assert_allclose(run(grad), -np.log(softmax(draw(2, 3) * 2)), rtol=1e-10)


def test_class_axis_first_and_higher_ranks():
    x, t = draw(3, 2, 4), softmax(draw(3, 2, 4) + 1, 0)
    y = tf.nn.softmax_cross_entropy_with_logits_v2(labels=t, logits=tf.constant(x), axis=0)
    assert y.shape.as_list() == [2, 4]
    np.testing.assert_allclose(run(y), -(t * np.log(softmax(x, 0))).sum(axis=0), rtol=1e-10)


def test_half_precision_is_computed_in_float32():
    x = tf.constant(np.array([[100.0, 0.0]], np.float16))
    y = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[1], logits=x)
    assert y.dtype == tf.float16 and run(y).tolist() == [100.0]


def test_sparse_shape_checks():
    with pytest.raises(ValueError, match=r"Rank mismatch: Rank of labels \(received 2\)"):
        tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels=tf.zeros([2, 3], tf.int32), logits=tf.zeros([2, 3])
        )
    with pytest.raises(ValueError, match="Shape mismatch: The shape of labels"):
        tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels=tf.zeros([3], tf.int32), logits=tf.zeros([2, 3])
        )
    with pytest.raises(ValueError, match="Logits cannot be scalars"):
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=0, logits=tf.constant(1.0))
    with pytest.raises(ValueError, match="named arguments"):
        tf.nn.sparse_softmax_cross_entropy_with_logits(tf.zeros([2, 3]), [0, 1])
    with pytest.raises(ValueError, match="Both labels and logits must be provided"):
        tf.nn.softmax_cross_entropy_with_logits(labels=[[1.0]])


def test_sparse_of_higher_and_unknown_rank():
    x, ids = draw(2, 3, 4), np.array([[0, 1, 2], [3, 0, 1]])
    want = -np.take_along_axis(np.log(softmax(x)), ids[..., None], -1)[..., 0]
    y = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=ids, logits=tf.constant(x))
    np.testing.assert_allclose(run(y), want, rtol=1e-10)
    logits, labels = tf.placeholder(tf.float64), tf.placeholder(tf.int64)
    late = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    np.testing.assert_allclose(run(late, {logits: x, labels: ids}), want, rtol=1e-10)
    with pytest.raises(tf.errors.InvalidArgumentError, match="labels"):
        run(late, {logits: x, labels: ids[:1]})


def test_label_out_of_range_names_the_value():
    logits, labels = tf.zeros([2, 3]), tf.placeholder(tf.int32, [2])
    y = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    with pytest.raises(
        tf.errors.InvalidArgumentError,
        match=r"label value of 5 which is outside the valid range of \[0, 3\)",
    ):
        run(y, {labels: [1, 5]})


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_second_derivatives(kind):
    x = tf.placeholder(tf.float64, [2, 3])
    if kind == "dense":
        labels = tf.constant(softmax(draw(2, 3) + 1))
        y = tf.nn.softmax_cross_entropy_with_logits_v2(labels=labels, logits=x)
    else:
        y = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[2, 0], logits=x)
    first = tf.gradients(y * y, x)[0]
    with tf.Session():
        error = compute_gradient_error(x, [2, 3], first, [2, 3], draw(2, 3), delta=1e-5)
    assert error < 1e-7


@pytest.mark.parametrize("classes", [3, 5000])
def test_no_second_derivative_that_nobody_asked_for(classes):
    """The backprop output gets no gradient here, however large its zeros would be."""
    x = tf.placeholder(tf.float32, [2, classes])
    loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[2, 0], logits=x)
    tf.gradients(tf.reduce_mean(loss), x)
    assert "Softmax" not in {op.type for op in tf.get_default_graph().get_operations()}


def test_classes_on_another_axis_of_an_unknown_rank() -> None:
    rng = np.random.RandomState(0)
    logits = rng.randn(3, 4, 2).astype("f")
    labels = np.eye(4, dtype="f")[rng.randint(4, size=(3, 2))].transpose(0, 2, 1)
    places = [tf.placeholder_with_default(v, None) for v in (labels, logits)]
    for axis in (1, -2):
        known = tf.nn.softmax_cross_entropy_with_logits_v2(labels, logits, axis=axis)
        found = tf.nn.softmax_cross_entropy_with_logits_v2(*places, axis=axis)
        with tf.Session() as sess:
            np.testing.assert_array_equal(*sess.run([known, found]))
