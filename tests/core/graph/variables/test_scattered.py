"""Methods of variables that read and write some of their rows or slices."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf

START = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], np.float32)


@pytest.fixture(params=[False, True], ids=["ref", "resource"])
def variable(request):
    with tf.Graph().as_default():
        yield tf.Variable(START, use_resource=request.param)


def run(*fetches):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return [session.run(fetch) for fetch in fetches]


def test_some_rows_and_slices(variable):
    rows, slices = run(variable.sparse_read([2, 0]), variable.gather_nd([[1, 1], [0, 0]]))
    np.testing.assert_array_equal(rows, START[[2, 0]])
    np.testing.assert_array_equal(slices, [4.0, 1.0])


@pytest.mark.parametrize(
    ("name", "want"),
    [
        ("scatter_add", [13.0, 24.0]), ("scatter_sub", [-7.0, -16.0]),
        ("scatter_mul", [30.0, 80.0]), ("scatter_div", [0.3, 0.2]),
        ("scatter_update", [10.0, 20.0]), ("scatter_min", [3.0, 4.0]),
        ("scatter_max", [10.0, 20.0]),
    ],
)  # fmt: skip
def test_rows_are_changed(variable, name, want):
    delta = tf.IndexedSlices(tf.constant([[10.0, 20.0]]), tf.constant([1]))
    _, after = run(getattr(variable, name)(delta), variable)
    np.testing.assert_allclose(after, [START[0], want, START[2]], rtol=1e-6)
    with pytest.raises(ValueError, match="is not IndexedSlices"):
        getattr(variable, name)([1.0])


def test_members_of_a_batch_are_changed(variable):
    delta = tf.IndexedSlices(tf.constant([[9.0], [8.0], [7.0]]), tf.constant([[0], [1], [0]]))
    _, after = run(variable.batch_scatter_update(delta), variable)
    np.testing.assert_array_equal(after, [[9.0, 2.0], [3.0, 8.0], [7.0, 6.0]])


def test_which_part_a_variable_is_as_a_message():
    with tf.Graph().as_default():
        with tf.variable_scope("s", partitioner=tf.fixed_size_partitioner(2)):
            part = list(tf.get_variable("w", [4, 3]))[1]
        info = part._save_slice_info
        again = tf.Variable.SaveSliceInfo(save_slice_info_def=info.to_proto())
        assert again.spec == info.spec == "4 3 2,2:0,3"
        assert info.to_proto("s").full_name == "w"
        assert info.to_proto("t") is None


def test_who_reads_slices():
    with tf.Graph().as_default():
        slices = tf.IndexedSlices(tf.constant([1.0]), tf.constant([0]))
        negative = tf.negative(slices.values)
        assert slices.consumers() == [negative.op]
