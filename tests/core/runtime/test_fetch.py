"""What may be fetched and fed, in which structures, and what is refused."""

from __future__ import annotations

import collections
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import opdock as tf
from opdock.runtime import fetch as fetch_module


class Point(NamedTuple):
    x: Any
    y: Any


# ---------------------------------------------------------------- fetches
def test_structures_come_back_as_they_were():
    a, b = tf.constant(1, name="a"), tf.constant(2, name="b")
    op = tf.no_op(name="op")
    v = tf.Variable(3)
    ordered = collections.OrderedDict([("z", a), ("a", b)])
    with tf.Session() as session:
        session.run(v.initializer)
        table = [
            (a, 1), ([a, b], [1, 2]), ((a, b), (1, 2)), ({"k": a}, {"k": 1}), ([], []), ({}, {}),
            ([a, [b, (a,)], {"k": [op]}], [1, [2, (1,)], {"k": [None]}]), (op, None), ("a:0", 1),
            ("op", None), (["a:0", "op"], [1, None]), (v, 3), ([v, v, a, a], [3, 3, 1, 1]),
            (Point(a, [b]), Point(1, [2])), (ordered, collections.OrderedDict(z=1, a=2)), ((), ()),
        ]  # fmt: skip
        for fetches, want in table:
            got = session.run(fetches)
            assert got == want
            assert type(got) is type(want) or not isinstance(want, (list, tuple, dict))
        assert list(session.run(ordered)) == ["z", "a"]


def test_mappings_that_are_made_of_more_than_pairs_come_back_filled():
    class Upper(collections.UserDict):
        def __init__(self):
            super().__init__()

    default, upper = collections.defaultdict(list), Upper()
    default["a"], upper["b"] = tf.constant(1), [tf.constant(2)]
    with tf.Session() as session:
        found, other = session.run([default, upper])
    assert type(found) is collections.defaultdict and found == {"a": 1}
    assert type(other) is Upper and other == {"b": [2]}


names = st.recursive(
    st.integers(0, 4), lambda kids: st.one_of(
        st.lists(kids, max_size=3), st.lists(kids, max_size=3).map(tuple),
        st.dictionaries(st.sampled_from("abc"), kids, max_size=3)), max_leaves=8,
)  # fmt: skip


@given(names)
def test_any_nesting(structure):
    with tf.Graph().as_default(), tf.Session() as session:
        tensors = [tf.constant(i) for i in range(5)]
        lift = lambda s: (
            tensors[s] if isinstance(s, int)
            else {k: lift(v) for k, v in s.items()} if isinstance(s, dict)
            else type(s)(lift(x) for x in s)
        )  # fmt: skip
        assert session.run(lift(structure)) == structure


def test_scalars_are_numpy_scalars_and_the_rest_arrays():
    with tf.Session() as session:
        assert type(session.run(tf.constant(1.0))) is np.float32
        assert type(session.run(tf.constant(True))) is np.bool_
        assert type(session.run(tf.constant("s"))) is bytes
        assert type(session.run(tf.constant([1.0]))) is np.ndarray
        strings = session.run(tf.constant(["a", "b"]))
        assert strings.dtype == object
        assert list(strings) == [b"a", b"b"]


def test_composites():
    sparse = tf.SparseTensor([[0, 1]], [5.0], [2, 2])
    slices = tf.IndexedSlices(tf.constant([1.0]), tf.constant([3]))
    with tf.Session() as session:
        got = session.run({"s": sparse, "i": slices})
    assert isinstance(got["s"], tf.SparseTensorValue)
    assert got["s"].dense_shape.tolist() == [2, 2]
    assert isinstance(got["i"], tf.IndexedSlicesValue)
    assert got["i"].dense_shape is None
    assert list(got["i"].values) == [1]


@pytest.mark.parametrize(
    ("fetches", "error", "text"),
    [
        (None, TypeError, "None"),
        ([None], TypeError, "None"),
        (3, TypeError, "Fetch argument 3 has invalid type"),
        (np.zeros(2), TypeError, "invalid type"),
        ("nothing", ValueError, "cannot be interpreted as a Tensor"),
        ("nothing:0", ValueError, "cannot be interpreted as a Tensor"),
        ("c:5", ValueError, "only has 1 outputs"),
        ({"k": 3.5}, TypeError, "invalid type"),
        (object, TypeError, "invalid type"),
    ],
    ids=str,
)
def test_what_cannot_be_fetched(fetches, error, text):
    tf.constant(1, name="c")
    with tf.Session() as session, pytest.raises(error, match=text):
        session.run(fetches)


