"""What a session says of threads holds for its own steps, and for nobody else's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import threadpoolctl

import opdock as tf
from opdock_cpu import crew as module
from opdock_cpu import threads as threads_module
from opdock_cpu.crew import Crew, Loop, why_none
from opdock_cpu.threads import at_most, threads

X = np.linspace(-1, 1, 1 << 20, dtype=np.float32)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The threads that each loop of generated code was allowed; a crew of the test's own."""
    found: list[int] = []
    begin = Loop.begin

    def told(loop: Loop, chunks: int, threads: int, quiet: bool = False) -> Any:
        found.append(threads)
        return begin(loop, chunks, threads, quiet)

    own = Crew()
    monkeypatch.setattr(module, "_crew", own)
    monkeypatch.setattr(Loop, "begin", told)
    monkeypatch.setenv("OPDOCK_JIT", "sync")
    yield found
    own.dismiss()


@pytest.fixture
def eight_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit that the machine does not reach is none."""
    monkeypatch.setattr(threads_module, "_processors", lambda: 8)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)


def session(intra: int) -> tf.Session:
    return tf.Session(config=tf.ConfigProto(intra_op_parallelism_threads=intra))


@pytest.mark.usefixtures("eight_processors")
@pytest.mark.skipif(bool(why_none()), reason=why_none() or "there are helpers")
def test_each_session_keeps_to_its_own_limit(asked: list[int]) -> None:
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [X.size])
        y = tf.tanh(x * x + 1.0) * x
    with graph.as_default(), session(1) as alone, session(3) as three:
        for _ in range(2):
            for running, count in ((alone, 1), (three, 3), (alone, 1)):
                asked.clear()
                running.run(y, {x: X})
                assert set(asked) == {count}
    assert module._crew is not None and module._crew.size <= 2


def blas() -> set[int]:
    return {i["num_threads"] for i in threadpoolctl.threadpool_info() if i["user_api"] == "blas"}


@pytest.mark.usefixtures("eight_processors")
def test_blas_is_limited_while_the_session_computes() -> None:
    seen: list[Any] = []

    def look(a: Any) -> Any:
        seen.append(blas())
        return a

    with tf.Graph().as_default() as graph:
        y = tf.py_func(look, [tf.constant(1.0)], tf.float32)
    with threadpoolctl.threadpool_limits(4, user_api="blas"), graph.as_default():
        for running, count in ((session(2), 2), (tf.Session(), 4), (session(1), 1)):
            with running:
                for _ in range(2):
                    running.run(y)
                    assert seen[-1] == {count} and blas() == {4}
                running.run(y, options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE))
                assert seen[-1] == {count} and blas() == {4}


@pytest.mark.usefixtures("eight_processors")
def test_tf_config_limits_sessions_without_a_config() -> None:
    seen: list[Any] = []
    before = tf.config.threading.get_intra_op_parallelism_threads()
    with tf.Graph().as_default() as graph:
        y = tf.py_func(lambda: seen.append(blas()) or np.float32(0), [], tf.float32)
    try:
        tf.config.threading.set_intra_op_parallelism_threads(1)
        with graph.as_default(), tf.Session() as running:
            running.run(y)
    finally:
        tf.config.threading.set_intra_op_parallelism_threads(before)
    assert seen == [{1}]


@pytest.mark.usefixtures("eight_processors")
def test_a_failed_step_gives_the_threads_back() -> None:
    def fail() -> Any:
        raise RuntimeError("no")

    before = blas()
    with tf.Graph().as_default() as graph:
        y = tf.py_func(fail, [], tf.float32)
    with graph.as_default(), session(1) as running, pytest.raises(tf.errors.UnknownError):
        running.run(y)
    assert blas() == before


@pytest.mark.usefixtures("eight_processors")
def test_the_lowest_limit_holds_inside_and_none_outside() -> None:
    with threadpoolctl.threadpool_limits(4, user_api="blas"):
        with at_most(3):
            assert threads() == 3 and blas() == {3}
            with at_most(1):
                assert threads() == 1 and blas() == {1}
            assert threads() == 3 and blas() == {3}
        assert threads() == 8 and blas() == {4}


@pytest.mark.usefixtures("eight_processors")
def test_heavy_steps_on_helpers_keep_to_the_limit() -> None:
    """A helper of the session's computes within what the session allows, like its caller."""
    seen: list[int] = []

    def look(a: Any) -> Any:
        seen.append(threads())
        return a

    config = tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=2)
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [])
        ends = [tf.py_func(look, [x + float(i)], tf.float32, stateful=False) for i in range(4)]
        total = tf.add_n(ends)
        with tf.Session(config=config) as running:
            assert running.run(total, {x: 0.0}) == 6
            assert running._program(total, {x: np.float32(0)}).overlap is not None
    assert seen == [1] * 4
