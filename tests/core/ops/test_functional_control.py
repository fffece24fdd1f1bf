"""Control flow over functions of the library: `functional_ops` of TF's internal modules."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

import opdock as tf
from opdock.ops.composed.defined_function import Defun as Defined
from opdock.ops.composed.functional_control import For, Gradient, If, While, partitioned_call

_numbers = itertools.count()
invalid = tf.errors.InvalidArgumentError


@pytest.fixture(autouse=True)
def _graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def defined(*kinds: Any) -> Any:
    """A decorator for functions without a name, each of which gets one."""
    return Defined(*kinds, func_name=f"f{next(_numbers)}")


def run(fetch: Any, feed: dict[Any, Any] | None = None) -> Any:
    with tf.Session() as session:
        return session.run(fetch, feed)


def test_branches_that_are_functions() -> None:
    twice = defined(tf.float32)(lambda x: x * 2.0)
    thrice = defined(tf.float32)(lambda x: x * 3.0 + 1.0)
    x = tf.placeholder(tf.float32, [])
    (y,) = If(x > 0, [x], twice, thrice)
    assert [run(y, {x: v}) for v in (-1.0, 3.0)] == [-2.0, 6.0]


def test_loops_over_functions_that_use_what_is_outside() -> None:
    step = tf.placeholder(tf.float32, [])
    goes_on = defined(tf.float32, tf.float32)(lambda n, total: n > 0)
    turn = defined(tf.float32, tf.float32)(lambda n, total: (n - 1, total + n * step))
    out = While([4.0, 0.0], goes_on, turn)
    assert len(out) == 2 and run(out, {step: 10.0}) == [0.0, 100.0]
    with pytest.raises(ValueError, match="'cond' argument must be a function without"):
        While([1.0, 1.0], defined(tf.float32, tf.float32)(lambda n, t: n > step), turn)
    with pytest.raises(ValueError, match="signatures do not match"):
        While([1.0, 1.0], defined(tf.float32)(lambda n: n > 0), turn)


def test_a_loop_whose_functions_have_too_many_results() -> None:
    goes_on = defined(tf.float32)(lambda n: n > 0)
    with pytest.raises(ValueError, match="Expected a single scalar return value, got 2 tensors"):
        While(
            [1.0], defined(tf.float32)(lambda n: (n > 0, n)), defined(tf.float32)(lambda n: n - 1)
        )
    with pytest.raises(ValueError, match="While loop body returned 2 arguments. Expected: 1"):
        While([1.0], goes_on, defined(tf.float32)(lambda n: (n - 1, n)))


@pytest.mark.parametrize("numbers", [(0, 10, 1), (3, -8, -4), (2, 2, 0), (5, 1, -1)])
def test_loops_over_a_range(numbers: tuple[int, int, int]) -> None:
    factor = tf.constant(2)
    body = defined(tf.int32, tf.int32, tf.int32)(lambda i, s, n: (s + i * factor, n + 1))
    total, count = For(*numbers, [0, 0], body)
    wanted = list(range(*numbers)) if numbers[2] else []
    assert run([total, count]) == [2 * sum(wanted), len(wanted)]


def test_ranges_that_are_none() -> None:
    body = defined(tf.int32, tf.float32)(lambda i, v: v)
    with pytest.raises(invalid, match="Invalid start/limit/delta"):
        run(For(0, 10, -1, [0.0], body))
    with pytest.raises(invalid, match="start must be a scalar"):
        For([0], 10, 1, [0.0], body)
    with pytest.raises(invalid, match="For loop body returned 1 arguments. Expected: 2"):
        For(0, 10, 1, [0.0, 1.0], body)


def test_gradients_and_calls() -> None:
    poly = defined(tf.float32)(lambda x: 2 * x * x * x + 3 * x)
    assert run(Gradient([2.0, 1.0], poly)) == [27.0]
    called = partitioned_call([tf.constant(2.0)], poly)
    assert called[0].op.type == "PartitionedCall" and run(called) == [22.0]


@pytest.mark.parametrize("known", [True, False])
def test_a_branch_whose_condition_is_known_calls_functions(known: bool) -> None:
    twice = defined(tf.float32)(lambda x: x * 2.0)
    calling = defined(tf.float32)(lambda x: partitioned_call([x], twice))
    thrice = defined(tf.float32)(lambda x: x * 3.0)
    given = tf.constant(True) if known else tf.placeholder_with_default(True, [])
    (y,) = If(given, [tf.constant(2.0)], calling, thrice)
    assert run(y) == 4.0
