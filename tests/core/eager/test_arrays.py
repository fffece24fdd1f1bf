"""`tf.TensorArray` where operations run as they are made: a list that is changed in its place."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf


def test_elements_are_written_again_and_cleared_when_they_are_read():
    array = tf.TensorArray(tf.float32, 3)
    assert array.write(1, [4.0, 5.0]) is array
    assert array.read(0).numpy().tolist() == [0.0, 0.0]
    assert array.stack().numpy().tolist() == [[0.0, 0.0], [4.0, 5.0], [0.0, 0.0]]
    assert array.read(1).numpy().tolist() == [4.0, 5.0]
    with pytest.raises(tf.errors.InvalidArgumentError, match="Could not read index 1 twice"):
        array.read(1)
    assert array.write(1, [6.0, 7.0]).read(1).numpy().tolist() == [6.0, 7.0]
    kept = tf.TensorArray(tf.float32, 1, clear_after_read=False).write(0, 2.0)
    assert [kept.read(0).numpy(), kept.read(0).numpy()] == [2.0, 2.0]


def test_whole_tensors_take_the_place_of_all_elements():
    array = tf.TensorArray(tf.int32, 3)
    assert [int(array.unstack([1, 2, 3]).read(i)) for i in range(3)] == [1, 2, 3]
    assert array.unstack([[1, 2], [3, 4], [5, 6]]).gather([2, 0]).numpy().tolist() == [
        [5, 6], [1, 2],
    ]  # fmt: skip
    assert [r.tolist() for r in (array.split([7, 8, 9], [1, 2, 0]).read(1).numpy(),)] == [[8, 9]]
    assert array.split([7, 8, 9], [1, 2, 0]).concat().numpy().tolist() == [7, 8, 9]
    assert array.scatter([2, 0], [[1], [2]]).concat().numpy().tolist() == [2, 8, 9, 1]
    assert int(array.size()) == 3
    array.close()
    assert int(array.size()) == 0
    grown = tf.TensorArray(tf.int32, 0, dynamic_size=True).unstack([1, 2]).write(3, 5)
    assert grown.write(2, 4).stack().numpy().tolist() == [1, 2, 4, 5]
    assert grown.unstack(np.zeros([0], np.int32)).stack().shape == (0,)


@pytest.mark.parametrize(("use", "kind", "text"), [
    (lambda a: a.read(-1), tf.errors.OutOfRangeError, "Reading from negative indices"),
    (lambda a: a.read(7), tf.errors.OutOfRangeError, "read from index 7 but array size is: 2"),
    (lambda a: a.write(-1, 1.0), tf.errors.OutOfRangeError, "Writing to negative indices"),
    (lambda a: a.write(2, 1.0), tf.errors.OutOfRangeError, "not resizeable and size is: 2"),
    (lambda a: a.write(0, tf.constant(1)), tf.errors.InvalidArgumentError, "write dtype int32"),
    (lambda a: a.write(0, 1.0).write(1, [1.0]), ValueError, "Incompatible shape for value"),
    (lambda a: a.read(0), ValueError, "does not say which zeros"),
    (lambda a: a.unstack([1.0, 2.0, 3.0]), ValueError, "Cannot unstack 3 tensors"),
    (lambda a: a.write(1, 1.0).concat(), tf.errors.InvalidArgumentError, "saw a scalar shape"),
    (lambda a: a.split([1.0], [[1]]), tf.errors.InvalidArgumentError, "lengths to be a vector"),
    (lambda a: a.split(1.0, [1, 0]), tf.errors.InvalidArgumentError, "at least a vector"),
    (lambda a: a.split([1.0], [1, 1]), tf.errors.InvalidArgumentError, "sum of lengths is 2"),
    (lambda a: a.split([1.0], [1]), tf.errors.InvalidArgumentError, r"\(2 vs. 1\)"),
    (lambda a: a.grad("x"), NotImplementedError, "not supported when executing eagerly"),
])  # fmt: skip
def test_mistakes_are_told_in_tensorflows_words(use, kind, text):
    with pytest.raises(kind, match=text):
        use(tf.TensorArray(tf.float32, 2))


def test_handles_are_a_graphs():
    with pytest.raises(ValueError, match="handles are not supported"):
        tf.TensorArray(tf.float32, handle=tf.constant(0))
    with pytest.raises(ValueError, match="Size must be declared"):
        tf.TensorArray(tf.float32)
    with tf.Graph().as_default():
        assert tf.TensorArray(tf.float32, 1).handle.dtype == tf.resource
    array = tf.TensorArray(tf.float32, 1)
    assert isinstance(array, tf.TensorArray)
    assert array.identity() is array
    assert array.handle is None


def test_a_tape_differentiates_by_elements():
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        array = tf.TensorArray(tf.float32, 2).write(0, x * x).write(1, 5.0 * x)
        y = array.read(0) * array.read(1)
    assert tape.gradient(y, x).numpy() == pytest.approx(15 * 9.0)


def test_loops_take_arrays_as_they_are():
    filled = tf.while_loop(
        lambda i, a: i < 3, lambda i, a: (i + 1, a.write(i, i * i)),
        (0, tf.TensorArray(tf.int32, 3)),
    )[1]  # fmt: skip
    assert filled.stack().numpy().tolist() == [0, 1, 4]


def test_an_operation_of_no_results_in_a_list_gives_an_empty_list():
    assert tf.unstack(tf.zeros([0, 2])) == []
