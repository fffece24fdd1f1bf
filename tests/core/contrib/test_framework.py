"""`tf.contrib.framework`: tensors of known shapes, and the graph that tensors are in."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import opdock as tf
from opdock.contrib import framework


@pytest.fixture(autouse=True)
def _graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def test_shapes_are_made_sure_of_now_or_later() -> None:
    known = tf.ones([2, 3])
    assert framework.with_shape([2, 3], known) is known
    with pytest.raises(ValueError, match="Invalid shape for tensor ones:0"):
        framework.with_shape([2, 4], known)
    with pytest.raises(ValueError, match="Invalid rank 2 for shape"):
        framework.with_shape(np.ones([1, 1], np.int32), known)
    with pytest.raises(ValueError, match="Invalid dtype .* for shape"):
        framework.with_shape(tf.constant([2.0]), known)
    assert framework.with_shape([], tf.ones([1])).shape.as_list() == []
    late = tf.placeholder(tf.float32, name="late")
    checked = framework.with_shape([2, -1], late)
    assert checked.shape.as_list() == [2, None]
    same = framework.with_same_shape(late, known)
    with tf.Session() as sess:
        assert sess.run(checked, {late: np.ones([2, 5])}).shape == (2, 5)
        for bad in ([3, 5], [2]):
            with pytest.raises(tf.errors.InvalidArgumentError, match="Wrong shape for late:0"):
                sess.run(checked, {late: np.ones(bad)})
        with pytest.raises(tf.errors.InvalidArgumentError, match="Wrong shape for ones:0"):
            sess.run(same, {late: np.ones([3, 2])})


def test_sums_scalars_and_squeezes() -> None:
    total = framework.reduce_sum_n([tf.ones([2, 3]), tf.constant(4.0)])
    predictions, labels = framework.remove_squeezable_dimensions(tf.ones([4, 1]), tf.ones([4]))
    assert [predictions.shape.as_list(), labels.shape.as_list()] == [[4], [4]]
    with tf.Session() as sess:
        assert sess.run(total) == 10.0
    with pytest.raises(ValueError, match="No tensors provided"):
        framework.reduce_sum_n([])
    with pytest.raises(ValueError, match="Expected integer type for"):
        framework.assert_scalar_int(tf.constant(1.0))
    assert framework.assert_scalar_int(3).shape.as_list() == []


def test_the_graph_of_tensors() -> None:
    here, graph = tf.constant(1), tf.get_default_graph()
    with tf.Graph().as_default() as other:
        there = tf.constant(1)
        assert framework.get_graph_from_inputs(["x", here.op]) is graph
        assert framework.get_graph_from_inputs([]) is other
        with pytest.raises(ValueError, match="must be from the same graph as"):
            framework.get_graph_from_inputs([here, there])
        with pytest.raises(ValueError, match="not from the passed-in graph"):
            framework.get_graph_from_inputs([here], graph=other)
        with tf.name_scope("a"), tf.name_scope("b"):
            assert framework.get_name_scope() == "a/b"


def _whole(kernel: np.ndarray, size: int) -> np.ndarray:
    """The matrix of a convolution over a ring (or torus) of pixels."""
    space = kernel.ndim - 2
    inputs, outputs = kernel.shape[-2:]
    pixels = list(np.ndindex(*[size] * space))
    whole = np.zeros((len(pixels) * inputs, len(pixels) * outputs))
    for row, at in enumerate(pixels):
        for step in np.ndindex(*kernel.shape[:space]):
            to = pixels.index(tuple((a + s) % size for a, s in zip(at, step, strict=True)))
            block = whole[row * inputs :, to * outputs :]
            block[:inputs, :outputs] += kernel[step]
    return whole


@pytest.mark.parametrize(("name", "shape"), [
    ("delta_orthogonal", [3, 2, 4]), ("orthogonal_1d", [4, 2, 3]), ("orthogonal_2d", [3, 3, 2, 3]),
    ("orthogonal_2d", [1, 1, 3, 3]), ("orthogonal_3d", [2, 2, 2, 2, 2]),
])  # fmt: skip
def test_convolutions_that_keep_lengths(name: str, shape: list[int]) -> None:
    make = getattr(framework, f"convolutional_{name}")(gain=2.0, seed=5, dtype=tf.float64)
    with tf.Session() as session:
        kernel = session.run(make(shape))
    assert kernel.shape == tuple(shape)
    whole = _whole(kernel, 4)
    np.testing.assert_allclose(whole @ whole.T, 4.0 * np.eye(len(whole)), atol=1e-9)


def test_kernels_that_cannot_keep_lengths() -> None:
    with pytest.raises(ValueError, match="In_filters cannot be greater than out_filters"):
        framework.convolutional_delta_orthogonal()([3, 3, 4, 2])
    with pytest.raises(ValueError, match="must be four-dimensional"):
        framework.convolutional_orthogonal_2d()([3, 2, 2])
    with pytest.raises(ValueError, match="Kernel sizes must be equal"):
        framework.convolutional_orthogonal_2d()([3, 2, 2, 2])
    with pytest.raises(ValueError, match="Expected floating point type"):
        framework.convolutional_orthogonal_1d(dtype=tf.int32)
    with pytest.raises(ValueError, match="at least three-dimensional"):
        framework.convolutional_delta_orthogonal()([4, 4])


def test_modules_of_contrib_find_names_that_are_the_cores_or_deeper() -> None:
    assert tf.contrib.framework.get_global_step is tf.train.get_global_step
    assert tf.contrib.framework.python.ops.add_arg_scope is framework.add_arg_scope
    assert tf.contrib.layers.python.layers.initializers.xavier_initializer is (
        tf.contrib.layers.xavier_initializer
    )
    with pytest.raises(AttributeError, match=r"'opdock\.contrib\.framework' has no attribute"):
        _ = tf.contrib.framework.nothing_of_this_name


def test_values_of_all_kinds_print_what_they_are(capfd: pytest.CaptureFixture[str]) -> None:
    array = tf.TensorArray(tf.int32, size=1, clear_after_read=False).write(0, 7)
    sparse = tf.SparseTensor([[0, 1]], [5], [2, 3])
    bools = tf.contrib.framework.print_op(tf.constant([False, True]), message="now ")
    with tf.Session() as session:
        assert session.run(bools).tolist() == [False, True]
        told = capfd.readouterr().err
        assert "now " in told and "[First True in Boolean tensor at:][1]" in told
        assert session.run(tf.contrib.framework.print_op(array).stack()).tolist() == [7]
        assert "[Type: TensorArray (int32)][Size:][1]" in capfd.readouterr().err
        found = tf.contrib.framework.print_op(sparse, data=[tf.ones([])])
        assert session.run(found).values.tolist() == [5]
        told = capfd.readouterr().err
        assert "[Sparse values:][5]" in told and "[Name: ones:0][Type: Tensor (float32)]" in told
    with pytest.raises(ValueError, match="input_ must be of type Tensor"):
        tf.contrib.framework.print_op(None)


@pytest.mark.parametrize("use_resource", [False, True])
def test_a_variable_without_a_value_gets_zeros_once(use_resource: bool) -> None:
    variable = tf.get_variable("v", [2, 3], tf.float64, use_resource=use_resource)
    zeros = tf.contrib.framework.zero_initializer(variable)
    with tf.Session() as session:
        np.testing.assert_array_equal(session.run(zeros), np.zeros([2, 3]))
        np.testing.assert_array_equal(session.run(variable), np.zeros([2, 3]))
        with pytest.raises(tf.errors.InvalidArgumentError, match="input is already initialized: v"):
            session.run(zeros)


def test_checkpoints_are_read_by_the_names_that_contrib_gave_the_arguments(tmp_path):
    framework = tf.contrib.framework
    path = str(tmp_path / "model.ckpt")
    with tf.Graph().as_default(), tf.Session() as session:
        tf.get_variable("a/v", initializer=[1.0, 2.0])
        session.run(tf.global_variables_initializer())
        tf.train.Saver().save(session, path)
    assert framework.list_variables(checkpoint_dir=str(tmp_path)) == [("a/v", [2])]
    assert framework.load_checkpoint(filepattern=path).has_tensor("a/v")
    assert framework.load_variable(checkpoint_dir=path, name="a/v").tolist() == [1, 2]
    with tf.Graph().as_default(), tf.Session() as session:
        found = tf.get_variable("w", [2])
        framework.init_from_checkpoint(checkpoint_dir=path, assignment_map={"a/v": "w"})
        session.run(tf.global_variables_initializer())
        assert session.run(found).tolist() == [1, 2]
