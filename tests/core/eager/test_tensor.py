"""Tensors that have their values."""

import copy
import gc
import pickle
import weakref

import numpy as np
import pytest

import opdock as tf


def test_values_are_there_at_once():
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    y = tf.matmul(x, x) + 1
    assert y.shape == (2, 2) and y.dtype == tf.float32
    np.testing.assert_array_equal(y.numpy(), [[8, 11], [16, 23]])
    assert float(y[0, 1]) == 11.0
    assert [row.numpy().tolist() for row in y] == [[8.0, 11.0], [16.0, 23.0]]
    assert len(x) == 2 and x.ndim == x._rank() == 2


def test_tensors_serve_where_python_and_numpy_want_values():
    assert tf.constant(True) and not tf.constant([0])
    assert [10, 20, 30][tf.constant(1)] == 20
    assert list(range(tf.constant(3))) == [0, 1, 2]
    assert int(tf.constant(2.7)) == 2 and complex(tf.constant(1.0)) == 1 + 0j
    assert f"{tf.constant(1.5):.2f}" == "1.50"
    assert np.sum(tf.constant([1, 2])) == 3
    assert tf.constant("text").numpy() == b"text"
    assert tf.constant(["a", "b"]).numpy().tolist() == [b"a", b"b"]


def test_what_values_cannot_be_is_an_error():
    with pytest.raises(ValueError, match="Non-scalar tensor .* cannot be converted to boolean"):
        bool(tf.constant([1, 2]))
    with pytest.raises(TypeError, match="Scalar tensor has no `len"):
        len(tf.constant(1))
    with pytest.raises(TypeError, match="Cannot iterate over a scalar tensor"):
        iter(tf.constant(1))
    with pytest.raises(TypeError, match="only integer scalar"):
        [1, 2][tf.constant(1.0)]
    with pytest.raises(NotImplementedError, match="numpy"):
        tf.constant(1).eval()
    with pytest.raises(ValueError, match="is not compatible"):
        tf.constant([1]).set_shape([2])


def test_texts_are_tensorflow_s():
    x = tf.constant([1, 2])
    assert str(x) == "tf.Tensor([1 2], shape=(2,), dtype=int32)"
    assert repr(x).startswith("<tf.Tensor: id=") and repr(x).endswith(
        "shape=(2,), dtype=int32, numpy=array([1, 2], dtype=int32)>"
    )


def test_handles_are_formatted_as_they_are_shown():
    handle = tf.Variable(1.0).handle
    assert f"{handle}" == str(handle)
    assert f"{handle:>200}" == str(handle).rjust(200)


def test_what_numpy_gives_is_a_copy():
    x = tf.constant([1.0, 2.0])
    x.numpy()[0] = 5.0
    given = np.array([1.0, 2.0], np.float32)
    y = tf.constant(given)
    given[0] = 7.0
    assert x.numpy()[0] == 1.0 and y.numpy()[0] == 1.0


def test_copies_and_pickles():
    x = tf.constant([1.0, 2.0])
    assert copy.copy(x) is x and copy.deepcopy(x) is x
    assert pickle.loads(pickle.dumps(x)).numpy().tolist() == [1.0, 2.0]


def test_no_value_outlives_its_tensor():
    x = tf.constant([1.0])
    held = weakref.ref(x)
    y = x * 2
    gc.disable()
    try:
        del x
        tf.constant(0)
        assert held() is None, "neither the operation nor what was computed with it keeps it"
    finally:
        gc.enable()
    assert y.numpy() == [2.0]


def test_graphs_do_not_take_them_and_they_take_no_graph_s():
    x = tf.constant(1.0)
    with tf.Graph().as_default():
        y = tf.constant(2.0)
        with pytest.raises(RuntimeError, match="Attempting to capture an EagerTensor"):
            tf.add(x, y)
    with pytest.raises(ValueError, match="must be from the same graph"):
        tf.add(x, y)


