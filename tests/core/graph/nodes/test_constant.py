"""`tf.constant`: which type and shape a Python value gets, and what is refused."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import opdock as tf


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def value(tensor):
    with tf.Session(graph=tensor.graph) as session:
        return session.run(tensor)


@pytest.mark.parametrize(
    ("given_as", "dtype", "shape"),
    [
        (1, "int32", []), (2**40, "int64", []), (-(2**31), "int32", []), (1.5, "float32", []),
        (True, "bool", []), ("a", "string", []), (b"a", "string", []), (1j, "complex128", []),
        ([1, 2.5], "float32", [2]), ([], "float32", [0]), ([[]], "float32", [1, 0]),
        ((1, 2), "int32", [2]), ([[1], [2]], "int32", [2, 1]), ([True, False], "bool", [2]),
        (np.float64(1), "float64", []), (np.arange(3), "int64", [3]), (np.int8(1), "int8", []),
        (np.array(["a", "bc"]), "string", [2]), (np.float16(1), "float16", []),
        (np.array([1], ml_dtypes.bfloat16), "bfloat16", [1]), (range(3), "int32", [3]),
        ([np.int64(1), np.int64(2)], "int32", [2]), ([[np.float64(1.5)]], "float32", [1, 1]),
        ((np.float64(1), 2), "float32", [2]), ([np.int64(2**40)], "int64", [1]),
        (2**63, "uint64", []), ([np.array(3)], "int32", [1]), ([np.float16(1)], "float16", [1]),
    ],
)  # fmt: skip
def test_inferred_types(given_as, dtype, shape):
    tensor = tf.constant(given_as)
    assert tensor.dtype.name == dtype
    assert tensor.shape.as_list() == shape


@pytest.mark.parametrize(
    ("given_as", "dtype", "want"),
    [
        (1, tf.float32, 1.0), (1, tf.int64, 1), ([1, 2], tf.float64, [1.0, 2.0]),
        (1, tf.bool, None),
        (1, tf.complex64, 1 + 0j), (1.5, tf.float16, 1.5), ([1, 2], tf.uint8, [1, 2]),
        (1.5, tf.bfloat16, 1.5), (True, tf.bool, True), ("x", tf.string, b"x"),
        (True, tf.int32, 1), (True, tf.float32, 1.0),
        (300, tf.uint8, 44), ([5, -5], tf.uint8, [5, 251]), (2**40 + 1, tf.int32, 1),
        (np.array([1.5, 2.5]), tf.float32, [1.5, 2.5]), (np.arange(2), tf.float32, [0.0, 1.0]),
    ],
)  # fmt: skip
def test_explicit_types(given_as, dtype, want):
    if want is None:
        with pytest.raises(TypeError, match="Expected bool"):
            tf.constant(given_as, dtype)
        return
    tensor = tf.constant(given_as, dtype)
    assert tensor.dtype is dtype
    np.testing.assert_array_equal(value(tensor), want)


@pytest.mark.parametrize(
    ("given_as", "dtype", "text"),
    [
        (1.5, tf.int32, "Expected int32, got 1.5 of type 'float' instead"),
        ("a", tf.float32, "Expected float32, got 'a' of type 'str' instead"),
        ([1, "a"], tf.int32, "Expected int32, got 'a' of type 'str' instead"),
        (1, tf.string, "Expected string, got 1 of type 'int' instead"),
        (1.5, tf.bool, "Expected bool, got 1.5 of type 'float' instead"),
        ([[1], [2.5]], tf.int64, "Expected int64, got 2.5 of type 'float' instead"),
        ([None, 2], tf.int32, "Expected int32, got None of type 'NoneType' instead"),
        ([2**70, 2], tf.int32, "which is out of range"),
        (1j, tf.float32, "Expected float32, got 1j of type 'complex' instead"),
    ],
)
def test_values_that_do_not_fit_the_type(given_as, dtype, text):
    with pytest.raises(TypeError, match=text.replace("(", "\\(")):
        tf.constant(given_as, dtype)


@pytest.mark.parametrize("ragged", [[[1, 2], [3]], [1, [2]], [[[1]], [[1, 2]]], [[1, 2], 3]])
def test_ragged_lists_are_refused(ragged):
    with pytest.raises(ValueError, match="non-rectangular|setting an array|inhomogeneous"):
        tf.constant(ragged)


@pytest.mark.parametrize("nothing", [None, [None], [1, None], [[1.0], [None]]])
def test_none_is_refused(nothing):
    with pytest.raises((ValueError, TypeError), match="None"):
        tf.constant(nothing)


def test_the_last_value_fills_the_shape():
    np.testing.assert_array_equal(value(tf.constant(7, shape=[2, 3])), np.full((2, 3), 7))
    np.testing.assert_array_equal(value(tf.constant([1, 2, 3], shape=[2, 3])), [[1, 2, 3], [3] * 3])
    np.testing.assert_array_equal(value(tf.constant([[1, 2], [3, 4]], shape=[4])), [1, 2, 3, 4])
    np.testing.assert_array_equal(value(tf.constant("a", shape=[2])), [b"a", b"a"])
    assert tf.constant(0, shape=(0, 3)).shape.as_list() == [0, 3]
    with pytest.raises(ValueError, match="Too many elements provided"):
        tf.constant([1, 2, 3], shape=[2])
    with pytest.raises(TypeError, match="Expected Tensor's shape"):
        tf.constant([1, 2], shape=[3], verify_shape=True)


def test_tensorflow_2_repeats_single_elements_alone():
    constant = tf.compat.v2.constant
    np.testing.assert_array_equal(value(constant(3, shape=[2])), [3, 3])
    np.testing.assert_array_equal(value(constant([1, 2], tf.float32, [2, 1])), [[1], [2]])
    for size in (1, 3):
        with pytest.raises(TypeError, match="Expected Tensor's shape"):
            constant([1, 2], shape=[size])


def test_shapes_that_int32_cannot_hold():
    large = tf.TensorShape([2**31, 2])
    assert tf.convert_to_tensor(large).dtype == tf.int64
    with pytest.raises(ValueError, match=r"a dimension is too large \(2147483648\)"):
        tf.convert_to_tensor(large, tf.int32)


def test_the_node():
    c = tf.constant([1, 2], name="c")
    assert (c.op.name, c.op.type) == ("c", "Const")
    assert tf.constant(1).name == "Const:0"


def test_strings():
    np.testing.assert_array_equal(
        value(tf.constant(["ä", b"\xff\x00", "", "a\0"])),
        np.array(["ä".encode(), b"\xff\x00", b"", b"a\0"], object),
    )


def test_a_constant_does_not_see_later_changes_of_the_array():
    array = np.ones(3, np.float32)
    c = tf.constant(array)
    array[:] = 5
    np.testing.assert_array_equal(value(c), [1, 1, 1])


@given(hnp.arrays(
    st.sampled_from([np.float32, np.int64, np.bool_, np.uint8, np.complex64, np.float16]),
    hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3),
))  # fmt: skip
def test_any_array_comes_back_bit_for_bit(array):
    with tf.Graph().as_default():
        got = value(tf.constant(array))
        assert np.asarray(got).dtype == array.dtype
        assert np.asarray(got).tobytes() == array.tobytes()


def test_arrays_in_the_other_byte_order_become_ours():
    other = np.arange(3, dtype=np.float32).astype(np.dtype(np.float32).newbyteorder())
    for array in (other, [other, other], other[::2], other[1]):
        c = tf.constant(array)
        assert c.dtype == tf.float32
        assert np.asarray(value(c)).dtype.isnative
        np.testing.assert_array_equal(value(c), np.asarray(array, np.float32))


def test_numbers_in_arrays_of_text_are_read() -> None:
    for texts in (np.array(["1", "-2"]), np.array([b"1", b"-2"])):
        assert tf.get_static_value(tf.constant(texts, tf.int32)).tolist() == [1, -2]
    with pytest.raises(ValueError, match="invalid literal for int"):
        tf.constant(np.array(["a"]), tf.int32)


@pytest.mark.parametrize(
    ("given_as", "words"),
    [
        (
            [None, 2],
            r"Failed to convert object of type <class 'list'> to Tensor\. Contents: \[None",
        ),
        (2**64, "Failed to convert object of type <class 'int'>"),
        (object(), "Failed to convert object of type <class 'object'>"),
    ],
)
def test_what_no_type_holds(given_as, words):
    with pytest.raises(TypeError, match=words):
        tf.constant(given_as)


def test_a_tensor_is_no_constant():
    inner = tf.constant(1)
    for given_as in (inner, [inner], [1, inner]):
        with pytest.raises(TypeError, match="List of Tensors when single Tensor expected"):
            tf.constant(given_as)
        with pytest.raises(TypeError, match="of type 'Tensor' instead"):
            tf.constant(given_as, tf.int32)
