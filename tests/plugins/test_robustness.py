"""A thousand runs each of device lost, out of memory and kernel decline on demand.

No wrong result, no leak, one report line a cause.
"""

from __future__ import annotations

import gc
import logging
import tracemalloc
from collections.abc import Iterator

import numpy as np
import pytest

import opdock as tf
from tests.plugins import fickle

RUNS = 1000
FICKLE = "/device:FICKLE:0"
DEVICE = "/job:localhost/replica:0/task:0" + FICKLE
SOFT = tf.ConfigProto(allow_soft_placement=True)
# Each compiles its step, so a few of them show already what one leaves behind.
SESSIONS = pytest.mark.parametrize("sessions", [60, pytest.param(RUNS, marks=pytest.mark.prove)])


@pytest.fixture
def demand(nothing_beside: None) -> Iterator[fickle.Demand]:
    with tf.Graph().as_default():
        yield fickle.install()
    gc.collect()
    assert fickle.demand.in_use == 0
    fickle.uninstall()


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The lines of the run-time fallback, one by one."""
    caplog.set_level(logging.INFO, "opdock.fallback")

    class Lines(list):
        def __call__(self) -> list[str]:
            return [r.getMessage() for r in caplog.records if r.name == "opdock.fallback"]

    return Lines()


def stateless() -> tuple[tf.Tensor, tf.Tensor]:
    x = tf.placeholder(tf.float32, [None], name="x")
    with tf.device(FICKLE):
        y = tf.add(x * x, x, name="y")
    return x, y


def right(sess: tf.Session, x: tf.Tensor, y: tf.Tensor, run: int) -> bool:
    value = np.full(1 + run % 7, float(run % 50), np.float32)
    return np.array_equal(sess.run(y, {x: value}), value * value + value)


def grown(work, times: int = RUNS) -> int:
    """Bytes of Python memory that `times` calls leave behind, after some to warm up."""
    for i in range(20):
        work(i)
    gc.collect()
    tracemalloc.start()
    for i in range(20):
        work(i)
    gc.collect()
    before = tracemalloc.get_traced_memory()[0]
    for i in range(times):
        work(i)
    gc.collect()
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return after - before


# ---------------------------------------------------------------- lost
def test_lost_in_the_middle_of_a_thousand_runs(demand, told):
    x, y = stateless()
    with tf.Session(config=SOFT) as sess:
        for run in range(RUNS):
            demand.lost = run >= RUNS // 2
            assert right(sess, x, y, run), run
        (line,) = told()
        assert f"{FICKLE} was lost, as" in line
        assert "fell off the bus" in line
        assert "test_robustness.py" in line
        assert line in sess.explain(y, {x: [1.0]}).summary()
    assert demand.calls < 2 * RUNS  # it was not asked again


@SESSIONS
def test_sessions_that_lose_their_device(demand, told, sessions):
    x, y = stateless()

    def work(run: int) -> None:
        demand.lost = False
        with tf.Session(config=SOFT) as sess:
            assert right(sess, x, y, run)
            demand.lost = True
            assert right(sess, x, y, run)

    logging.getLogger("opdock.fallback").disabled = True
    try:
        # A table of the process that grows meanwhile does so once.
        assert min(grown(work, sessions) for _ in range(2)) < 200 * sessions
    finally:
        logging.getLogger("opdock.fallback").disabled = False
    gc.collect()
    assert demand.in_use == 0
    work(1)
    assert len(told()) == 1


def test_a_variable_on_a_lost_device_is_lost(demand, told):
    with tf.device(FICKLE):
        v = tf.Variable([1.0, 2.0], name="v")
        bump = tf.assign_add(v, [1.0, 1.0], name="bump")
    with tf.device("/cpu:0"):
        w = tf.Variable(5.0, name="w")
    with tf.Session(config=SOFT) as sess:
        sess.run(tf.global_variables_initializer())
        assert sess.run(bump).tolist() == [2.0, 3.0]
        demand.lost = True
        for run in range(RUNS):
            with pytest.raises(tf.errors.UnavailableError, match=r"variable v is gone.*was lost"):
                sess.run(v if run % 2 else bump)
        assert sess.run(w) == 5.0
        assert sess.run(tf.report_uninitialized_variables()).tolist() == [b"v"]
        (line,) = told()
        assert line.endswith("lost with it: v")
        sess.run(v.initializer)  # which makes it anew, on a device that there is
        for run in range(RUNS):
            assert sess.run(bump).tolist() == [2.0 + run, 3.0 + run]
    assert len(told()) == 1


def test_a_step_that_has_changed_something_does_not_run_twice(demand, told):
    with tf.device("/cpu:0"):
        count = tf.Variable(0, name="count")
        once = tf.assign_add(count, 1)
    x = tf.placeholder(tf.float32, [None])
    with tf.control_dependencies([once]), tf.device(FICKLE):
        y = tf.add(x, x, name="y")
    for run in range(RUNS // 10):
        demand.lost = False
        with tf.Session(config=SOFT) as sess:
            sess.run(count.initializer)
            sess.run(y, {x: [1.0]})
            demand.lost = True
            # The copy to the device comes before or after the count; either way it counts once.
            try:
                got = sess.run(y, {x: [1.0]})
            except tf.errors.UnavailableError as e:
                assert e.op is not None
                assert FICKLE in e.message
            else:
                assert got.tolist() == [2.0]
            assert sess.run(count) == 2, run
            assert sess.run(y, {x: [2.0]}).tolist() == [4.0]
            assert sess.run(count) == 3


def test_without_soft_placement_the_error_names_device_op_and_line(demand, told):
    x, y = stateless()
    with tf.Session() as sess:
        assert right(sess, x, y, 3)
        demand.lost = True
        for _ in range(RUNS):
            with pytest.raises(tf.errors.UnavailableError) as caught:
                sess.run(y, {x: [1.0]})
            assert FICKLE in caught.value.message
            assert "fell off the bus" in caught.value.message
            assert "test_robustness.py" in caught.value.message
    assert len(told()) == 1


@pytest.mark.parametrize("options", ["threads", "trace", "deadline"])
def test_lost_in_other_kinds_of_steps(demand, told, options):
    x, y = stateless()
    config = tf.ConfigProto(allow_soft_placement=True)
    run_options = None
    if options == "threads":
        config.inter_op_parallelism_threads = 3
    elif options == "trace":
        run_options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
    else:
        run_options = tf.RunOptions(timeout_in_ms=60_000)
    with tf.Session(config=config) as sess:
        for lost in (False, True, True):
            demand.lost = lost
            got = sess.run(y, {x: [3.0]}, run_options, tf.RunMetadata())
            assert got.tolist() == [12.0]
    assert len(told()) == 1


def test_lost_within_a_loop(demand, told):
    x = tf.placeholder(tf.float32, [2])
    with tf.device(FICKLE):
        y = tf.while_loop(lambda i, _: i < 5, lambda i, z: (i + 1, z + x), [0, x])[1]
    with tf.Session(config=SOFT) as sess:
        for lost in (False, True, True):
            demand.lost = lost
            assert sess.run(y, {x: [1.0, 2.0]}).tolist() == [6.0, 12.0]
    assert len(told()) == 1


def test_lost_while_a_program_is_prepared(demand, told):
    x = tf.placeholder(tf.float32, [])
    with tf.device(FICKLE):
        first, second = x + 1.0, x * 7.0
    with tf.Session(config=SOFT) as sess:
        assert sess.run(first, {x: 1.0}) == 2.0
        demand.lost = True
        assert sess.run(second, {x: 2.0}) == 14.0  # its constant cannot be uploaded
        assert sess.run(first, {x: 1.0}) == 2.0
    assert len(told()) == 1


def test_an_unavailable_host_op_loses_no_device(demand, told):
    """`UnavailableError` of a Python function is the function's own."""

    def fail(a):
        raise tf.errors.UnavailableError(None, None, "the server is away")

    x, y = stateless()
    bad = tf.py_func(fail, [y], tf.float32)
    with tf.Session(config=SOFT) as sess:
        with pytest.raises(tf.errors.OpError, match="server is away"):
            sess.run(bad, {x: [1.0]})
        demand.calls = 0
        assert right(sess, x, y, 4)
        assert demand.calls == 2
    assert told() == []


