"""Ctrl-C at any line of a step, its compilation included: it is raised, and the session goes on.

The interrupt comes from a trace function at the n-th line that opdock runs, so no clock decides.
"""

from __future__ import annotations

import dis
import gc
import itertools
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.kernels.expr import tree
from opdock.plugins import manager

X = np.ones((2, 4), np.float32)


class Interrupt:
    """Raises KeyboardInterrupt at the n-th line of opdock's."""

    def __init__(self, number: int) -> None:
        self.left = number

    def enter(self, frame: FrameType, event: str, arg: Any) -> Any:
        """A call; only those of opdock's code and of what it generated are followed."""
        file = frame.f_code.co_filename
        return self.line if "opdock" in file or file.startswith("<") else None

    def line(self, frame: FrameType, event: str, arg: Any) -> Any:
        """A line."""
        self.left -= event == "line"
        if self.left <= 0 and event == "line" and not leaves_a_block(frame):
            sys.settrace(None)
            raise KeyboardInterrupt
        return self.line


def leaves_a_block(frame: FrameType) -> bool:
    """Whether a `with` is about to be left.

    There is a line event then, and what it raises comes before `__exit__` is called, so that no
    lock would ever be released. Signals are looked at after calls and jumps alone, never there.
    """
    ahead = (i for i in dis.get_instructions(frame.f_code) if i.offset >= frame.f_lasti)
    # What a block returns waits on the stack.
    call = itertools.islice((i for i in ahead if i.opname != "SWAP"), 3)
    return all(i.opname == "LOAD_CONST" and i.argval is None for i in call)


class Training:
    """A small model with control flow, and what undisturbed steps of it give."""

    def __init__(self) -> None:
        self.x = tf.placeholder(tf.float32, [None, 4])
        w = tf.get_variable("w", [4, 4], initializer=tf.ones_initializer())
        h = tf.nn.relu(tf.matmul(self.x, w) + 1.0)
        h = tf.cond(tf.reduce_sum(h) > 0, lambda: h * 2.0, lambda: h - 1.0)
        _, total = tf.while_loop(
            lambda i, s: i < 3, lambda i, s: (i + 1, s + tf.reduce_mean(h)), [0, 0.0]
        )
        self.loss = tf.reduce_mean(h) + total
        self.step = tf.train.GradientDescentOptimizer(0.1).minimize(self.loss)
        self.init = tf.global_variables_initializer()

    def losses(self, session: tf.Session) -> list[Any]:
        """The losses of three steps from the beginning."""
        session.run(self.init)
        return [session.run([self.loss, self.step], {self.x: X})[0] for _ in range(3)]


def interrupted(number: int, want: list[Any]) -> bool:
    """Interrupts a first step at a line; whether there was such a line."""
    with tf.Graph().as_default(), tf.Session() as session:
        model = Training()
        session.run(model.init)
        interrupt = Interrupt(number)
        old = sys.gettrace()
        sys.settrace(interrupt.enter)
        try:
            session.run(model.step, {model.x: X})
        except KeyboardInterrupt:
            pass
        else:
            assert interrupt.left > 0, "the interrupt was lost"
            return False
        finally:
            sys.settrace(old)
        assert gc.isenabled()
        # In another thread: what is still locked would stop it.
        found: list[Any] = []
        thread = threading.Thread(target=lambda: found.extend(model.losses(session)), daemon=True)
        thread.start()
        thread.join(600)
        # Generated code, which comes when it is ready, rounds in its own way.
        np.testing.assert_allclose(found, want, rtol=1e-5)
    return True


def undisturbed() -> list[Any]:
    with tf.Graph().as_default(), tf.Session() as session:
        return Training().losses(session)


def lines(step: int) -> Iterator[int]:
    """The numbers of lines, so many apart, a little more every time: no two in one cycle."""
    number = 1
    while True:
        yield number
        number += step + number % 7


def test_some_lines() -> None:
    want = undisturbed()
    hit = [interrupted(n, want) for n in (1, 150, 3_000, 20_011, 50_021)]
    assert hit[:3] == [True] * 3


@pytest.mark.prove
def test_many_lines() -> None:
    want = undisturbed()
    count = 0
    for number in lines(173):
        if not interrupted(number, want):
            break
        count += 1
    assert count > 200


def test_a_finalizer_may_run_a_program_wherever_the_collector_does() -> None:
    """Objects are made under these locks, so the collector may run there, and a user's finalizer
    with it. Where a lock kept its own thread out, that thread would stand still for ever."""
    with manager._manager_lock, tree._nodes_lock:
        assert len(undisturbed()) == 3
