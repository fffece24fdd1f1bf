"""A child after `fork` computes: what needs several threads, with sessions old and new."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock_cpu.onednn.library import reason
from opdock_cpu.onednn.matmul import Factors, matrices
from opdock_cpu.onednn.memory import dense
from opdock_cpu.threads import use_threads
from tests.threads import WAIT

pytestmark = [
    pytest.mark.skipif(
        "fork" not in multiprocessing.get_all_start_methods(), reason="this system does not fork"
    ),
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning"),
]
X = np.random.default_rng(4).normal(size=(8, 24, 24, 16)).astype(np.float32)


def in_a_child(act: Callable[[], Any]) -> Any:
    """What `act` gives in a child; a child that hangs is an error."""
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=lambda: queue.put(act()))
    child.start()
    try:
        found = queue.get(timeout=WAIT)
    finally:
        child.kill()
        child.join()
    return found


class Program:
    """Convolutions, products, folds and draws that are worth several threads, and a gradient."""

    def __init__(self) -> None:
        self.graph = tf.Graph()
        with self.graph.as_default():
            tf.set_random_seed(3)
            self.x = tf.placeholder(tf.float32, X.shape)
            init = tf.random_normal_initializer(stddev=0.1, seed=1)
            kernel = tf.get_variable("kernel", [3, 3, 16, 32], initializer=init)
            weights = tf.get_variable("weights", [32 * 24, 96], initializer=init)
            y = tf.nn.relu(tf.nn.conv2d(self.x, kernel, [1, 1, 1, 1], "SAME"))
            pooled = tf.nn.max_pool(y, [1, 2, 2, 1], [1, 1, 1, 1], "SAME")
            z = tf.matmul(tf.reshape(pooled, [-1, 32 * 24]), weights)
            noise = tf.random_uniform([200_000], seed=5)
            loss = tf.reduce_mean(tf.square(tf.tanh(z))) + tf.reduce_sum(noise) * 1e-6
            self.fetches = [loss, *tf.gradients(loss, [kernel, weights])]
            self.initializer = tf.global_variables_initializer()

    def session(self) -> tf.Session:
        session = tf.Session(graph=self.graph)
        session.run(self.initializer)
        return session

    def step(self, session: tf.Session) -> list[np.ndarray[Any, Any]]:
        return [np.asarray(v) for v in session.run(self.fetches[1:], {self.x: X})]


@pytest.fixture
def two_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPDOCK_JIT", "sync")
    monkeypatch.setenv("OMP_NUM_THREADS", "2")


def same(a: list[Any], b: list[Any]) -> None:
    for x, y in zip(a, b, strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.usefixtures("two_threads")
def test_sessions_in_a_child() -> None:
    program = Program()
    with program.session() as session:
        before = [program.step(session) for _ in range(3)]

        def in_the_inherited_one() -> Any:
            return [program.step(session) for _ in range(2)]

        def in_a_new_one() -> Any:
            with program.session() as own:
                return [program.step(own) for _ in range(2)]

        for found in (in_a_child(in_the_inherited_one), in_a_child(in_a_new_one)):
            for values in found:
                same(values, before[0])
        same(program.step(session), before[0])


@pytest.mark.skipif(bool(reason()), reason=reason() or "oneDNN is here")
def test_a_primitive_for_several_threads_in_a_child() -> None:
    """OpenMP's own threads, which products of this size in parts do without."""
    a, b = X.reshape(-1, 256)[:256], X.reshape(256, -1)
    out = np.empty((256, b.shape[1]), np.float32)
    factors = Factors(matrices(a.shape, False), matrices(b.shape, False), dense(out.shape))
    use_threads(2)
    try:
        run = factors.primitive(None).run
    finally:
        use_threads(0)

    def multiply() -> Any:
        out[:] = 0
        for _ in range(4):
            run(a, b, out)
        return out.copy()

    here = multiply()
    np.testing.assert_array_equal(in_a_child(multiply), here)
    np.testing.assert_array_equal(in_a_child(lambda: in_a_child(multiply)), here)


def reading() -> tuple[Callable[[], Any], Callable[[], None]]:
    """What takes from an iterator and a queue that have threads, and what ends them."""
    with tf.Graph().as_default() as graph:
        numbers = tf.data.Dataset.range(40).map(lambda i: i + 1, num_parallel_calls=2)
        element = numbers.prefetch(4).batch(4).make_one_shot_iterator().get_next()
        number = tf.train.range_input_producer(10, shuffle=False).dequeue()
        session, coordinator = tf.Session(graph=graph), tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coordinator)

    def end() -> None:
        coordinator.request_stop()
        coordinator.join(threads)
        session.close()

    return lambda: (session.run(element).tolist(), int(session.run(number))), end


def test_a_child_reads_while_its_parent_does() -> None:
    take, end = reading()
    assert take() == ([1, 2, 3, 4], 0)
    # Threads of the parent are not in the child, which makes a session of its own.
    assert in_a_child(lambda: reading()[0]()) == ([1, 2, 3, 4], 0)
    assert take() == ([5, 6, 7, 8], 1)
    end()