# ---------------------------------------------------------------- memory
def test_out_of_memory_in_a_thousand_runs(demand, told):
    x, y = stateless()
    with tf.Session(config=SOFT) as sess:
        for run in range(RUNS):
            demand.room = 8 if run % 3 == 2 else None
            value = np.full(4 + run % 5, float(run % 50), np.float32)
            assert np.array_equal(sess.run(y, {x: value}), value * value + value), run
    told_of = [line.split(" ", 1)[0] for line in told()]
    assert len(told_of) == len(set(told_of)) <= 2  # one line an op, at most


@SESSIONS
def test_sessions_without_room(demand, sessions):
    x, y = stateless()

    def work(run: int) -> None:
        with tf.Session(config=SOFT) as sess:
            demand.room = None
            assert right(sess, x, y, run)
            demand.room = 0
            assert right(sess, x, y, run)

    logging.getLogger("opdock.fallback").disabled = True
    try:
        assert grown(work, sessions) < 200 * sessions
    finally:
        logging.getLogger("opdock.fallback").disabled = False
    demand.room = None
    gc.collect()
    assert demand.in_use == 0


def test_no_room_beside_a_variable(demand, told):
    """The variable stays where its value is; the op that finds no room moves, with copies."""
    with tf.device(FICKLE):
        v = tf.Variable(np.zeros(8, np.float32), name="v")
        bump = tf.assign_add(v, np.ones(8, np.float32), name="bump")
    with tf.Session(config=SOFT) as sess:
        sess.run(v.initializer)
        wanted = 0
        for run in range(RUNS):
            # Room for the constant and one value; a sum beside them is one too many now and then.
            demand.room = 2 * 32 + 16 if run % 4 == 3 else None
            try:
                got = sess.run(bump)
            except tf.errors.ResourceExhaustedError as e:
                assert "bump" in e.message
                assert FICKLE in e.message
                demand.room = None
                assert sess.run(v).tolist() == [wanted] * 8
            else:
                wanted += 1
                assert got.tolist() == [wanted] * 8
    assert len(set(told())) == len(told()) <= 1


