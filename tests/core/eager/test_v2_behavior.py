"""TF 2's ways that TF 1.15 can have: `==` of elements, shapes of integers, all at once."""

import subprocess
import sys

import numpy as np
import pytest

import opdock as tf

NOTHING = None


@pytest.fixture(autouse=True)
def as_version_two():
    tf.enable_tensor_equality()
    tf.enable_v2_tensorshape()
    yield
    tf.disable_tensor_equality()
    tf.disable_v2_tensorshape()


def test_tensors_and_variables_compare_their_elements():
    x, v = tf.constant([1, 2, 3]), tf.Variable([1, 0, 3])
    assert (x == [1, 5, 3]).numpy().tolist() == [True, False, True]
    assert (x != v).numpy().tolist() == [False, True, False]
    assert (v == x).numpy().tolist() == [True, False, True]
    assert (v != 3).numpy().tolist() == [True, True, False]
    assert bool(x != tf.constant([1, 2])) and not bool(x == tf.constant([1, 2]))
    assert (x != NOTHING) is True and (v == NOTHING) is False


def test_they_are_keys_by_what_they_are():
    x, y = tf.constant(1.0), tf.constant(1.0)
    assert {x: "x", y: "y"} == {y: "y", x: "x"} and len({x, y}) == 2


def test_functions_compare_elements_and_graphs_of_sessions_do_not():
    @tf.function
    def same(a, b):
        return a == b, a != 1

    equal, other = same(tf.constant([1, 2]), tf.constant([1, 3]))
    assert equal.numpy().tolist() == [True, False] and other.numpy().tolist() == [False, True]
    with tf.Graph().as_default():
        a, b = tf.constant(1), tf.constant(1)
        assert (a == a) is True and (a == b) is False and (a != b) is True


def test_branches_of_functions_compare_elements():
    @tf.function
    def halved(n):
        return n // 2 if n % 2 == 0 else n

    assert halved(tf.constant(6)).numpy() == 3 and halved(tf.constant(7)).numpy() == 7


def test_shapes_have_integers():
    shape = tf.TensorShape([2, None])
    assert list(shape) == [2, None] and shape[0] == 2 and shape[1] is None
    assert repr(shape) == "TensorShape([2, None])" and str(shape) == "(2, ?)"
    assert [dim.value for dim in shape.dims] == [2, None] and shape[:1] == [2]
    assert tf.TensorShape(None)[3] is None


def test_what_looks_at_single_dimensions():
    queue = tf.FIFOQueue(3, tf.float32, shapes=[[]])
    queue.enqueue_many([[2.5, 3.5]])
    assert queue.dequeue().numpy() == 2.5
    ragged = tf.ragged.constant([[1, 2], [3]])
    assert ragged.to_tensor().numpy().tolist() == [[1, 2], [3, 0]]
    assert tf.RaggedTensor.from_tensor([[1, 2]]).bounding_shape().numpy().tolist() == [1, 2]
    assert tf.vectorized_map(lambda row: row * 2, tf.constant([1, 2])).numpy().tolist() == [2, 4]
    rows = tf.data.Dataset.from_tensor_slices(np.arange(4)).batch(2)
    assert [row.numpy().tolist() for row in rows] == [[0, 1], [2, 3]]
    images, deep, point = tf.ones([1, 4, 4, 2]), tf.ones([2, 2, 2, 1]), tf.ones([1, 1, 2, 3])
    assert tf.nn.separable_conv2d(images, deep, point, [1, 1, 1, 1], "SAME").shape == (1, 4, 4, 3)


PROGRAM = """
import opdock as tf
tf.enable_v2_behavior()
assert tf.executing_eagerly() and tf.resource_variables_enabled()
assert tf.control_flow_v2_enabled() and tf.TensorShape([3])[0] == 3
v = tf.Variable([1.0, 2.0])
with tf.GradientTape() as tape:
    loss = tf.reduce_sum(v * v)
assert (tape.gradient(loss, v) == [2.0, 4.0]).numpy().all()
tf.disable_v2_behavior()
assert not tf.executing_eagerly() and isinstance(tf.TensorShape([3])[0], tf.Dimension)
with tf.Session() as sess:
    total = tf.constant(1) + 2
    assert sess.run(total) == 3 and (total == 3) is False
    assert not tf.resource_variables_enabled()
print("done")
"""


def test_all_of_it_for_a_program():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False
    )
    assert done.stdout == "done\n", done.stderr
