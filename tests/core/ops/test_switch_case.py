"""`switch_case`: the function of a number, its default, its gradient."""

from __future__ import annotations

import pytest

import opdock as tf


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def times(n):
    return lambda: tf.constant(n * 10.0)


@pytest.mark.parametrize("kind", ["functions", "pairs", "dict"])
@pytest.mark.parametrize("default", [None, 9])
def test_the_function_of_a_number(kind, default):
    functions = [times(n) for n in range(5)]
    given = {"functions": functions, "pairs": list(enumerate(functions))[::-1]}
    given["dict"] = dict(given["pairs"])
    index = tf.placeholder(tf.int32, [])
    chosen = tf.switch_case(index, given[kind], None if default is None else times(default))
    other = 4 if default is None else default
    with tf.Session() as session:
        for n in (-7, -1, 0, 1, 2, 3, 4, 5, 2**31 - 1):
            expected = n if 0 <= n < 5 else other
            assert session.run(chosen, {index: n}) == expected * 10


def test_structures_and_gradients():
    x, index = tf.constant(3.0), tf.placeholder(tf.int64, [])
    powers = tf.switch_case(index, {0: lambda: (x, x), 1: lambda: (x * x, x), 2: lambda: (x**3, x)})
    (slope,) = tf.gradients(powers[0], x)
    with tf.Session() as session:
        assert [session.run(slope, {index: i}) for i in range(3)] == [1, 6, 27]


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((0, [times(0)]), TypeError, "branch_index must a Tensor"),
        (("float", [times(0)]), TypeError, "must an integer Tensor"),
        (("index", []), ValueError, "at least one item"),
        (("index", 3), TypeError, "must be a list, tuple, or dict"),
        (("index", [(0, times(0), 1)]), TypeError, "must be a 2-tuple"),
        (("index", [(0.0, times(0))]), TypeError, "must be a Python `int`"),
        (("index", [(0, 3)]), TypeError, "fn for key 0 must be callable"),
        (("index", [(0, times(0)), (2, times(2))]), ValueError, r"range of .0 to 2. but found"),
        (("index", [(0, times(0)), (0, times(0))]), ValueError, "contiguous"),
    ],
)
def test_arguments(arguments, error, words):
    index, functions = arguments
    tensors = {"index": tf.constant(0), "float": tf.constant(0.0)}
    with pytest.raises(error, match=words):
        tf.switch_case(tensors.get(index, index), functions)
