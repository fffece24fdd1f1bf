"""What a signal handler raises is the program's, whatever code it comes into."""

from __future__ import annotations

import functools
import signal
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.failures import failures


class TimeIsOverError(TimeoutError):
    """What a program raises when the time that it has set itself is over."""


def over(*_: Any) -> None:
    raise TimeIsOverError("the time is over")


class Over:
    """Handlers that are no functions."""

    def method(self, *_: Any) -> None:
        over()

    def __call__(self, *_: Any) -> None:
        over()


@pytest.fixture(
    params=[over, functools.partial(over, 1), Over().method, Over()],
    ids=["function", "partial", "method", "object"],
)
def comes(request: pytest.FixtureRequest) -> Iterator[Callable[..., Any]]:
    """Has a signal come whose handler raises."""
    before = signal.signal(signal.SIGUSR1, request.param)
    yield lambda *_, **__: signal.raise_signal(signal.SIGUSR1)
    signal.signal(signal.SIGUSR1, before)


def caught(call: Callable[[], Any]) -> type[BaseException]:
    try:
        call()
    except failures() as e:
        return type(e)
    raise AssertionError("nothing was raised")


def test_what_others_raise_is_caught(comes: Callable[..., Any]) -> None:
    assert caught(lambda: 1 // 0) is ZeroDivisionError
    assert caught(exit) is SystemExit


def test_what_a_handler_raises_is_not(comes: Callable[..., Any]) -> None:
    with pytest.raises(TimeIsOverError):
        caught(comes)
    assert caught(lambda: 1 // 0) is ZeroDivisionError


@pytest.mark.parametrize(
    "caller",
    [
        pytest.param("kernels/select/selection.py", id="when() of a kernel"),
        pytest.param("runtime/program/bind.py", id="bind() of a kernel"),
        pytest.param("compiler/views/run.py", id="a graph pass"),
        pytest.param("<opdock program>", id="a kernel"),
    ],
)
def test_a_step_ends_with_it_and_the_next_is_whole(comes: Callable[..., Any], caller: str) -> None:
    """The signal comes when a plugin's function is called from a file of the core."""
    came = []

    def look(frame: FrameType, event: str, _: Any) -> None:
        before = frame.f_back
        plugins = "/opdock_cpu/" in frame.f_code.co_filename
        if event == "call" and plugins and before is not None and not came:
            if before.f_code.co_filename.endswith(caller):
                came.append(frame.f_code.co_name)
                sys.setprofile(None)
                comes()

    x = tf.placeholder(tf.float32, [None, 8])
    y = tf.cumsum(tf.matmul(x, tf.ones([8, 8])), exclusive=True)
    feed = {x: np.ones((4, 8), np.float32)}
    with tf.Session() as session:
        session.run(tf.constant(1.0) + 1.0)  # the device is open
        sys.setprofile(look)
        try:
            with pytest.raises(TimeIsOverError):
                session.run(y, feed)
        finally:
            sys.setprofile(None)
        assert came
        np.testing.assert_array_equal(session.run(y, feed)[:, 0], [0, 8, 16, 24])
