"""Ctrl-C at any line of a step, its compilation included: it is raised, and the program goes on.

The interrupt comes from a trace function at the n-th line that opdock runs, so no clock decides.
"""

from __future__ import annotations

import contextlib
import dis
import gc
import itertools
import sys
import threading
import traceback
import weakref
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, NoReturn

import numpy as np
import pytest

import opdock as tf
from opdock.eager.graph import EagerGraph
from opdock.kernels.expr import tree
from opdock.plugins import manager
from opdock.runtime.cancellation import Cancellation
from opdock.util import interrupts

X = np.ones((2, 4), np.float32)


class Interrupt:
    """Raises KeyboardInterrupt at the n-th line of opdock's."""

    def __init__(self, number: int) -> None:
        self.left = number
        self.at = ""  # the calls that it came into

    def enter(self, frame: FrameType, event: str, arg: Any) -> Any:
        """A call; only those of opdock's code and of what it generated are followed."""
        file = frame.f_code.co_filename
        return self.line if "opdock" in file or file.startswith("<") else None

    def line(self, frame: FrameType, event: str, arg: Any) -> Any:
        """A line."""
        self.left -= event == "line"
        if self.left > 0 or event != "line" or leaves_a_block(frame) or finalizes(frame):
            return self.line
        return self.come(frame)

    def come(self, frame: FrameType) -> NoReturn:
        """Raises it."""
        sys.settrace(None)
        self.at = "".join(traceback.format_stack(frame))
        raise KeyboardInterrupt


def leaves_a_block(frame: FrameType) -> bool:
    """Whether a `with` is about to be left.

    There is a line event then, and what it raises comes before `__exit__` is called, so that no
    lock would ever be released. Signals are looked at after calls and jumps alone, never there.
    """
    ahead = (i for i in dis.get_instructions(frame.f_code) if i.offset >= frame.f_lasti)
    # What a block returns waits on the stack.
    call = itertools.islice((i for i in ahead if i.opname != "SWAP"), 3)
    return all(i.opname == "LOAD_CONST" and i.argval is None for i in call)


def finalizes(frame: FrameType | None) -> bool:
    """Whether a finalizer runs, whose errors Python prints and drops.

    A generator that goes before its end has one. And when a module has been imported, a callback of
    the import system removes its lock, the greatest part of all these lines in a first step.
    """
    if isinstance(sys.exception(), GeneratorExit):
        return True
    while frame is not None:
        code = frame.f_code
        if code.co_name == "__del__" or code.co_filename == weakref.__file__:
            return True
        if code.co_qualname == "_get_module_lock.<locals>.cb":
            return True
        frame = frame.f_back
    return False


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
        self.session = tf.Session()
        self.session.run(self.init)

    def first(self) -> Any:
        """A step."""
        return self.session.run([self.loss, self.step], {self.x: X})[0]

    def losses(self) -> list[Any]:
        """The losses of three steps from the beginning."""
        self.session.run(self.init)
        return [self.first() for _ in range(3)]


class EagerTraining:
    """Such a model whose operations run as they are made, in a function that is rewritten."""

    def __init__(self) -> None:
        self.graph = EagerGraph()
        with self.graph.as_default():
            self.w = tf.Variable(tf.ones([4, 4]))
            self.loss_of = tf.function(self._loss)

    def _loss(self, x: Any) -> Any:
        h = tf.nn.relu(tf.matmul(x, self.w) + 1.0)
        if tf.reduce_sum(h) > 0:
            h = h * 2.0
        else:
            h = h - 1.0
        _, total = tf.while_loop(
            lambda i, s: i < 3, lambda i, s: (i + 1, s + tf.reduce_mean(h)), [0, 0.0]
        )
        return tf.reduce_mean(h) + total

    def first(self) -> Any:
        """A step."""
        with self.graph.as_default():
            with tf.GradientTape() as tape:
                loss = self.loss_of(tf.constant(X))
            self.w.assign_sub(0.1 * tape.gradient(loss, self.w))
            return loss.numpy()

    def losses(self) -> list[Any]:
        """The losses of three steps from the beginning."""
        with self.graph.as_default():
            self.w.assign(tf.ones([4, 4]))
        return [self.first() for _ in range(3)]


KINDS: dict[str, Callable[[], Training | EagerTraining]] = {
    "session": Training, "eager": EagerTraining,
}  # fmt: skip


def interrupted(kind: str, number: int, want: list[Any]) -> bool:
    """Interrupts a first step at a line; whether there was such a line."""
    try:
        return _interrupted(kind, Interrupt(number), want)
    except KeyboardInterrupt as e:
        raise AssertionError(f"an interrupt came late; it was to come at line {number}") from e


def _interrupted(kind: str, interrupt: Interrupt, want: list[Any]) -> bool:
    with tf.Graph().as_default():
        model = KINDS[kind]()
        old = sys.gettrace()
        sys.settrace(interrupt.enter)
        try:
            model.first()
        except KeyboardInterrupt:
            pass
        else:
            assert interrupt.left > 0, f"the interrupt was lost, which came here:\n{interrupt.at}"
            return False
        finally:
            sys.settrace(old)
        assert gc.isenabled()
        # In another thread: what is still locked would stop it.
        found: list[Any] = []
        thread = threading.Thread(target=lambda: found.extend(model.losses()), daemon=True)
        thread.start()
        thread.join(600)
        # Generated code, which comes when it is ready, rounds in its own way.
        np.testing.assert_allclose(found, want, rtol=1e-5)
    return True


