"""`TensorShape` and `Dimension`, and the arithmetic of partly known shapes."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

import opdock as tf
from opdock import shapes

dims = st.one_of(st.none(), st.integers(0, 4))
raw_shapes = st.one_of(st.none(), st.lists(dims, max_size=4).map(tuple))


def test_a_vector_of_more_entries_than_shapes_have_is_no_shape():
    with tf.Graph().as_default():
        with pytest.raises(ValueError, match="at most rank 254 but is rank 16777216 for 'y'"):
            tf.broadcast_to(1.0, tf.placeholder(tf.int32, [1 << 24]), name="y")
        longest = tf.placeholder(tf.int32, [254])
        assert tf.reshape(tf.placeholder(tf.float32), longest).shape.ndims == 254


@pytest.mark.parametrize(
    ("given_as", "text", "full"),
    [
        (None, "<unknown>", False),
        ([], "()", True),
        ([2], "(2,)", True),
        ([None, 3], "(?, 3)", False),
        (5, "(5,)", True),
        (tf.TensorShape([1, 2]), "(1, 2)", True),
        ([tf.Dimension(4), tf.Dimension(None)], "(4, ?)", False),
    ],
)
def test_making_and_printing(given_as, text, full):
    shape = tf.TensorShape(given_as)
    assert str(shape) == text
    assert shape.is_fully_defined() is full


def test_repr():
    assert repr(tf.TensorShape([None, 3])) == "TensorShape([Dimension(None), Dimension(3)])"
    assert repr(tf.TensorShape(None)) == "TensorShape(None)"


def test_a_shape_is_a_sequence_of_dimensions():
    shape = tf.TensorShape([2, None, 4])
    assert len(shape) == shape.ndims == shape.rank == 3
    assert shape[0].value == 2
    assert shape[1].value is None
    assert shape[-1] == 4
    assert [d.value for d in shape] == [2, None, 4]
    assert shape[1:].as_list() == [None, 4]
    assert shape.as_list() == [2, None, 4]
    assert shape.dims[2].value == 4
    assert shape[:2].as_list() == [2, None]


def test_unknown_rank():
    shape = tf.TensorShape(None)
    assert shape.ndims is None
    assert shape.dims is None
    assert shape.num_elements() is None
    assert shape[3].value is None
    assert shape[1:].ndims is None
    assert not shape
    with pytest.raises(ValueError, match="as_list\\(\\) is not defined on an unknown TensorShape"):
        shape.as_list()
    with pytest.raises(ValueError, match="unknown rank"):
        len(shape)
    with pytest.raises(ValueError, match="unknown rank"):
        iter(shape).__next__()


def test_num_elements():
    assert tf.TensorShape([2, 3]).num_elements() == 6
    assert tf.TensorShape([]).num_elements() == 1
    assert tf.TensorShape([0, 5]).num_elements() == 0
    assert tf.TensorShape([None, 3]).num_elements() is None


def test_negative_and_silly_dimensions():
    with pytest.raises(ValueError, match="must be >= 0"):
        tf.TensorShape([-2])
    with pytest.raises(ValueError, match="must be >= 0"):
        tf.Dimension(-1)
    with pytest.raises((TypeError, ValueError)):
        tf.Dimension(1.5)


def test_equality_is_not_compatibility():
    assert tf.TensorShape([1, 2]) == [1, 2]
    assert tf.TensorShape([1, 2]) == tf.TensorShape([1, 2])
    assert tf.TensorShape([1, 2]) != [2, 1]
    assert tf.TensorShape([None]).is_compatible_with([3])
    assert not tf.TensorShape([1]).is_compatible_with([3])
    assert not tf.TensorShape([1]).is_compatible_with([1, 1])
    assert tf.TensorShape(None).is_compatible_with([1, 1])


def test_merge_with():
    assert tf.TensorShape([None, 2]).merge_with([3, None]).as_list() == [3, 2]
    assert tf.TensorShape(None).merge_with([3]).as_list() == [3]
    with pytest.raises(ValueError, match="are not compatible"):
        tf.TensorShape([1]).merge_with([2])
    with pytest.raises(ValueError, match="are not compatible|must have the same rank"):
        tf.TensorShape([1]).merge_with([2, 3])


def test_concatenate_and_most_general():
    assert tf.TensorShape([1]).concatenate([2, None]).as_list() == [1, 2, None]
    assert tf.TensorShape([1]).concatenate(None).ndims is None
    general = tf.TensorShape([1, 2]).most_specific_compatible_shape([1, 3])
    assert general.as_list() == [1, None]


def test_with_rank():
    assert tf.TensorShape(None).with_rank(2).as_list() == [None, None]
    with pytest.raises(ValueError, match="must have rank 1"):
        tf.TensorShape([1, 2]).with_rank(1)
    with pytest.raises(ValueError, match="must have rank at least 3"):
        tf.TensorShape([1, 2]).with_rank_at_least(3)
    with pytest.raises(ValueError, match="must have rank at most 1"):
        tf.TensorShape([1, 2]).with_rank_at_most(1)
    tf.TensorShape([1, 2]).assert_has_rank(2)
    tf.TensorShape([1, None]).assert_is_compatible_with([1, 5])
    with pytest.raises(ValueError, match="is not fully defined"):
        tf.TensorShape([None]).assert_is_fully_defined()
    with pytest.raises(ValueError, match="must have the same rank"):
        tf.TensorShape([1]).assert_same_rank([1, 2])


def test_dimension_arithmetic():
    two, five, unknown = tf.Dimension(2), tf.Dimension(5), tf.Dimension(None)
    assert (five + two, five - two, five * two, five // two, five % two) == (7, 3, 10, 2, 1)
    assert int(five) == five.value == 5
    assert (five + unknown).value is (unknown * 2).value is (3 - unknown).value is None
    assert 3 + two == 5
    assert list(range(10))[two] == 2
    assert two < five
    assert five >= 5
    assert (two < unknown) is None
    assert (unknown == 3) is None
    assert (unknown == unknown) is None
    assert str(unknown) == "?"
    assert repr(two) == "Dimension(2)"
    assert hash(two) == hash(tf.Dimension(2))


def test_dimension_merge():
    assert tf.Dimension(None).merge_with(3) == 3
    assert tf.Dimension(3).merge_with(None) == 3
    with pytest.raises(ValueError, match="Dimensions 3 and 4 are not compatible"):
        tf.Dimension(3).merge_with(4)
    assert tf.dimension_value(tf.Dimension(3)) == 3
    assert tf.dimension_value(3) == 3


def test_proto_round_trip():
    for text in (None, [], [2, None], [0]):
        shape = tf.TensorShape(text)
        again = tf.TensorShape(shape.as_proto())
        assert again.ndims == shape.ndims
        assert str(again) == str(shape)


@given(raw_shapes, raw_shapes)
def test_merge_is_symmetric_and_agrees_with_compatibility(a, b):
    if shapes.is_compatible(a, b):
        merged = shapes.merge(a, b)
        assert merged == shapes.merge(b, a)
        assert shapes.is_compatible(merged, a)
        assert shapes.is_compatible(merged, b)
    else:
        with pytest.raises(ValueError):
            shapes.merge(a, b)


@given(raw_shapes)
def test_merge_with_itself_and_with_nothing_changes_nothing(a):
    assert shapes.merge(a, a) == a
    assert shapes.merge(a, None) == a


@given(st.lists(st.integers(0, 3), max_size=4), st.lists(st.integers(0, 3), max_size=4))
def test_broadcast_is_numpys(a, b):
    import numpy as np

    try:
        want = np.broadcast_shapes(tuple(a), tuple(b))
    except ValueError:
        with pytest.raises(ValueError):
            shapes.broadcast(tuple(a), tuple(b))
    else:
        assert shapes.broadcast(tuple(a), tuple(b)) == want


@given(raw_shapes, raw_shapes, st.data())
def test_broadcast_of_partly_known_shapes_admits_every_completion(a, b, data):
    """Whatever the unknown dimensions turn out to be, the static answer was not wrong."""

    def complete(shape):
        if shape is None:
            return tuple(data.draw(st.lists(st.integers(0, 3), max_size=3)))
        return tuple(data.draw(st.integers(0, 3)) if d is None else d for d in shape)

    full_a, full_b = complete(a), complete(b)
    try:
        full = shapes.broadcast(full_a, full_b)
    except ValueError:
        return
    assert shapes.is_compatible(shapes.broadcast(a, b), full)


def test_comparisons_with_what_is_unknown() -> None:
    partial = tf.TensorShape([None, 2])
    assert partial == partial
    assert tf.TensorShape([None, 2]) != tf.TensorShape([None, 2])
    assert tf.TensorShape([3, 2]) == ["3", 2]
    assert tf.TensorShape([3]) != "3"
    with pytest.raises(ValueError, match="unknown TensorShapes is undefined"):
        _ = partial != tf.TensorShape(None)


def test_dimension_refuses_what_is_no_size() -> None:
    with pytest.raises(TypeError, match="Cannot convert .* to Dimension"):
        tf.Dimension(tf.string)
    with pytest.raises(TypeError, match="'int' and 'Dimension', please use //"):
        _ = 6 / tf.Dimension(2)


def test_pickle() -> None:
    for value in tf.Dimension(3), tf.TensorShape([3, 4]):
        assert pickle.loads(pickle.dumps(value)) == value
