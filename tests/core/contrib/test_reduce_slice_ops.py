"""`tf.contrib.reduce_slice_ops`: its functions, and shapes that are known before they run."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf

slices = tf.contrib.reduce_slice_ops
ROWS = np.array([[1.0, -2.0], [3.0, 4.0], [-5.0, 6.0]], np.float32)
RANGES = [[0, 2], [1, 1], [1, 9]]


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default():
        yield


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("sum", [[4, 2], [0, 0], [-2, 10]]),
        ("prod", [[3, -8], [1, 1], [-15, 24]]),
        ("max", [[3, 4], [-np.inf, -np.inf], [3, 6]]),
        ("min", [[1, -2], [np.inf, np.inf], [-5, 4]]),
    ],
)
@pytest.mark.parametrize("known", [True, False])
def test_ranges_are_reduced(name: str, expected: list, known: bool) -> None:
    place = tf.placeholder(tf.float32, [3, 2] if known else [None, None])
    axis = tf.placeholder_with_default(np.int64(0), [])
    found = getattr(slices, f"reduce_slice_{name}")(place, RANGES, 0 if known else axis)
    turned = getattr(slices, f"reduce_slice_{name}")(tf.transpose(place), RANGES, -1)
    assert found.op.type == f"ReduceSlice{name.capitalize()}"
    assert found.shape.as_list() == ([3, 2] if known else [None, None])
    with tf.Session() as sess:
        rows, columns = sess.run([found, turned], {place: ROWS})
    np.testing.assert_array_equal(rows, expected)
    np.testing.assert_array_equal(columns.T, expected)


def test_a_vector_is_of_neighbours() -> None:
    found = slices.reduce_slice_max(np.array([4, 9, 2], np.int32), [0, 1, 1, 3], 0)
    assert found.shape.as_list() == [3]
    with tf.Session() as sess:
        assert sess.run(found).tolist() == [4, np.iinfo(np.int32).min, 9]
    with pytest.raises(ValueError, match="axis 1 is not one"):
        slices.reduce_slice_sum([1.0], [0, 1], 1)
    with pytest.raises(ValueError, match="a vector or a matrix"):
        slices.reduce_slice_sum([1.0], [[[0, 1]]], 0)