# ---------------------------------------------------------------- declines
def test_a_decline_in_a_thousand_runs(demand, told):
    x, y = stateless()
    with tf.Session(config=SOFT) as sess:
        for run in range(RUNS):
            demand.declines = run >= RUNS // 2
            assert right(sess, x, y, run), run
        assert len(sess._engine.experience.moves) == 2
    assert len(told()) == 2  # the product and the sum


@SESSIONS
def test_sessions_that_decline(demand, sessions):
    x, y = stateless()
    demand.declines = True

    def work(run: int) -> None:
        with tf.Session(config=SOFT) as sess:
            assert right(sess, x, y, run)
            assert right(sess, x, y, run)

    logging.getLogger("opdock.fallback").disabled = True
    try:
        assert grown(work, sessions) < 200 * sessions
    finally:
        logging.getLogger("opdock.fallback").disabled = False
    gc.collect()
    assert demand.in_use == 0


def test_a_declined_update_keeps_the_variable_where_it_is(demand, told):
    with tf.device(FICKLE):
        v = tf.Variable([0.0], name="v")
    bump = tf.assign_add(v, [1.0], name="bump")
    with tf.Session(config=SOFT) as sess:
        sess.run(v.initializer)
        for run in range(RUNS):
            demand.declines = run >= 10
            assert sess.run(bump).tolist() == [run + 1.0]
    assert len(told()) == 1


def test_a_declined_update_runs_as_its_parts(demand, told):
    """The op's decomposition takes over on the same device."""
    with tf.device(FICKLE):
        v = tf.Variable([0.0], name="v")
        step = tf.placeholder(tf.float32, [1])
        bump = tf.assign_add(v, step * step, name="bump")
    with tf.Session(config=SOFT) as sess:
        sess.run(v.initializer)
        for run in range(6):
            demand.updates = run < 3
            assert sess.run(bump, {step: [2.0]}).tolist() == [4.0 * (run + 1)]
            assert sess.run(v).tolist() == [4.0 * (run + 1)]
    (line,) = told()
    assert f"moved from {DEVICE} to {DEVICE}" in line


def test_a_locked_update_is_one(demand, told):
    """Its parts would not be: another thread may write between them."""
    with tf.device(FICKLE):
        v = tf.Variable([0.0], name="v")
        one = tf.placeholder(tf.float32, [1])
        bump = tf.assign_add(v, one * one, use_locking=True, name="bump")
    with tf.Session(config=SOFT) as sess:
        sess.run(v.initializer)
        for run in range(6):
            demand.updates = run < 3
            assert sess.run(bump, {one: [1.0]}).tolist() == [run + 1.0]
        rows = [r for r in sess.explain(bump, {one: [1.0]}).rows if r.node == "bump"]
        assert [r.device.rpartition("/")[2] for r in rows] == ["device:CPU:0"]
    (line,) = told()
    assert f"bump (AssignAdd) moved from {DEVICE} to " in line
