"""One graph over several devices: what is shared, what is copied, and that all values last."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import opdock as tf
from opdock.plugin import register, unregister
from opdock.plugins.manager import get_manager
from tests.plugins import mixture

SIZE = 4096  # above the size from which the memory plan works in place


@pytest.fixture(autouse=True)
def graph():
    register(mixture, "mixture")
    with tf.Graph().as_default() as made:
        yield made
    unregister("mixture")


def device(name):
    manager = get_manager()
    return manager.open(next(d for d in manager.devices() if d.spec.name == name)).device


def feed_of(x, value):
    return {x: np.full(SIZE, value, np.float32)}


def copies(session, fetch, feed):
    return [
        (r.kernel, r.why.split(" by ")[0]) for r in session.explain(fetch, feed).rows
        if r.how == "copy"
    ]  # fmt: skip


def test_two_devices_share_what_dlpack_can_describe():
    x = tf.placeholder(tf.float32, [SIZE])
    with tf.device("/device:LEFT:0"):
        y = x + 1.0
    with tf.device("/device:RIGHT:0"):
        z = y * 2.0
    with tf.device("/cpu:0"):
        w = z - 1.0
    left, right = device("left"), device("right")
    with tf.Session() as session:
        assert copies(session, w, feed_of(x, 1)) == [
            ("upload", "host to LEFT0"), ("dlpack", "LEFT0 to RIGHT0"), ("dlpack", "RIGHT0 to host")
        ]  # fmt: skip
        session.run(w, feed_of(x, 1))
        left.counts(), right.counts()
        kept = [session.run(w, feed_of(x, i)) for i in range(20)]
    assert (left.counts(), right.counts()) == ((20, 0, 0), (0, 0, 20))
    for i, array in enumerate(kept):
        assert (array == (i + 1) * 2 - 1).all()
        assert array.flags.writeable


def test_a_fetch_is_the_callers_own():
    """It is copied out although the memory could be shared, and may be written."""
    x = tf.placeholder(tf.float32, [SIZE])
    with tf.device("/device:LEFT:0"):
        y = x + 1.0
        v = tf.Variable(tf.zeros([SIZE]))
        stored = v.assign(y)
    with tf.device("/cpu:0"):
        w = y * 1.0
    with tf.Session() as session:
        got, _, _ = session.run([y, w, stored], feed_of(x, 4))
        got[:] = -1
        first = session.run(v)
        first[:] = -2
        assert (session.run(v) == 5).all()
        assert (session.run(y, feed_of(x, 6)) == 7).all()


def test_a_variable_is_copied_not_shared():
    with tf.device("/device:LEFT:0"):
        v = tf.Variable(np.zeros(SIZE, np.float32))
        bump = tf.assign_add(v, np.ones(SIZE, np.float32))
    with tf.device("/device:RIGHT:0"):
        before = v.value() + 0.0
        with tf.control_dependencies([before, bump]):
            after = v.read_value() + 0.0
    with tf.Session() as session:
        session.run(v.initializer)
        assert "dlpack" not in [how for how, _ in copies(session, [before, after], None)][:1]
        for i in range(3):
            a, b = session.run([before, after])
            assert {float(a[0]), float(b[0])} <= {float(i), float(i + 1)}
            assert b[0] == i + 1


def test_shared_memory_is_never_planned_for_reuse():
    """RIGHT's value is read after LEFT has made several more of the same size and type."""
    x = tf.placeholder(tf.float32, [SIZE])
    with tf.device("/device:LEFT:0"):
        first = x + 1.0
        chain = first
        for i in range(6):
            chain = chain * 2.0 + float(i)
    with tf.device("/device:RIGHT:0"):
        with tf.control_dependencies([chain]):
            out = first + first
    with tf.Session() as session:
        for i in range(3):
            got, end = session.run([out, chain], feed_of(x, i))
            assert (got == 2 * (i + 1)).all()
            assert (end == 64.0 * (i + 1) + 57).all()


def test_a_device_that_reads_late_reads_what_was_written():
    """Steps later: LATE computes only when it is asked, from memory that it shares with LEFT."""
    x = tf.placeholder(tf.float32, [SIZE])
    with tf.device("/device:LEFT:0"):
        y = (x + 1.0) * 3.0
        z = y + 1.0
    with tf.device("/device:LATE:0"):
        total = tf.Variable(np.zeros(SIZE, np.float32))
        twice = y + y
        add = tf.assign(total, total + twice)
    with tf.Session() as session:
        session.run(total.initializer)
        assert ("dlpack", "LEFT0 to LATE0") in copies(session, add.op, feed_of(x, 0))
        for i in range(10):
            session.run([add.op, z.op], feed_of(x, i))
        assert (session.run(total) == sum((i + 1) * 6 for i in range(10))).all()


# ---------------------------------------------------------------- feeds
@pytest.mark.parametrize("name", ["LEFT", "RIGHT", "LATE", "ECHO"])
def test_a_fed_array_may_be_changed_once_run_returns(name):
    x = tf.placeholder(tf.float32, [SIZE])
    with tf.device(f"/device:{name}:0"):
        v = tf.Variable(np.zeros(SIZE, np.float32))
        store = tf.assign(v, x + 0.0)
        straight = tf.assign(v, x)
    with tf.Session() as session:
        session.run(v.initializer)
        array = np.full(SIZE, 5, np.float32)
        for op in (store.op, straight.op):
            array[:] = 5
            session.run(op, {x: array})
            array[:] = -1
            assert (session.run(v) == 5).all()


