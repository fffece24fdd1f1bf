"""Nested structures."""

from __future__ import annotations

import collections
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

import opdock as tf
from opdock.util import nest, nest_paths


class Point(NamedTuple):
    x: Any
    y: Any


structures = st.recursive(
    st.integers(), lambda kids: st.one_of(
        st.lists(kids, max_size=3), st.lists(kids, max_size=3).map(tuple),
        st.dictionaries(st.sampled_from("abc"), kids, max_size=3),
        st.tuples(kids, kids).map(lambda t: Point(*t))), max_leaves=10,
)  # fmt: skip


@given(structures)
def test_flatten_and_pack_are_inverse(structure):
    flat = nest.flatten(structure)
    assert nest.pack_sequence_as(structure, flat) == structure
    nest.assert_same_structure(structure, nest.map_structure(str, structure))
    assert nest.flatten(nest.map_structure(lambda v: v + 1, structure)) == [v + 1 for v in flat]


def test_dictionaries_are_flattened_by_key():
    assert nest.flatten({"b": 1, "a": [2, 3]}) == [2, 3, 1]
    assert nest.flatten(collections.OrderedDict([("b", 1), ("a", 2)])) == [2, 1]
    assert nest.flatten("text") == ["text"]
    assert nest.flatten(None) == [None]


def test_types_are_kept():
    packed = nest.pack_sequence_as(Point(0, [0]), [1, 2])
    assert packed == Point(1, [2])
    assert type(packed) is Point
    ordered = nest.pack_sequence_as(collections.OrderedDict([("b", 0), ("a", 0)]), [1, 2])
    assert list(ordered.items()) == [("b", 2), ("a", 1)]


def test_several_structures_at_once():
    assert nest.map_structure(lambda a, b: a + b, [1, (2,)], [10, (20,)]) == [11, (22,)]
    with pytest.raises((ValueError, TypeError)):
        nest.map_structure(lambda a, b: a, [1, 2], [1])


@pytest.mark.parametrize(
    ("a", "b", "error"),
    [
        ([1, 2], [1], ValueError),
        ([1], (1,), TypeError),
        ([1], 1, ValueError),
        ({"a": 1}, {"b": 1}, ValueError),
        (Point(1, 2), (1, 2), TypeError),
    ],
)
def test_structures_that_differ(a, b, error):
    with pytest.raises(error):
        nest.assert_same_structure(a, b)


def test_types_may_be_ignored():
    nest.assert_same_structure([1], (1,), check_types=False)


def test_wrong_numbers_of_leaves():
    with pytest.raises(ValueError, match="2|1"):
        nest.pack_sequence_as([0, 0], [1])
    with pytest.raises(ValueError):
        nest.pack_sequence_as([0], [1, 2])


def test_flatten_up_to():
    assert nest.flatten_up_to([0, 0], [[1, 2], {"a": 3}]) == [[1, 2], {"a": 3}]


def test_is_sequence():
    assert nest.is_sequence([1])
    assert nest.is_sequence({})
    assert nest.is_sequence(Point(1, 2))
    assert not nest.is_sequence("ab")
    assert not nest.is_sequence(1)


def test_one_structure_may_end_before_another():
    shallow, deep = {"a": 0, "b": [0, 0]}, {"a": [1, 2], "b": [3, (4, 5)]}
    assert nest.flatten_up_to(shallow, deep) == [[1, 2], 3, (4, 5)]
    found = nest_paths.map_structure_up_to(shallow, lambda x, y: (x, y), deep, shallow)
    assert found == {"a": ([1, 2], 0), "b": [(3, 0), ((4, 5), 0)]}
    with pytest.raises(TypeError, match="If shallow structure is a sequence, input must also"):
        nest.assert_shallow_structure([0], 1)
    with pytest.raises(TypeError, match="don't have the same sequence type"):
        nest.assert_shallow_structure([0], (1,))
    nest.assert_shallow_structure([0], (1,), check_types=False)
    with pytest.raises(ValueError, match="don't have the same sequence length"):
        nest.assert_shallow_structure([0], [1, 2])
    with pytest.raises(ValueError, match="keys are not a subset of the input_tree's keys"):
        nest.assert_shallow_structure({"a": 0}, {"b": 0})


