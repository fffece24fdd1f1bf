"""`convert_to_tensor`: from everything that stands for a tensor."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf
from opdock.graph.nodes import convert


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def value(tensor, feed=None):
    with tf.Session(graph=tensor.graph) as session:
        session.run(tf.global_variables_initializer())
        return session.run(tensor, feed)


def test_a_tensor_is_itself():
    x = tf.constant(1.0)
    assert tf.convert_to_tensor(x) is x
    assert tf.convert_to_tensor(x, tf.float32, name="ignored") is x
    with pytest.raises(ValueError, match="requested dtype int32 for Tensor with dtype float32"):
        tf.convert_to_tensor(x, tf.int32)


def test_a_variable_is_its_value():
    v = tf.Variable([1.0], name="v")
    assert tf.convert_to_tensor(v).name == "v/read:0"
    with pytest.raises(ValueError, match="ncompatible type conversion requested to type 'int32'"):
        tf.convert_to_tensor(v, tf.int32)
    r = tf.Variable([1.0], use_resource=True)
    assert tf.convert_to_tensor(r).op.type == "ReadVariableOp"


def test_lists_with_tensors_are_packed():
    x, v = tf.placeholder(tf.float32, []), tf.Variable(3.0)
    y = tf.convert_to_tensor([[x, 1], [v, 2.5]])
    assert y.op.type == "Pack"
    assert y.dtype is tf.float32
    assert y.shape.as_list() == [2, 2]
    np.testing.assert_array_equal(value(y, {x: 7}), [[7, 1], [3, 2.5]])
    np.testing.assert_array_equal(value(tf.stack([x, x]), {x: 1}), [1, 1])
    with pytest.raises(TypeError, match="int32 to float32|Cannot convert"):
        tf.convert_to_tensor([tf.constant(1.0), tf.constant(1)])


def test_lists_of_tensors_of_another_type_are_cast():
    i, v = tf.placeholder(tf.int32, []), tf.Variable(3, dtype=tf.int32)
    y = tf.convert_to_tensor([[i, 2], [v, 4]], tf.int64)
    assert y.dtype is tf.int64
    np.testing.assert_array_equal(value(y, {i: 7}), [[7, 2], [3, 4]])
    rows = tf.concat([tf.constant([[1], [2]], tf.int64), [[i], [i]]], axis=1)
    np.testing.assert_array_equal(value(rows, {i: 7}), [[1, 7], [2, 7]])


def test_packed_names():
    assert tf.convert_to_tensor([tf.constant(1), 2]).op.name == "packed"


def test_hints_are_tried_and_given_up():
    assert tf.convert_to_tensor(1, preferred_dtype=tf.float32).dtype is tf.float32
    assert tf.convert_to_tensor(1.5, preferred_dtype=tf.int32).dtype is tf.float32
    assert tf.convert_to_tensor(1, dtype_hint=tf.int64).dtype is tf.int64
    assert tf.convert_to_tensor(1, tf.float64, preferred_dtype=tf.int64).dtype is tf.float64


def test_shapes_and_dimensions():
    x = tf.placeholder(tf.float32, [None, 3])
    assert value(tf.convert_to_tensor(x.shape[1])) == 3
    assert list(value(tf.convert_to_tensor([x.shape[1], 2]))) == [3, 2]
    shape = tf.convert_to_tensor(tf.TensorShape([2, 3]))
    assert shape.dtype is tf.int32
    assert list(value(shape)) == [2, 3]
    assert tf.convert_to_tensor(tf.TensorShape([2**33])).dtype is tf.int64
    assert tf.convert_to_tensor(tf.TensorShape([]), tf.int64).dtype is tf.int64
    with pytest.raises(ValueError, match="partially known TensorShape"):
        tf.convert_to_tensor(x.shape)
    with pytest.raises((ValueError, TypeError)):
        tf.convert_to_tensor(x.shape[0])
    assert tf.reshape(tf.zeros([6]), [-1, x.shape[1]]).shape.as_list() == [2, 3]
    assert tf.zeros(tf.TensorShape([2])).shape.as_list() == [2]


@pytest.mark.parametrize("wrong", [object(), {1: 2}, {1}, lambda: 1, type])
def test_what_is_no_tensor(wrong):
    with pytest.raises(TypeError, match="Failed to convert"):
        tf.convert_to_tensor(wrong)


def test_none():
    with pytest.raises(ValueError, match="None values not supported"):
        tf.convert_to_tensor(None)


def test_operations_are_no_values():
    with pytest.raises(TypeError, match="NoOp|Operation"):
        tf.convert_to_tensor(tf.no_op())


def test_a_type_of_the_user():
    class Celsius:
        def __init__(self, degrees):
            self.degrees = degrees

    class Passing:
        pass

    def to_tensor(c, dtype=None, name=None, as_ref=False):
        return tf.constant(c.degrees, dtype or tf.float64, name=name or "celsius")

    tf.register_tensor_conversion_function(Celsius, to_tensor)
    tf.register_tensor_conversion_function(Passing, lambda *_, **__: NotImplemented)
    assert tf.convert_to_tensor(Celsius(3.5)).name == "celsius:0"
    assert value(tf.constant(1.0) + Celsius(3)) == 4
    with pytest.raises(TypeError):
        tf.convert_to_tensor(Passing())
    with pytest.raises(TypeError, match="callable"):
        tf.register_tensor_conversion_function(Celsius, 3)
    with pytest.raises(TypeError, match="type"):
        tf.register_tensor_conversion_function("Celsius", to_tensor)


def test_an_object_with_array():
    class Holder:
        def __array__(self, dtype=None, copy=None):
            return np.array([1.5, 2.5])

    np.testing.assert_array_equal(value(tf.convert_to_tensor(Holder())), [1.5, 2.5])


def test_slices_stay_slices_where_asked():
    slices = tf.IndexedSlices(tf.constant([1.0]), tf.constant([1]), tf.constant([3]))
    assert tf.convert_to_tensor_or_indexed_slices(slices) is slices
    assert tf.convert_to_tensor_or_indexed_slices([1.0]).op.type == "Const"
    np.testing.assert_array_equal(value(tf.convert_to_tensor(slices)), [0, 1, 0])
    with pytest.raises(ValueError, match="requested dtype"):
        tf.convert_to_tensor_or_indexed_slices(slices, tf.int32)


def test_several_at_once():
    made = convert.convert_n_to_tensor([1, 2.0], name="n")
    assert [t.op.name for t in made] == ["n_0", "n_1"]


def test_the_other_operand_decides_the_type_of_a_number():
    assert (tf.constant(1.0, tf.float64) + 1).dtype is tf.float64
    assert (2 * tf.constant(1, tf.int8)).dtype is tf.int8
    with pytest.raises(TypeError, match="Expected int32, got 1.5|int32"):
        tf.constant(1) + 1.5
    with pytest.raises((TypeError, ValueError), match="float32"):
        tf.constant(1) + tf.constant(1.0)


class Quantity:
    """A stranger's class of values that are tensors of one type, as libraries have them."""

    def __init__(self, value: object) -> None:
        self.value = tf.convert_to_tensor(value)
        self.dtype, self.shape = self.value.dtype, self.value.shape

    def __add__(self, other: object) -> Quantity:
        return Quantity(self.value + other)


