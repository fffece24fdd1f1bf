"""An error says what to look at: the op, the tensor, expected and actual, the user's line.

The classes themselves are held against TensorFlow's by tests/oracle; here it is the words.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opdock as tf

Invalid = tf.errors.InvalidArgumentError


def matmul_build() -> None:
    a, b = tf.zeros([2, 3], name="left"), tf.zeros([4, 5], name="right")
    tf.matmul(a, b, name="bad")


def matmul_run() -> None:
    a, b = (tf.placeholder(tf.float32, [None, None]) for _ in range(2))
    bad = tf.matmul(a, b, name="bad")
    tf.Session().run(bad, {a: np.zeros((2, 3)), b: np.zeros((4, 5))})


def missing_feed() -> None:
    p = tf.placeholder(tf.float32, [2, 3], name="bad")
    tf.Session().run(tf.reduce_sum(p))


def feed_of_a_wrong_shape() -> None:
    p = tf.placeholder(tf.float32, [2, 3], name="bad")
    tf.Session().run(p * 2.0, {p: np.zeros((3, 2))})


def uninitialized() -> None:
    v = tf.Variable([1.0], name="bad")
    tf.Session().run(v + 1.0)


def mixed_dtypes() -> None:
    tf.add(tf.constant(1), tf.constant(1.0), name="bad")


def missing_device() -> None:
    one, two = tf.constant([1.0]), tf.constant([2.0])
    with tf.device("/gpu:7"):
        bad = tf.add(one, two, name="bad")
    tf.Session().run(bad)


def reshape_run() -> None:
    p = tf.placeholder(tf.float32)
    bad = tf.reshape(p, [4, 2], name="bad")
    tf.Session().run(bad, {p: np.zeros(6)})


def gather_out_of_range() -> None:
    p = tf.placeholder(tf.int32)
    bad = tf.gather(tf.zeros([3]), p, name="bad")
    tf.Session().run(bad, {p: [7]})


def variable_of_another_shape() -> None:
    with tf.variable_scope("scope"):
        tf.get_variable("bad", [2])
    with tf.variable_scope("scope", reuse=True):
        tf.get_variable("bad", [3])


CASES: dict[Callable[[], None], tuple[type[Exception], list[str], bool]] = {
    # program: the class, what its message says, whether it names the line that made the op
    matmul_build: (ValueError, ["'bad'", "MatMul", "3 and 4", "[2,3]", "[4,5]"], True),
    matmul_run: (Invalid, ["bad", "MatMul", "[2,3]", "[4,5]"], True),
    missing_feed: (Invalid, ["'bad'", "dtype float", "shape [2,3]"], True),
    feed_of_a_wrong_shape: (ValueError, ["(3, 2)", "'bad:0'", "(2, 3)"], False),
    uninitialized: (tf.errors.FailedPreconditionError, ["uninitialized value bad"], True),
    mixed_dtypes: (TypeError, ["'y'", "'Add", "float32", "int32", "'x'"], False),
    missing_device: (Invalid, ["operation bad", "/device:GPU:7", "CPU:0"], True),
    reshape_run: (Invalid, ["bad", "6 values", "requested shape has 8"], True),
    gather_out_of_range: (Invalid, ["bad", "indices[0] = 7", "[0, 3)"], True),
    variable_of_another_shape: (ValueError, ["scope/bad", "(3,)", "(2,)"], False),
}


@pytest.mark.parametrize("program", CASES, ids=lambda p: p.__name__)
def test_message(program: Callable[[], None]) -> None:
    kind, words, has_line = CASES[program]
    with tf.Graph().as_default(), pytest.raises(kind) as caught:
        program()
    message = str(caught.value)
    assert not [w for w in words if w not in message], message
    if has_line:
        lines, start = inspect.getsourcelines(program)
        places = [f'{__file__}", line {start + i}' for i in range(len(lines))]
        places += [f"{__file__}:{start + i}" for i in range(len(lines))]
        assert any(place in message for place in places), message


def attributes(error: Any) -> tuple[str, str, int]:
    return error.op.name, error.op.type, error.error_code


def test_a_run_time_error_carries_its_op() -> None:
    with tf.Graph().as_default(), pytest.raises(Invalid) as caught:
        matmul_run()
    assert attributes(caught.value) == ("bad", "MatMul", tf.errors.INVALID_ARGUMENT)
    assert caught.value.node_def.name == "bad"