def undisturbed(kind: str) -> list[Any]:
    with tf.Graph().as_default():
        return KINDS[kind]().losses()


def lines(step: int) -> Iterator[int]:
    """The numbers of lines, so many apart, a little more every time: no two in one cycle."""
    number = 1
    while True:
        yield number
        number += step + number % 7


@pytest.mark.parametrize("kind", KINDS)
def test_some_lines(kind: str) -> None:
    want = undisturbed(kind)
    hit = [interrupted(kind, n, want) for n in (1, 150, 3_000, 20_011, 50_021)]
    assert hit[:3] == [True] * 3


@pytest.mark.prove
@pytest.mark.parametrize("kind", KINDS)
def test_many_lines(kind: str) -> None:
    want = undisturbed(kind)
    count = 0
    for number in lines(173):
        if not interrupted(kind, number, want):
            break
        count += 1
    assert count > 200


@contextlib.contextmanager
def finalizers() -> Iterator[list[str]]:
    """Those in Python that run meanwhile: an interrupt in one of them Python prints and forgets."""
    found: list[str] = []

    def enter(frame: FrameType, event: str, arg: Any) -> None:
        code = frame.f_code
        removes = code.co_name in ("remove", "_remove") and "weakref" in code.co_filename
        if event == "call" and (code.co_name == "__del__" or removes):
            found.append(code.co_qualname)

    gc.collect()
    gc.disable()  # what others have left is not looked for here
    old = sys.getprofile()
    sys.setprofile(enter)
    try:
        yield found
    finally:
        sys.setprofile(old)
        gc.enable()


def test_neither_steps_nor_their_making_run_finalizers_that_swallow_interrupts() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [2, 4])
        shared = tf.FIFOQueue(2, tf.float32, shapes=[[]])
        elements = tf.data.Dataset.range(1 << 40).map(lambda n: n + 1).prefetch(2)
        w = tf.get_variable("w", [4, 4])
        session.run(w.initializer)
        steps = [
            tf.reduce_sum(x), tf.py_func(lambda v: v, [x], tf.float32), shared.enqueue(3.0),
            shared.dequeue(), elements.make_one_shot_iterator().get_next(),
            tf.cond(x[0, 0] > 0, lambda: x + 1, lambda: x),
            tf.train.AdamOptimizer().minimize(tf.reduce_sum(x @ w)),
        ]  # fmt: skip
        session.run(tf.global_variables_initializer())
        for step in steps:
            session.run(step, {x: X})
        last = tf.reduce_sum(x) * 2.0
        with finalizers() as found:
            for step in (*steps, last):
                session.run(step, {x: X})
        assert not found
        with finalizers() as found:
            Cancellation("as a step with a time-out has one")
        assert not found


class InFinalizer(Interrupt):
    """Raises KeyboardInterrupt at the n-th line that runs within a finalizer of opdock's."""

    def line(self, frame: FrameType, event: str, arg: Any) -> Any:
        """A line."""
        here = event == "line" and within_own_finalizer(frame)
        self.left -= here
        if self.left > 0 or not here or leaves_a_block(frame):
            return self.line
        return self.come(frame)


def within_own_finalizer(frame: FrameType | None) -> bool:
    """Whether what a line raises comes to a finalizer of opdock's, before Python drops it."""
    if isinstance(sys.exception(), GeneratorExit):
        return False
    while frame is not None and frame.f_code.co_filename != weakref.__file__:
        behind = frame.f_back
        if behind is not None and behind.f_code.co_filename == interrupts.__file__:
            return behind.f_code.co_name == "__del__"
        if frame.f_code.co_name == "__del__":
            return False
        frame = behind
    return False


def dropped(number: int) -> bool:
    """Interrupts the end of a session that nobody has any more; whether it took so many lines."""
    with tf.Graph().as_default():
        element = tf.data.Dataset.range(1 << 40).prefetch(2).make_one_shot_iterator().get_next()
        kept = tf.get_variable("kept", [2])
        session = tf.Session()
        session.run(kept.initializer)
        session.run(element)
        old, interrupt = sys.gettrace(), InFinalizer(number)
        ended = session._engine.resources.cancellation
        sys.settrace(interrupt.enter)
        try:
            del session
            sys.settrace(old)
            if interrupt.left > 0:
                return False
            threading.Event().wait(600)
        except KeyboardInterrupt:
            pass
        else:
            raise AssertionError("the interrupt was lost")
        finally:
            sys.settrace(old)
        assert ended.cancelled
    return True


def test_while_a_dropped_session_ends() -> None:
    """Python prints what a finalizer raises, and drops it; the interrupt comes afterwards."""
    count = 0
    for number in itertools.count(1, 5):
        if not dropped(number):
            break
        count += 1
    assert count > 10


def test_a_finalizer_may_run_a_program_wherever_the_collector_does() -> None:
    """Objects are made under these locks, so the collector may run there, and a user's finalizer
    with it. Where a lock kept its own thread out, that thread would stand still for ever."""
    with manager._manager_lock, tree._nodes_lock:
        assert all(len(undisturbed(kind)) == 3 for kind in KINDS)
