"""Functions of Python's own and lists in rewritten code, and what features change."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf


@pytest.fixture(autouse=True)
def fresh():
    with tf.Graph().as_default():
        yield


# ---------------------------------------------------------------- functions of Python's
def test_len_of_tensors():
    f = tf.autograph.to_graph(lambda x: len(x))
    assert f([1, 2]) == 2
    assert f(tf.zeros([3, 1])) == 3
    some, open_rank = tf.placeholder(tf.int32, [None, 2]), tf.placeholder(tf.int32)
    lengths = [f(some), f(open_rank)]
    with tf.Session() as session:
        feeds = {some: np.zeros([5, 2]), open_rank: [1, 2, 3, 4]}
        assert session.run(lengths, feeds) == [5, 4]
        with pytest.raises(tf.errors.InvalidArgumentError, match="non-zero rank"):
            session.run(lengths[1], {open_rank: 7})


def test_numbers_of_tensors():
    def f(x):
        return int(x) + abs(int(-3.5)), float(x) / 2

    x, text = tf.constant(7.9), tf.constant("12")
    with tf.Session() as session:
        assert session.run(tf.autograph.to_graph(f)(x)) == (10, np.float32(3.95))
        assert session.run(tf.autograph.to_graph(lambda t: int(t))(text)) == 12


def test_print_and_assert_where_the_features_are_on(capsys):
    Feature = tf.autograph.experimental.Feature

    @tf.function(
        experimental_autograph_options=(Feature.ASSERT_STATEMENTS, Feature.BUILTIN_FUNCTIONS)
    )
    def f(x):
        print("x =", x, end=";")
        assert x > 0, "x is positive"
        return x

    x = tf.placeholder(tf.int32, [])
    result = f(x)
    with tf.Session() as session:
        assert session.run(result, {x: 3}) == 3
        with pytest.raises(tf.errors.InvalidArgumentError, match="x is positive"):
            session.run(result, {x: -3})
    assert capsys.readouterr().out == "x = 3;x = -3;"


def test_equality_where_the_feature_is_on():
    def f(a, b):
        return a == b, a != b

    feature = tf.autograph.experimental.Feature.EQUALITY_OPERATORS
    made = tf.autograph.to_graph(f, experimental_optional_features=feature)
    with tf.Session() as session:
        assert session.run(made(tf.constant(1), tf.constant(1))) == (True, False)


def test_name_scopes_where_the_feature_is_on():
    def _inner(x):
        return tf.negative(x, name="n")

    feature = tf.autograph.experimental.Feature.NAME_SCOPES
    made = tf.autograph.to_graph(_inner, experimental_optional_features=feature)
    assert made(tf.constant(1)).op.name == "fn_inner/n"


# ---------------------------------------------------------------- lists
def test_lists_in_loops():
    from opdock.contrib import autograph as ag

    def f(n):
        found = []
        ag.set_element_type(found, tf.int32)
        for i in tf.range(n):
            if i % 2 < 1:
                found.append(i * i)
        last = found[2]
        return ag.stack(found), last

    made = ag.to_graph(f, experimental_optional_features=ag.Feature.LISTS)
    with tf.Session() as session:
        squares, last = session.run(made(tf.constant(7)))
    assert squares.tolist() == [0, 4, 16, 36]
    assert last == 16


def test_items_are_set_where_the_feature_is_on():
    def f(x):
        x[1] = 7
        return x

    feature = tf.autograph.experimental.Feature.LISTS
    made = tf.autograph.to_graph(f, experimental_optional_features=feature)
    with tf.Session() as session:
        assert session.run(made(tf.constant([1, 2, 3]))).tolist() == [1, 7, 3]
    assert made([1, 2, 3]) == [1, 7, 3]


def test_arrays_in_loops():
    def f(n):
        found = tf.TensorArray(tf.int32, size=0, dynamic_size=True)
        for i in tf.range(n):
            found = found.write(i, i * 2)
        return found.stack()

    with tf.Session() as session:
        assert session.run(tf.autograph.to_graph(f)(tf.constant(4))).tolist() == [0, 2, 4, 6]