def test_objects_of_the_user():
    class Pair:
        def __init__(self, a, b):
            self.a, self.b = a, b

    tf_register = fetch_module.register_session_run_conversion_functions
    tf_register(Pair, lambda p: ([p.a, p.b], lambda values: values))
    with tf.Session() as session:
        assert session.run({"p": Pair(tf.constant(1), tf.constant(2))}) == {"p": [1, 2]}
    with pytest.raises(ValueError, match="already been registered"):
        tf_register(Pair, lambda p: ([p.a, p.b], lambda values: values))


def test_the_users_contract_function_counts():
    class Total:
        def __init__(self, *parts):
            self.parts = parts

    fetch_module.register_session_run_conversion_functions(
        Total, lambda t: (list(t.parts), lambda values: sum(values))
    )
    with tf.Session() as session:
        assert session.run(Total(tf.constant(1), tf.constant(2))) == 3


def test_attrs_classes():
    class Both:
        """As the attrs library would make it."""

        def __init__(self, first, second):
            self.first, self.second = first, second

    Both.__attrs_attrs__ = [type("Attribute", (), {"name": n}) for n in ("first", "second")]
    with tf.Session() as session:
        got = session.run(Both(tf.constant(1), [tf.constant(2)]))
    assert (got.first, got.second) == (1, [2])


def test_feeding_objects_of_the_user():
    class Interval:
        def __init__(self):
            self.low, self.high = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])

    fetch_module.register_session_run_conversion_functions(
        Interval, feed_function=lambda i, v: [(i.low, v[0]), (i.high, v[1])]
    )
    interval = Interval()
    with tf.Session() as session:
        for _ in range(2):
            assert session.run(interval.high - interval.low, {interval: (1.0, 4.0)}) == 3


# ---------------------------------------------------------------- feeds
def test_keys_of_every_kind():
    x = tf.placeholder(tf.float32, [], name="x")
    v = tf.Variable(1.0, name="v")
    r = tf.Variable(1.0, use_resource=True)
    y = x + v
    with tf.Session() as session:
        assert session.run(y, {x: 1, v: 10}) == 11
        assert session.run(y, {"x:0": 1, "v:0": 10}) == 11
        assert session.run(r, {r: 100}) == 100
        assert session.run(v + 1, {v.value(): 5.0}) == 6
        assert session.run(y, {(x, v): (1, 2)}) == 3
        assert session.run(tf.identity(v), {v: 9.0}) == 9


def test_any_tensor_can_be_fed():
    a = tf.constant(1) + 1
    b = a * 10
    d = tf.placeholder_with_default(7, [])
    with tf.Session() as session:
        assert session.run(b, {a: 5}) == 50
        assert session.run([d, d + 1]) == [7, 8]
        assert session.run([d, d + 1], {d: 0}) == [0, 1]
        assert session.run(a, {a: 9}) == 9


def test_composite_keys():
    indices, shape = tf.placeholder(tf.int64, [None, 2]), tf.placeholder(tf.int64, [2])
    sparse = tf.SparseTensor(indices, tf.placeholder(tf.float32, [None]), shape)
    value = tf.SparseTensorValue(np.array([[0, 1]]), np.array([2.5], np.float32), np.array([2, 2]))
    with tf.Session() as session:
        assert list(session.run(sparse.values * 2.0, {sparse: value})) == [5]
        assert session.run(sparse, {sparse: ([[1, 1]], [1.0], [2, 2])}).values == [1]


@pytest.mark.parametrize(
    ("dtype", "value", "want"),
    [
        (tf.int32, 1.5, 1), (tf.int32, np.array(2.9), 2), (tf.float32, 3, 3.0), (tf.bool, 1, True),
        (tf.float32, np.float64(0.1), np.float32(0.1)), (tf.int64, True, 1), (tf.string, "a", b"a"),
        (tf.uint8, np.int64(7), 7), (tf.float16, 1.5, 1.5), (tf.complex64, 2, 2 + 0j),
        (tf.bfloat16, 1.5, 1.5), (tf.string, b"\xff", b"\xff"), (tf.int32, np.bool_(True), 1),
    ],
)  # fmt: skip
def test_values_are_cast_to_the_type(dtype, value, want):
    x = tf.placeholder(dtype, [])
    with tf.Session() as session:
        for _ in range(2):
            got = session.run(x, {x: value})
            assert got == want
            if dtype is not tf.string:
                assert got.dtype == dtype.as_numpy_dtype
        assert session.run(tf.identity(x), {x: value}) == want


