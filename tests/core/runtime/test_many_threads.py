"""One session and one graph under very many threads: right results, typed errors, and no hang.

Each kind of work is done by several threads at once, all let go by one barrier; what a thread gets
it compares with what it alone knows to be right.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import pytest

import opdock as tf
from opdock.eager.graph import EagerGraph
from tests.threads import WAIT

Work = Callable[[int, int], None]
"""A turn of a thread: its number, and that of the turn."""


class Program:
    """A graph that all threads use, with a session over it."""

    def __init__(self) -> None:
        self.graph = tf.Graph()
        with self.graph.as_default():
            self.x = tf.placeholder(tf.float32, [None, 3])
            self.y = tf.reduce_sum(tf.nn.relu(self.x * 2.0 - 1.0), 1)
            self.a, self.b, self.c = (tf.placeholder(tf.float32, []) for _ in range(3))
            self.ab = self.a + self.b
            self.abc = self.ab * self.c
            self.count = tf.get_variable("count", initializer=np.int64(0), use_resource=True)
            self.more = tf.assign_add(self.count, 1)
            self.bad = tf.gather(self.y, 64, name="bad")
            _, self.total = tf.while_loop(
                lambda i, s: i < 4, lambda i, s: (i + 1, s + tf.reduce_sum(self.x)), [0, 0.0]
            )
            init = tf.global_variables_initializer()
        self.session = tf.Session(graph=self.graph)
        self.session.run(init)
        self.call = self.session.make_callable([self.y, self.more], [self.x])
        self.added = itertools.count()

    def runs(self, thread: int, turn: int) -> None:
        """Feeds of the thread's own, in shapes that change."""
        x = np.full((turn % 3 + 1, 3), thread, np.float32)
        y, total = self.session.run([self.y, self.total], {self.x: x})
        assert y.tolist() == [3.0 * max(2 * thread - 1, 0)] * len(x)
        assert total == 4 * x.sum()

    def calls(self, thread: int, turn: int) -> None:
        """The callable, which writes a variable."""
        (y,), _ = self.call(np.full((1, 3), thread, np.float32))
        next(self.added)
        assert y == 3.0 * max(2 * thread - 1, 0)

    def parts(self, thread: int, turn: int) -> None:
        """A partial run, in three parts."""
        handle = self.session.partial_run_setup([self.ab, self.abc], [self.a, self.b, self.c])
        feeds = {self.a: float(thread), self.b: float(turn)}
        assert self.session.partial_run(handle, self.ab, feeds) == thread + turn
        found = self.session.partial_run(handle, self.abc, {self.c: 2.0})
        assert found == 2 * (thread + turn)

    def fails(self, thread: int, turn: int) -> None:
        """A step that fails, and a feed that does not fit."""
        with pytest.raises(tf.errors.InvalidArgumentError, match="64 is not in"):
            self.session.run(self.bad, {self.x: np.ones((thread % 5 + 1, 3), np.float32)})
        with pytest.raises(ValueError, match="Cannot feed value of shape"):
            self.session.run(self.y, {self.x: np.ones((2, 2), np.float32)})

    def grows(self, thread: int, turn: int) -> None:
        """New nodes in the graph that the others run."""
        with self.graph.as_default():
            z = self.y * float(thread) + float(turn)
        x = np.ones((2, 3), np.float32)
        assert self.session.run(z, {self.x: x}).tolist() == [3.0 * thread + turn] * 2


def together(works: list[Work], threads: int, turns: int) -> list[BaseException]:
    """Does each kind of work in its share of the threads; what they raised."""
    gate = threading.Barrier(threads)
    raised: list[BaseException] = []

    def run(thread: int) -> None:
        work = works[thread % len(works)]
        gate.wait(WAIT)
        try:
            for turn in range(turns):
                work(thread, turn)
        except BaseException as e:
            raised.append(e)

    running = [threading.Thread(target=run, args=(n,), daemon=True) for n in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join(WAIT)
        assert not thread.is_alive(), "a thread hangs"
    return raised


class EagerProgram:
    """What all threads share where operations run as they are made."""

    def __init__(self) -> None:
        self.graph = EagerGraph()
        with self.graph.as_default():
            self.count = tf.Variable(np.int64(0))
        self.added = itertools.count()
        self.halved = tf.function(self._halved)

    def _halved(self, x: tf.Tensor) -> tf.Tensor:
        while tf.reduce_sum(x) > 1.0:
            x = x * 0.5
        return x

    def gradients(self, thread: int, turn: int) -> None:
        """A tape of the thread's own."""
        with self.graph.as_default():
            x = tf.constant(np.full((turn % 3 + 1, 3), thread, np.float32))
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = tf.reduce_sum(x * x * x)
            assert np.all(tape.gradient(y, x).numpy() == 3 * thread**2)

    def counts(self, thread: int, turn: int) -> None:
        """The variable of all."""
        with self.graph.as_default():
            self.count.assign_add(1)
        next(self.added)

    def functions(self, thread: int, turn: int) -> None:
        """A function that is rewritten, as a dataset's too."""
        want = thread + 1.0
        while want > 1.0:
            want *= 0.5
        with self.graph.as_default():
            assert self.halved(tf.constant([thread + 1.0])).numpy() == [want]
            data = tf.data.Dataset.from_tensors([thread + 1.0]).map(self._halved).prefetch(1)
            assert [x.numpy().tolist() for x in data] == [[want]]

    def graphs(self, thread: int, turn: int) -> None:
        """A thread's default graph is its own, whatever mode the others are in."""
        assert not tf.executing_eagerly()
        tf.constant(float(thread), name=f"c{turn}")
        assert {op.name for op in tf.get_default_graph().get_operations()} == {
            f"c{i}" for i in range(turn + 1)
        }


@pytest.fixture
def program() -> Iterator[Program]:
    made = Program()
    yield made
    made.session.close()


@pytest.mark.parametrize("turns", [2, pytest.param(100, marks=pytest.mark.prove)])
def test_all_kinds_of_steps_at_once(program: Program, turns: int) -> None:
    works = [program.runs, program.calls, program.parts, program.fails, program.grows]
    for error in together(works, 64, turns):
        raise error
    assert program.session.run(program.count) == next(program.added)


@pytest.mark.parametrize("turns", [2, pytest.param(100, marks=pytest.mark.prove)])
def test_eager_operations_at_once(turns: int) -> None:
    program = EagerProgram()
    works = [program.gradients, program.counts, program.functions, program.graphs]
    for error in together(works, 64, turns):
        raise error
    with program.graph.as_default():
        assert program.count.numpy() == next(program.added)


@pytest.mark.parametrize("rounds", [1, pytest.param(50, marks=pytest.mark.prove)])
def test_a_session_that_is_closed_in_the_middle(rounds: int) -> None:
    """Whatever a thread is about, its step ends: cancelled, or refused as the session is closed."""
    for _ in range(rounds):
        program = Program()
        kinds = [program.runs, program.calls, program.parts, program.grows]
        all_busy = threading.Barrier(64)
        raised = together([partial(until_closed, program, k, all_busy) for k in kinds], 64, 1)
        assert raised == []


def until_closed(
    program: Program, work: Work, all_busy: threading.Barrier, thread: int, turn: int
) -> None:
    """Works on while the last thread closes the session."""
    work(thread, turn)
    all_busy.wait(WAIT)
    if thread == 63:
        program.session.close()
    for more in itertools.count(1):
        try:
            work(thread, more)
        except (tf.errors.CancelledError, RuntimeError) as e:
            assert "closed" in str(e) or "cancel" in str(e)
            return