def quantity_to_tensor(
    quantity: Quantity, dtype: tf.DType | None = None, name: str | None = None, as_ref: bool = False
) -> tf.Tensor:
    if dtype is not None and not dtype.is_compatible_with(quantity.value.dtype):
        raise ValueError(f"a quantity of {quantity.value.dtype.name} is no {dtype.name}")
    return quantity.value


tf.register_tensor_conversion_function(Quantity, quantity_to_tensor)


def test_a_value_of_another_type_is_named_by_the_type_that_its_conversion_gives():
    with pytest.raises(TypeError, match="has type float32 that does not match type int32 of arg"):
        tf.add(1, Quantity(1.0))


def test_a_value_that_no_conversion_takes_says_so():
    with pytest.raises(
        ValueError, match="Tried to convert 'y' to a tensor and failed. Error: None"
    ):
        tf.add(1, None)


def test_a_tensor_proto_is_what_it_holds():
    """As programs hand on attributes of a GraphDef's nodes."""
    node = tf.constant([[2, 1]], tf.int64).op.node_def
    held = node.attr["value"].tensor
    assert value(tf.convert_to_tensor(held)).tolist() == [[2, 1]]
    assert value(tf.reshape(tf.range(2), tf.make_tensor_proto([2, 1]))).shape == (2, 1)
    with pytest.raises(TypeError, match="has type int64 that does not match type float32"):
        tf.add(1.0, held)


def test_values_with_a_conversion_of_their_own_are_stacked_and_bound_slices():
    with tf.Session() as sess:
        assert sess.run(tf.stack([Quantity(3), 4])).tolist() == [3, 4]
        row = tf.constant([5, 6, 7])
        assert sess.run(row[Quantity(1)]) == 6
        assert sess.run(row[Quantity(1) :]).tolist() == [6, 7]