def test_values_of_every_layout():
    x = tf.placeholder(tf.float32, [2, 3])
    base = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    y = x * 2.0
    with tf.Session() as session:
        for value in (base[:, :, 1], np.asfortranarray(base[:, :, 0]), base[:, ::-1, 2],
                      base[:, :, 0].tolist(), base[:, :, 0].astype(np.float64), base[..., 3] > 4,
                      np.broadcast_to(np.float32(3), (2, 3))):  # fmt: skip
            np.testing.assert_array_equal(
                session.run(y, {x: value}), 2 * np.array(value, np.float32)
            )
        readonly = base[:, :, 0].copy()
        readonly.flags.writeable = False
        got = session.run(x, {x: readonly})
        got[0, 0] = 5


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (np.zeros((3, 3)), ValueError, "Cannot feed value of shape \\(3, 3\\) for Tensor 'x:0'"),
        (1.0, ValueError, "which has shape '\\(\\?, 2\\)'"),
        ([[1, 2], [3]], ValueError, "x:0|sequence|inhomogeneous"),
        ("text", ValueError, "Cannot feed|could not convert"),
        ([["a", "b"]], ValueError, "could not convert"),
        (None, (ValueError, TypeError), ""),
        ({}, (ValueError, TypeError), ""),
    ],
    ids=str,
)
def test_values_that_do_not_fit(value, error, text):
    x = tf.placeholder(tf.float32, [None, 2], name="x")
    y = x + 1.0
    with tf.Session() as session:
        for _ in range(2):
            with pytest.raises(error, match=text or None):
                session.run(y, {x: value})
            assert session.run(y, {x: [[1, 2]]}).tolist() == [[2, 3]]


def test_a_tensor_is_no_value():
    x = tf.placeholder(tf.float32, [])
    with tf.Session() as session:
        with pytest.raises(TypeError, match="cannot be a tf.Tensor object"):
            session.run(x, {x: tf.constant(1.0)})


def test_an_integer_that_is_too_large():
    x = tf.placeholder(tf.int32, [])
    with tf.Session() as session:
        with pytest.raises(TypeError, match="with Tensor type <class 'numpy.int32'>"):
            session.run(x, {x: 2**40})
        session.run(x, {x: 2**31 - 1})


@pytest.mark.parametrize(
    ("key", "error"),
    [("nothing:0", (TypeError, ValueError)), (3, TypeError), (None, TypeError), ("c", TypeError)],
)
def test_keys_that_are_none(key, error):
    c = tf.constant(1, name="c")
    with tf.Session() as session, pytest.raises(error, match="Cannot interpret feed_dict key"):
        session.run(c, {key: 1})


def test_keys_of_another_graph():
    c = tf.constant(1)
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32)
    with tf.Session() as session, pytest.raises((TypeError, ValueError), match="not an element"):
        session.run(c, {x: 1})


def test_a_missing_feed_names_the_placeholder():
    x = tf.placeholder(tf.float32, [None, 2], name="hungry")
    y = x * 2
    with tf.Session() as session:
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            session.run(y)
    text = str(caught.value)
    assert (
        "You must feed a value for placeholder tensor 'hungry' with dtype float and shape [?,2]"
        in text
    )
    assert caught.value.op is x.op


def test_a_parameter_of_a_function_that_is_not_fed_is_named():
    signature = [tf.TensorSpec([None], tf.float32, "hungry")]
    function = tf.function(lambda x: x * 2, input_signature=signature).get_concrete_function()
    with tf.Session(graph=function.graph) as session:
        with pytest.raises(tf.errors.InvalidArgumentError, match="placeholder tensor 'hungry'"):
            session.run(function.outputs)
        assert session.run(function.outputs[0], {function.inputs[0]: [1.0]}).tolist() == [2]


def test_a_feed_that_is_not_needed_is_checked_all_the_same():
    x = tf.placeholder(tf.float32, [2])
    c = tf.constant(1)
    with tf.Session() as session:
        assert session.run(c, {x: [1, 2]}) == 1
        with pytest.raises(ValueError, match="Cannot feed value of shape"):
            session.run(c, {x: [1, 2, 3]})
