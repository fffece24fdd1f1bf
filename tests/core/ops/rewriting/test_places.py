"""What is raised in rewritten code, and by what it makes, names the program's own lines."""

from __future__ import annotations

import inspect
import traceback

import pytest

import opdock as tf


@pytest.fixture(autouse=True)
def fresh():
    with tf.Graph().as_default():
        yield


def failing(x):
    if x > 0.0:
        y = tf.reshape(
            tf.stack([x, x]),
            [3],
        )
    else:
        y = x
    return y


def checked(x):
    while x > 0.0:
        x = tf.check_numerics(tf.log(x), "the logarithm")
    return x


def line_of(function, text):
    lines, first = inspect.getsourcelines(function)
    return first + next(i for i, line in enumerate(lines) if text in line)


def test_errors_have_the_users_lines():
    with pytest.raises(ValueError, match=rf"test_places.py:{line_of(failing, 'tf.reshape')}") as e:
        tf.function(failing)(tf.placeholder(tf.float32, []))
    own = [f for f in traceback.extract_tb(e.value.__traceback__) if f.filename == __file__]
    lines = [line_of(failing, "if x > 0"), line_of(failing, "tf.reshape")]
    assert [f.lineno for f in own[-2:]] == lines
    assert own[-2].name == "failing"


def test_errors_of_steps_have_the_users_lines():
    x = tf.placeholder(tf.float32, [])
    result = tf.function(checked)(x)
    assert result.op.traceback is not None
    line = line_of(checked, "check_numerics")
    with (
        tf.Session() as session,
        pytest.raises(
            tf.errors.InvalidArgumentError, match=rf"the logarithm(.|\n)*test_places.py:{line}"
        ),
    ):
        session.run(result, {x: float("inf")})


def test_exceptions_are_the_users_own():
    class Own(Exception):
        def __init__(self, a, b):
            super().__init__(a, b)

    def f(x):
        if x is not None:
            raise Own(1, 2)
        return x

    with pytest.raises(Own) as e:
        tf.function(f)(tf.constant(1))
    assert e.value.args == (1, 2)