def test_what_needs_a_graph_says_so():
    with pytest.raises(RuntimeError, match="not compatible with eager execution"):
        tf.placeholder(tf.float32)
    with pytest.raises(RuntimeError, match=r"Use tf.GradientTape instead"):
        tf.gradients(tf.constant(1.0), tf.constant(1.0))
    with pytest.raises(RuntimeError, match="Session graph is empty"):
        tf.Session().run(tf.constant(1))


def test_a_failed_operation_is_an_error_at_once_in_the_words_of_its_kernel():
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"size-incompatible.*\[Op:MatMul\]"):
        tf.matmul(tf.ones([2, 2]), tf.ones([3, 1]))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"\[Op:GatherV2\]") as caught:
        tf.gather([1, 2], 5)
    assert "[[node" not in caught.value.message


def test_a_graph_inside_is_as_ever():
    with tf.Graph().as_default(), tf.Session() as session:
        assert not tf.executing_eagerly()
        x = tf.placeholder(tf.float32)
        assert session.run(x * 2, {x: 3}) == 6
    assert tf.executing_eagerly()


def test_composites():
    sparse = tf.SparseTensor([[0, 1]], [5.0], [2, 2])
    assert tf.sparse.to_dense(sparse).numpy().tolist() == [[0, 5], [0, 0]]
    ragged = tf.ragged.constant([[1], [2, 3]])
    assert (ragged + 1).to_list() == [[2], [3, 4]]
    assert [row.numpy().tolist() for row in ragged] == [[1], [2, 3]]
    assert repr(ragged) == str(ragged) == "<tf.RaggedTensor [[1], [2, 3]]>"
    with pytest.raises(IndexError, match="Row key 2 out of bounds"):
        ragged[np.int64(2)]
    told = []
    tf.function(lambda rows: told.append(repr(rows)))(ragged)
    assert told[0].startswith("tf.RaggedTensor(values=Tensor(")


def test_what_has_no_results_is_none_as_it_has_run():
    assert tf.no_op() is None and tf.group(tf.constant(1), None) is None
    assert tf.Assert(True, ["fine"]) is None and tf.assert_equal(1, 1) is None
    assert tf.assert_rank(tf.constant([1]), 1) is None
    assert tf.raw_ops.Assert(condition=True, data=["fine"]) is None
    with pytest.raises(tf.errors.InvalidArgumentError, match="not fine"):
        tf.Assert(False, ["not fine"])
    given = [tf.constant(1), tf.constant(2)]
    assert tf.tuple(given) is given
    one = given[0]
    assert tf.python.ops.control_flow_ops.with_dependencies([None], one) is one

    @tf.function
    def built():
        with tf.control_dependencies([tf.no_op(), tf.group(tf.no_op())]):
            return tf.constant(3)

    assert built().numpy() == 3


def test_a_constant_has_as_many_elements_as_its_shape_or_one():
    assert tf.constant([1, 2, 3, 4], shape=[2, 2]).numpy().tolist() == [[1, 2], [3, 4]]
    assert tf.constant(7, shape=[3]).numpy().tolist() == [7, 7, 7]
    for size in (1, 4):
        with pytest.raises(TypeError, match=r"Expected Tensor's shape: \(\d,\), got \(3,\)"):
            tf.constant([1, 2, 3], shape=[size])


def test_the_session_of_a_test_tells_values():
    case = tf.test.TestCase()
    with case.cached_session() as session:
        assert session.run([tf.constant(2), tf.constant(3)]) == [2, 3]
        with pytest.raises(RuntimeError, match="feed_dict"):
            session.run(tf.constant(2), feed_dict={"a": 1})


def test_a_dataset_made_of_what_a_function_captures():
    outside = tf.constant([5, 6])
    assert [v.numpy().tolist() for v in tf.data.Dataset.range(2).map(lambda _: outside)] == [
        [5, 6]
    ] * 2


def test_values_of_python_are_colocated_with_nothing():
    for at in ([[1.0], [2.0]], np.ones(2), tf.constant(1)):
        with tf.colocate_with(at):
            assert tf.constant(3).numpy() == 3
