"""Python's control flow in the functions of datasets, and over datasets."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import opdock as tf


def plain(values):
    return [v.tolist() if isinstance(v, (np.ndarray, np.generic)) else v for v in values]


class Steps:
    limit = 6

    def collatz(self, x):
        count = tf.constant(0, tf.int64)
        while x > 1 and count < self.limit:
            if tf.equal(x % 2, 0):
                x = x // 2
            else:
                x = 3 * x + 1
            count += 1
        return count


def test_functions_of_datasets(walk):
    numbers = tf.data.Dataset.range(1, 9)
    assert plain(walk(numbers.map(Steps().collatz))) == [0, 1, 6, 2, 5, 6, 6, 3]
    assert plain(walk(numbers.filter(lambda x: x > 2 and not x > 6))) == [3, 4, 5, 6]
    assert plain(walk(numbers.map(lambda x: x if x > 4 else -x, 2))) == [-1, -2, -3, -4, 5, 6, 7, 8]


def several(x):
    if x > 2:
        found = tf.data.Dataset.range(x)
    else:
        found = tf.data.Dataset.range(0)
    return found.batch(2)


def test_a_branch_makes_a_dataset(walk):
    made = tf.data.Dataset.range(5).flat_map(several)
    assert plain(walk(made)) == [[0, 1], [2], [0, 1], [2, 3]]
    made = tf.data.Dataset.range(5).interleave(several, cycle_length=2)
    assert plain(walk(made)) == [[0, 1], [0, 1], [2], [2, 3]]


def test_functions_of_other_kinds(walk):
    numbers = tf.data.Dataset.range(5)
    made = tf.function(lambda x: x if x > 2 else -x)
    assert plain(walk(numbers.map(made).map(functools.partial(keep_from, 0)))) == [0, 0, 0, 3, 4]
    assert made.python_function is not made
    assert plain(walk(numbers.map(made))) == [0, -1, -2, 3, 4]
    assert plain(walk(numbers.map(tf.negative))) == [0, -1, -2, -3, -4]


def keep_from(limit, x):
    return x if x >= limit else tf.zeros_like(x)


def test_reductions_and_scans(walk):
    def biggest(old, new):
        if new > old:
            old = new + 0
        return old

    numbers = tf.data.Dataset.from_tensor_slices([3, 9, 4, 11, 5])
    with tf.Session() as session:
        assert session.run(numbers.reduce(0, biggest)) == 11

    def rising(old, new):
        top = biggest(old, new)
        return top, top

    scanned = numbers.apply(tf.data.experimental.scan(0, rising))
    assert plain(walk(scanned)) == [3, 9, 9, 11, 11]
    kept = numbers.apply(tf.data.experimental.take_while(lambda x: x < 4 or x > 8))
    assert plain(walk(kept)) == [3, 9]


def test_structures_go_through(walk):
    def f(element):
        if element["a"] > 1:
            element["b"] = element["b"] * 10
        return {**element, "c": element["a"] if element["a"] > 0 else element["b"]}

    made = tf.data.Dataset.from_tensor_slices({"a": [0, 1, 2], "b": [5, 6, 7]}).map(f)
    assert [tuple(map(int, e.values())) for e in walk(made)] == [(0, 5, 5), (1, 6, 1), (2, 70, 2)]


def test_an_error_has_the_users_line(walk):
    def f(x):
        if x > 2:
            x = tf.reshape(x, [2])
        return x

    line = f.__code__.co_firstlineno + 2
    with pytest.raises(ValueError, match=rf"test_loops.py:{line}"):
        tf.data.Dataset.range(5).map(f)


def test_a_function_is_left_where_conversion_is_off():
    @tf.autograph.experimental.do_not_convert
    def f(x):
        return x if x > 2 else -x

    with pytest.raises(TypeError, match="bool"):
        tf.data.Dataset.range(5).map(f)


# ---------------------------------------------------------------- loops over datasets
def run(function, *arguments):
    result = tf.function(function)(*arguments)
    with tf.Session() as session:
        return session.run(result)


def test_a_loop_over_a_dataset():
    def f(numbers):
        total, count = tf.constant(0, tf.int64), 0
        for x in numbers:
            if x > 2:
                total += x
            count += 1
        return total, count

    assert run(f, tf.data.Dataset.range(6)) == (12, 6)
    assert run(f, tf.data.Dataset.range(0)) == (0, 0)


def test_a_loop_over_a_dataset_that_ends_early():
    def f(pairs):
        total, tensor = 0, tf.constant([1, 2])
        for a, b in pairs:
            if a > 3:
                break
            if b < 2:
                continue
            total += b
            tensor = tensor * b
        return total, tensor

    pairs = tf.data.Dataset.from_tensor_slices(([1, 2, 3, 4, 5], [1, 2, 3, 4, 5]))
    total, tensor = run(f, pairs)
    assert total == 5
    assert tensor.tolist() == [6, 12]


def test_a_loop_that_only_has_effects():
    v = tf.Variable(0, dtype=tf.int64, use_resource=True)

    def f(numbers):
        for x in numbers:
            v.assign_add(x)
        return v.read_value()

    result = tf.function(f)(tf.data.Dataset.range(6))
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run(result) == 15


def test_enumerate_and_zip():
    def f(numbers, others):
        total = tf.constant(0, tf.int64)
        for i, (x, y) in enumerate(zip(numbers, others)):
            total += i * x * y
        return total

    assert run(f, tf.data.Dataset.range(4), tf.data.Dataset.range(1, 4)) == 0 + 1 * 2 + 2 * 2 * 3


def test_a_loop_over_what_an_iterator_has_left():
    iterator = tf.data.make_one_shot_iterator(tf.data.Dataset.range(10))
    first = iterator.get_next()

    def f():
        total = tf.constant(0, tf.int64)
        for x in iterator:
            if x > 6:
                break
            total += x
        return total

    result = tf.function(f)()
    with tf.Session() as session:
        assert session.run(first) == 0
        assert session.run(result) == sum(range(1, 7))
        assert session.run(result) == 0
        assert session.run(first) == 9


def test_types_stay_the_same():
    def f(numbers):
        x = 0
        for i in numbers:
            x = tf.cast(i, tf.float32)
        return x

    with pytest.raises(TypeError, match='"x" has dtype int32 before the loop'):
        run(f, tf.data.Dataset.range(3))