def test_a_mapping_of_structures_becomes_one_of_leaves():
    assert nest.flatten_dict_items({(1, (2, 3)): ("a", ("b", "c")), 4: "d"}) == {
        1: "a", 2: "b", 3: "c", 4: "d"
    }  # fmt: skip
    with pytest.raises(ValueError, match="key 1 is not unique"):
        nest.flatten_dict_items({(1, 2): (0, 0), 1: 0})
    with pytest.raises(ValueError, match="Key had 2 elements, but value had 1"):
        nest.flatten_dict_items({(1, 2): [0]})
    with pytest.raises(TypeError, match="input must be a dictionary"):
        nest.flatten_dict_items([1])


def test_named_tuples_are_told_from_others():
    class Derived(Point):
        pass

    assert nest.is_namedtuple(Point(1, 2)) and not nest.is_namedtuple((1, 2))
    assert nest.is_namedtuple(Derived(1, 2)) and not nest.is_namedtuple(Derived(1, 2), True)


def test_paths_name_where_leaves_stand():
    nested = {"b": [1, (2,)], "a": Point(3, {"k": 4})}
    assert list(nest_paths.yield_flat_paths(nested)) == [
        ("a", "x"), ("a", "y", "k"), ("b", 0), ("b", 1, 0),
    ]  # fmt: skip
    assert nest_paths.flatten_with_joined_string_paths([5, {"k": 6}], ".") == [("0", 5), ("1.k", 6)]
    named = nest_paths.map_structure_with_paths(lambda path, x: f"{path}={x}", nested)
    assert named == {"b": ["b/0=1", ("b/1/0=2",)], "a": Point("a/x=3", {"k": "a/y/k=4"})}
    above = {"b": 0, "a": 0}
    assert nest_paths.flatten_with_tuple_paths_up_to(above, nested) == [
        (("a",), nested["a"]), (("b",), nested["b"]),
    ]  # fmt: skip


def test_composites_are_one_level_of_their_own():
    sparse = tf.SparseTensor([[0, 1]], [2.0], [1, 2])
    parts = [sparse.indices, sparse.values, sparse.dense_shape]
    assert nest.flatten([sparse, 1], expand_composites=True) == [*parts, 1]
    again = nest.pack_sequence_as([sparse], parts, expand_composites=True)[0]
    assert again.indices is sparse.indices
    assert [path for path, _ in nest_paths.flatten_with_tuple_paths({"s": sparse}, True)] == [
        ("s", "SparseTensor", i) for i in range(3)
    ]
    # A spec stands for the value that it describes; one of another kind does not.
    nest.assert_same_structure([sparse], [tf.SparseTensorSpec([1, 2])], expand_composites=True)
    with pytest.raises(ValueError, match="Incompatible CompositeTensor TypeSpecs"):
        nest.assert_same_structure(
            sparse, tf.SparseTensorSpec([1, 2], tf.int32), expand_composites=True
        )


def test_how_deep_to_go_is_for_a_function_to_say():
    nested = [[1, 2], (3, [4])]
    goes = nest.get_traverse_shallow_structure(lambda s: not isinstance(s, tuple), nested)
    assert goes == [[True, True], False]
    with pytest.raises(TypeError, match="non-bool scalar"):
        nest.get_traverse_shallow_structure(lambda s: 3, nested)


def test_datasets_say_how_structures_differ():
    of_data = tf.python.data.util.nest
    for a, b in [((1, (2, 3)), (1, 2)), ((1, 2), [1, 2]), (0, (0, 1)), (((1, 2), 3), (1, (2, 3)))]:
        with pytest.raises(ValueError, match="don't have the same nested structure"):
            of_data.assert_same_structure(a, b)
    with pytest.raises(TypeError, match=r"while shallow structure has type <class 'dict'>"):
        of_data.assert_shallow_structure({"a": 1}, (1,))
    with pytest.raises(TypeError, match=r"Input has type: <class 'str'>"):
        of_data.flatten_up_to((1, 2), "ab")