@pytest.mark.parametrize("name", ["LEFT", "LATE"])
def test_a_fed_array_may_be_changed_once_it_is_uploaded(name):
    """While the step runs: an op on the host writes to the array after the device has taken it."""
    x = tf.placeholder(tf.float32, [SIZE])
    array = np.full(SIZE, 5, np.float32)

    def spoil():
        array[:] = -1
        return np.float32(0)

    with tf.device(f"/device:{name}:0"):
        taken = x * 3.0
    with tf.control_dependencies([taken]):
        spoiled = tf.py_func(spoil, [], tf.float32)
    with tf.device(f"/device:{name}:0"), tf.control_dependencies([spoiled]):
        y = x + 2.0
    with tf.Session() as session:
        assert (session.run([y, taken, spoiled], {x: array})[0] == 7).all()
        assert (array == -1).all()


def test_feeds_of_threads_do_not_meet():
    """Many threads reuse their arrays while others run the same program."""
    x = tf.placeholder(tf.float32, [SIZE])
    with tf.device("/device:LEFT:0"):
        y = x + 1.0
    with tf.device("/device:RIGHT:0"):
        z = y * 2.0
    wrong = []
    with tf.Session() as session:

        def work(base):
            array = np.empty(SIZE, np.float32)
            for i in range(30):
                array[:] = base + i
                got = session.run(z, {x: array})
                if not (got == (base + i + 1) * 2).all():
                    wrong.append((base, i, got[0]))

        threads = [threading.Thread(target=work, args=(1000 * t,)) for t in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong


# ---------------------------------------------------------------- what is told
def traced(session, fetch, feed=None):
    metadata = tf.RunMetadata()
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
    value = session.run(fetch, feed, options=options, run_metadata=metadata)
    found = [
        (d.device, n) for d in metadata.step_stats.dev_stats for n in d.node_stats
        if "MEMCPY" in n.timeline_label
    ]  # fmt: skip
    return value, found


def test_a_trace_shows_bytes_route_and_time():
    x = tf.placeholder(tf.float32, [SIZE], name="x")
    with tf.device("/device:LEFT:0"):
        y = tf.add(x, 1.0, name="y")
    with tf.device("/device:ECHO:0"):
        z = tf.multiply(y, 2.0, name="z")
    with tf.Session() as session:
        _, found = traced(session, z, feed_of(x, 1))
    labels = [n.timeline_label for _, n in found]
    assert labels == [
        "x:0/copy_to_LEFT0 = MEMCPYHtoD(x:0) 16384 bytes, host to LEFT0 by upload",
        "y/copy_to_host = MEMCPYDtoH(y) 16384 bytes, LEFT0 to host by dlpack",
        "y/copy_to_ECHO0 = MEMCPYHtoD(y/copy_to_host) 16384 bytes, host to ECHO0 by upload",
        "z/copy_to_host = MEMCPYDtoH(z) 16384 bytes, ECHO0 to host by download",
    ]
    for where, node in found:
        assert where.rsplit(":", 2)[1] in ("LEFT", "ECHO")
        assert node.all_start_micros > 0
        assert node.op_end_rel_micros >= 0
        described = node.output[0].tensor_description.allocation_description
        assert described.requested_bytes == 4 * SIZE


def test_a_trace_shows_copies_in_loops_of_far_variables_and_after_a_fall():
    with tf.device("/device:ECHO:0"):
        far = tf.Variable([1.0, 2.0], name="far")
    x = tf.placeholder(tf.float32, [2])
    with tf.device("/device:LEFT:0"):
        fallen = -(x + 1.0)

    def body(i, total):
        with tf.device("/device:ECHO:1"):
            doubled = total * 2.0
        with tf.device("/cpu:0"):
            return i + 1, doubled + 1.0

    _, total = tf.while_loop(lambda i, _: i < 3, body, [0, x])
    with tf.device("/cpu:0"):
        update = tf.scatter_add(far, [0], [5.0])
    config = tf.ConfigProto(allow_soft_placement=True)
    with tf.Session(config=config) as session:
        session.run(far.initializer)
        value, found = traced(session, total, {x: [1.0, 2.0]})
        assert value.tolist() == [15.0, 23.0]
        there = [n for _, n in found if "host to ECHO1" in n.timeline_label]
        back = [n for _, n in found if "ECHO1 to host" in n.timeline_label]
        assert (len(there), len(back)) == (3, 3)

        value, found = traced(session, fallen, {x: [1.0, 2.0]})
        assert value.tolist() == [-2.0, -3.0]
        assert any("LEFT0 to host" in n.timeline_label for _, n in found)

        value, found = traced(session, update)
        assert session.run(far).tolist() == [6.0, 2.0]


def test_a_value_that_passes_through_the_host_is_there_for_others():
    """One download serves the CPU and the other device, and the explanation says the whole way."""
    x = tf.placeholder(tf.float32, [4], name="x")
    with tf.device("/device:ECHO:0"):
        y = tf.add(x, 1.0, name="y")
    with tf.device("/device:ECHO:1"):
        z = tf.multiply(y, 2.0, name="z")
    with tf.device("/cpu:0"):
        w = tf.multiply(y, 3.0, name="w")
    with tf.Session() as session:
        told = session.explain([z, w], {x: np.ones(4)})
        rows = [r for r in told.rows if r.how == "copy"]
        assert [r.node for r in rows] == [
            "x:0/copy_to_ECHO0", "y/copy_to_host", "y/copy_to_ECHO1", "z/copy_to_host"
        ]  # fmt: skip
        assert rows[1].why == "ECHO0 to host by download, step 1 of ECHO0 > host > ECHO1, cost 2"
        assert rows[3].why == "ECHO1 to host by download, cost 1"
        assert "4 copies between devices a step (2 by download, 2 by upload)" in told.summary()
        got = session.run([z, w], {x: np.ones(4)})
    assert [g.tolist() for g in got] == [[4.0] * 4, [6.0] * 4]
