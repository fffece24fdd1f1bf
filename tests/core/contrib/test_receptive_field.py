"""Receptive fields beside gradients, which say what part of an image a feature really sees."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import opdock as tf

compute = tf.contrib.receptive_field.compute_receptive_field_from_graph_def


@pytest.fixture(autouse=True)
def _graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def conv(image: Any, size: int, stride: int = 1, padding: str = "same") -> Any:
    ones = tf.ones_initializer()
    return tf.layers.conv2d(image, 1, size, stride, padding, kernel_initializer=ones)


def plain(image: Any) -> Any:
    return conv(conv(tf.pad(image, [[0, 0], [2, 2], [1, 1], [0, 0]]), 5, 2, "valid"), 3)


def pooled(image: Any) -> Any:
    return tf.layers.average_pooling2d(conv(image, 3), (2, 3), (2, 3), "same") + 1.0


def residual(image: Any) -> Any:
    return tf.nn.relu(conv(conv(image, 3), 3) + image)


def deep(image: Any) -> Any:
    for _ in range(300):
        image = conv(image, 1)
    return conv(image, 3, 2, "valid")


@pytest.mark.parametrize("network", [plain, pooled, residual, deep])
def test_a_feature_sees_what_its_gradient_says(network: Callable[[Any], Any]) -> None:
    side = 36
    image = tf.placeholder(tf.float32, [1, side, side, 1], name="image")
    features = network(image)
    field = compute(tf.get_default_graph(), image, features, input_resolution=[side, side])
    place = [3, 4]
    gradient = tf.gradients(features[0, place[1], place[0], 0], image)[0]
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        seen = sess.run(gradient, {image: np.ones([1, side, side, 1])})[0, :, :, 0]
    rows, columns = np.nonzero(seen)
    first, last = np.array([columns.min(), rows.min()]), np.array([columns.max(), rows.max()])
    np.testing.assert_array_equal(last - first + 1, field.size)
    np.testing.assert_array_equal(first, place * field.stride - field.padding)
    center = field.compute_input_center_coordinates(place)
    np.testing.assert_array_equal(center, (first + last) / 2)
    np.testing.assert_array_equal(field.compute_feature_coordinates(center), place)


def test_variables_of_both_kinds_and_constants_have_sizes() -> None:
    image = tf.placeholder(tf.float32, [1, 9, 9, 1], name="image")
    with tf.variable_scope("r", use_resource=True):
        one = conv(image, 5)
    found = tuple(compute(tf.get_default_graph(), "image", conv(one, 3)))
    assert found == (7, 7, 1, 1, 3, 3)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        frozen = tf.graph_util.convert_variables_to_constants(
            sess, tf.get_default_graph().as_graph_def(), [one.op.name]
        )
    assert tuple(compute(frozen, "image", one.op.name)) == (5, 5, 1, 1, 2, 2)


def test_paddings_that_depend_on_the_size_are_not_known_without_it() -> None:
    image = tf.placeholder(tf.float32, [1, None, None, 1], name="image")
    features = conv(image, 3, 2)
    found = compute(tf.get_default_graph(), image, features)
    assert list(found.size) == [3, 3]
    assert list(found.padding) == [None, None]
    known = compute(tf.get_default_graph(), image, features, input_resolution=[8, 9])
    assert list(known.padding) == [1, 0]


def test_ways_that_see_other_places_are_told_and_may_be_left_out() -> None:
    image = tf.placeholder(tf.float32, [1, 9, 9, 1], name="image")
    with tf.variable_scope("shifted"):
        shifted = conv(tf.pad(image, [[0, 0], [2, 0], [2, 0], [0, 0]]), 3, 1, "valid")
    features = tf.add(conv(image, 3), shifted, name="features")
    graph = tf.get_default_graph()
    with pytest.raises(ValueError, match="center shift .* horizontal"):
        compute(graph, image, features)
    found = compute(graph, "image", "features", stop_propagation=["shifted"])
    assert list(found.padding) == [1, 1]
    tf.add(features, conv(image, 1, 2, "valid")[:, :1, :1] * 0, name="other")
    tf.constant(1.0, name="alone")
    for names, message in (
        (("image", "nowhere"), "Output node was not found"),
        (("image", "alone"), "Input node was not found"),
        (("image", "other"), "Unknown layer for operation"),
    ):
        with pytest.raises(ValueError, match=message):
            compute(graph, *names, stop_propagation=["shifted"])
