"""Specs of values: what they say of tensors, how they compare, and what they have in common."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import opdock as tf
from opdock.graph.nodes.typespec import type_spec_from_value


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


class Pair:
    def __init__(self, x, y):
        self.x, self.y = x, y


class PairSpec(tf.TypeSpec):
    def __init__(self, shape, dtype, colour="red"):
        self.shape, self.dtype, self.colour = tf.TensorShape(shape), dtype, colour

    value_type = property(lambda self: Pair)
    _component_specs = property(lambda self: (tf.TensorSpec(self.shape, self.dtype),) * 2)

    def _serialize(self):
        return self.shape, self.dtype, self.colour

    def _to_components(self, value):
        return value.x, value.y

    def _from_components(self, components):
        return Pair(*components)


def test_what_a_tensor_spec_says():
    spec = tf.TensorSpec([1, None], np.int32, "x")
    assert (spec.shape.as_list(), spec.dtype, spec.name) == ([1, None], tf.int32, "x")
    assert repr(spec) == "TensorSpec(shape=(1, ?), dtype=tf.int32, name='x')"
    assert tf.TensorSpec(None).dtype is tf.float32
    assert tf.TensorSpec.from_spec(spec, "y").name == "y"
    assert tf.TensorSpec.from_tensor(tf.constant(0, name="c")).name == "c"
    with pytest.raises(ValueError, match=r"should be a tf\.Tensor"):
        tf.TensorSpec.from_tensor(0)


def test_a_tensor_spec_is_a_key_and_travels():
    spec = tf.TensorSpec([1, None], tf.int32, "x")
    assert {spec: 1}[tf.TensorSpec([1, None], tf.int32, "x")] == 1
    assert spec != tf.TensorSpec([1, None], tf.int32, "y")
    assert pickle.loads(pickle.dumps(spec)) == spec


def test_what_fits_a_tensor_spec():
    spec = tf.TensorSpec([2, None], tf.int64)
    assert spec.is_compatible_with(tf.placeholder(tf.int64))
    assert spec.is_compatible_with(tf.TensorSpec([None, 3], tf.int64, "other"))
    assert not spec.is_compatible_with(tf.placeholder(tf.int64, [3, 1]))
    assert not spec.is_compatible_with(tf.placeholder(tf.int32, [2, 1]))
    assert not spec.is_compatible_with(3)


def test_what_tensor_specs_have_in_common():
    a, b = tf.TensorSpec([2, 3], tf.int32, "a"), tf.TensorSpec([2, 4], tf.int32, "b")
    assert a.most_specific_compatible_type(b) == tf.TensorSpec([2, None], tf.int32)
    with pytest.raises(ValueError, match="not compatible"):
        a.most_specific_compatible_type(tf.TensorSpec([2, 3], tf.int64))


def test_batches():
    assert tf.TensorSpec([3])._batch(None)._unbatch() == tf.TensorSpec([3])
    with pytest.raises(ValueError, match="rank >= 1"):
        tf.TensorSpec([])._unbatch()


def test_a_spec_of_ones_own():
    spec = PairSpec([2, None], tf.int32)
    assert spec == PairSpec([2, None], tf.int32) and hash(spec) == hash(
        PairSpec([2, None], tf.int32)
    )
    assert spec != PairSpec([2, None], tf.int32, "blue")
    assert repr(spec) == f"PairSpec({spec._serialize()!r})".replace("((", "(").replace("))", ")")
    assert spec.is_compatible_with(PairSpec([2, 3], tf.int32))
    assert not spec.is_compatible_with(PairSpec([2, 3], tf.int32, "blue"))
    common = PairSpec([2, 3], tf.int32).most_specific_compatible_type(PairSpec([4, 3], tf.int32))
    assert common == PairSpec([None, 3], tf.int32)
    with pytest.raises(ValueError, match="not compatible"):
        spec.most_specific_compatible_type(PairSpec([2, 3], tf.int32, "blue"))


def test_values_as_lists_of_tensors():
    x, y = tf.constant([1, 2]), tf.constant([3, 4])
    spec = PairSpec([2], tf.int32)
    assert spec._flat_tensor_specs == [tf.TensorSpec([2], tf.int32)] * 2
    assert spec._to_tensor_list(Pair(x, y)) == [x, y]
    assert spec._from_tensor_list([x, y]).y is y
    with pytest.raises(ValueError, match="wrong number"):
        spec._from_tensor_list([x])
    with pytest.raises(ValueError, match="tensor 1 .* is incompatible"):
        spec._from_tensor_list([x, tf.constant([1.0, 2.0])])


def test_the_spec_of_a_value(graph):
    tensor = tf.constant([1, 2, 3])
    before = len(graph.get_operations())
    assert type_spec_from_value(tensor) == tf.TensorSpec([3], tf.int32)
    assert type_spec_from_value(np.zeros([2, 1])) == tf.TensorSpec([2, 1], tf.float64)
    assert type_spec_from_value([tensor, tensor]) == tf.TensorSpec([2, 3], tf.int32)
    assert len(graph.get_operations()) == before
    assert type_spec_from_value(3.0) == tf.TensorSpec([], tf.float32)
    with pytest.raises(TypeError, match="Could not build a TypeSpec"):
        type_spec_from_value(object())
