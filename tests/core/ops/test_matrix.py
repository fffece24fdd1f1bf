"""Transposition, diagonals, bands, blocks of space and patches."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf


def run(fetch, feeds=None):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetch, feeds)


def names(graph):
    return [op.name for op in graph.get_operations()]


def test_transpose(graph):
    x = tf.placeholder(tf.float32, [2, None, 3])
    assert tf.transpose(x).shape.as_list() == [3, None, 2]
    assert names(graph)[1:] == ["transpose/perm", "transpose"] or "transpose" in names(graph)
    assert tf.transpose(x, [1, 0, 2]).shape.as_list() == [None, 2, 3]
    assert tf.transpose(x, tf.placeholder(tf.int32, [3])).shape.as_list() == [None] * 3
    assert run(tf.transpose([[1 + 2j]], conjugate=True)).tolist() == [[1 - 2j]]
    p = tf.placeholder(tf.float32)
    assert run(tf.transpose(p), {p: np.zeros((2, 3))}).shape == (3, 2)
    assert run(tf.matrix_transpose(p), {p: np.zeros((4, 2, 3))}).shape == (4, 3, 2)
    with pytest.raises(ValueError, match="Dimension must be 2 but is 3"):
        tf.transpose(tf.zeros([2, 3]), [0, 1, 2])
    with pytest.raises(ValueError, match="rank >= 2"):
        tf.matrix_transpose(tf.zeros([2]))


def test_a_large_transpose_is_still_right():
    x = np.arange(700 * 900, dtype=np.float32).reshape(700, 900)
    p = tf.placeholder(tf.float32, [700, 900])
    assert np.array_equal(run(tf.transpose(p) + 0.0, {p: x}), x.T)


def test_diagonals():
    assert run(tf.diag([1, 2])).tolist() == [[1, 0], [0, 2]]
    assert run(tf.diag_part([[1, 2], [3, 4]])).tolist() == [1, 4]
    assert run(tf.matrix_diag([1, 2], k=1)).tolist() == [[0, 1, 0], [0, 0, 2], [0, 0, 0]]
    assert run(tf.matrix_diag([[8, 9], [1, 2]], k=(0, 1), padding_value=5)).tolist() == [
        [1, 8],
        [5, 2],
    ]
    assert run(tf.matrix_diag_part([[1, 2], [3, 4]], k=-1)).tolist() == [3]
    assert run(tf.matrix_set_diag([[1, 2], [3, 4]], [9], k=1)).tolist() == [[1, 9], [3, 4]]
    assert run(tf.matrix_diag([True, False])).tolist() == [[True, False], [False, False]]
    x = tf.placeholder(tf.float32, [None, 2, 3])
    assert tf.matrix_diag_part(x).shape.as_list() == [None, 2]
    assert tf.matrix_diag_part(x, k=2).shape.as_list() == [None, 1]
    (g,) = tf.gradients(tf.matrix_diag_part(x), x)
    assert run(g, {x: np.zeros((1, 2, 3))}).tolist() == [[[1, 0, 0], [0, 1, 0]]]


def test_bands():
    full = tf.ones([3, 3], tf.int32)
    assert run(tf.matrix_band_part(full, 0, -1)).tolist() == [[1, 1, 1], [0, 1, 1], [0, 0, 1]]
    assert run(tf.matrix_band_part(full, -1, 0)).tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 1]]


def test_space_and_batch():
    x = tf.placeholder(tf.float32, [None, 4, 4, 1])
    out = tf.space_to_batch(x, [[0, 0], [0, 0]], 2)
    assert out.shape.as_list() == [None, 2, 2, 1]
    back = tf.batch_to_space(out, [[0, 0], [0, 0]], block_size=2)
    image = np.arange(32.0).reshape(2, 4, 4, 1)
    assert np.array_equal(run(back, {x: image}), image)
    assert tf.space_to_depth(x, 2).shape.as_list() == [None, 2, 2, 4]
    assert np.array_equal(run(tf.depth_to_space(tf.space_to_depth(x, 2), 2), {x: image}), image)
    with pytest.raises(ValueError, match="less than minimum 2"):
        tf.space_to_depth(x, 1)


def test_required_paddings():
    pads, crops = tf.required_space_to_batch_paddings([5, 6], [2, 4])
    assert pads.op.type == "Const"
    assert run(pads).tolist() == [[0, 1], [0, 2]] and run(crops).tolist() == [[0, 1], [0, 2]]
    size = tf.placeholder(tf.int32, [2])
    pads, crops = tf.required_space_to_batch_paddings(size, [2, 4], [[1, 0], [0, 0]])
    assert run(pads, {size: [5, 6]}).tolist() == [[1, 0], [0, 2]]


def test_patches():
    x = tf.constant(np.arange(16.0).reshape(1, 4, 4, 1))
    out = tf.extract_image_patches(x, [1, 2, 2, 1], [1, 2, 2, 1], [1, 1, 1, 1], "VALID")
    assert out.shape.as_list() == [1, 2, 2, 4]
    assert run(out)[0, 0, 0].tolist() == [0, 1, 4, 5]
    (g,) = tf.gradients(out, x)
    assert run(g).reshape(4, 4).tolist() == [[1] * 4] * 4


def test_confusion_matrix():
    assert run(tf.confusion_matrix([0, 1, 1], [0, 1, 0])).tolist() == [[1, 0], [1, 1]]
    weighted = tf.confusion_matrix([0, 1], [1, 1], 3, tf.float32, weights=[0.5, 2.0])
    assert weighted.shape.as_list() == [3, 3]
    assert run(weighted).tolist() == [[0, 0.5, 0], [0, 2, 0], [0, 0, 0]]
    labels = tf.placeholder(tf.int32, [None])
    checked = tf.confusion_matrix(labels, [0], 3)
    with pytest.raises(tf.errors.InvalidArgumentError, match="out of bound"):
        run(checked, {labels: [5]})
    with pytest.raises(tf.errors.InvalidArgumentError, match="negative"):
        run(checked, {labels: [-1]})


def test_an_axis_that_is_missing_is_found_when_the_graph_runs():
    turned = tf.transpose(tf.zeros([2, 3, 5]), [0, 1, 1])
    with pytest.raises(tf.errors.InvalidArgumentError, match="2 is missing from"):
        run(turned)


@pytest.mark.parametrize("name", ["ksizes", "strides", "rates"])
def test_patches_are_of_space_alone(name):
    sizes = {key: [1, 1, 1, 1] for key in ("ksizes", "strides", "rates")}
    with pytest.raises(tf.errors.UnimplementedError, match=f"Only support {name} across space"):
        tf.extract_image_patches(
            tf.zeros([2, 3, 3, 1]), **{**sizes, name: [2, 1, 1, 1]}, padding="VALID"
        )
