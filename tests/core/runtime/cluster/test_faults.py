"""Steps over an engine that loses, delays, repeats and cuts: errors are typed, nothing hangs, and
what a step does it does once."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import threading

import pytest

import opdock as tf
from opdock.plugin import Packet
from tests.core.runtime.cluster.threads import Fault

PS = "/job:ps/replica:0/task:0"
SOON = tf.RunOptions(timeout_in_ms=300)


@pytest.fixture
def count(far, patient):
    """A count on the server, and a step of the worker that adds what it computes to it."""
    with tf.device("/job:ps"):
        v = tf.Variable(0.0, name="v")
    with tf.device("/job:worker"):
        one = tf.identity(tf.random_uniform([]) * 0.0 + 1.0)
    with tf.device("/job:ps"):
        add = v.assign_add(one)
    with tf.Session("grpc://far:1") as sess:
        sess.run(v.initializer)
        sess.run(tf.group(add, one))
        yield sess, add, v


def once(threads, address, kind, fault):
    """A fault that comes once."""
    left = [fault]
    threads.lost.clear()

    def choose(where: str, what: str) -> Fault:
        return left.pop() if (where, what) == (address, kind) and left else Fault.NONE

    threads.fault = choose
    return left


def test_a_lost_request_is_known_at_the_deadline(threads, count):
    sess, add, v = count
    sess.run(add)
    left = once(threads, "far:0", "run", Fault.LOST)
    with pytest.raises(tf.errors.DeadlineExceededError, match=rf"300 ms.*No answer from .*{PS}"):
        sess.run(add, options=SOON)
    assert not left
    assert sess.run(v) == 2.0
    assert sess.run(add) == 3.0


def test_a_lost_part_is_known_at_the_deadline(threads, count):
    sess, add, v = count
    doubled = tf.group(add, v.assign_add(v))
    left = once(threads, "far:0", "register", Fault.LOST)
    with pytest.raises(tf.errors.DeadlineExceededError, match=rf"300 ms.*No answer from {PS}"):
        sess.run(doubled, options=SOON)
    assert not left
    assert sess.run(v) == 1.0
    sess.run(doubled)
    config = tf.ConfigProto(operation_timeout_in_ms=600_000)
    with tf.Session("grpc://far:1", config=config) as limited:
        for kind, ask in (
            ("register", lambda: limited.run(add)),
            ("variables", limited._engine.variables),
            ("explain", lambda: limited.explain(add)),
        ):
            once(threads, "far:0", kind, Fault.LOST)
            with pytest.raises(tf.errors.DeadlineExceededError, match=PS):
                ask()


def test_a_session_that_is_closed_waits_for_no_part(threads, count):
    sess, add, v = count
    asked = threading.Event()

    def lose(where: str, what: str) -> Fault:
        if what != "register":
            return Fault.NONE
        asked.set()
        return Fault.LOST

    threads.fault = lose
    told: list[BaseException] = []

    def wait() -> None:
        try:
            sess.run(tf.group(add, v))
        except tf.errors.OpError as e:
            told.append(e)

    thread = threading.Thread(target=wait)
    thread.start()
    asked.wait()
    sess.close()
    thread.join()
    assert isinstance(told[0], tf.errors.CancelledError)


def test_parts_that_no_step_will_run_are_forgotten(threads, far):
    with tf.device("/job:ps"):
        x = tf.placeholder(tf.float32, [])
        there = x * 2.0
    with tf.device("/job:worker"):
        good, bad = there + 1.0, there + 2.0
    with tf.Session("grpc://far:1") as sess:
        (session,) = far[0].service._sessions.values()
        threads.fault = lambda where, what: (
            Fault.CUT if (where, what) == ("far:1", "register") else Fault.NONE
        )
        for _ in range(3):
            with pytest.raises(tf.errors.UnavailableError):
                sess.run(bad, {x: 1.0})
        threads.fault = lambda where, what: Fault.NONE
        gc.collect()  # what failed goes with its errors, in whose frames it stands
        assert sess.run(good, {x: 1.0}) == 3.0
        assert len(session._parts) == 1


def test_a_part_that_is_let_go_before_it_is_compiled_is_not_kept(threads, far):
    with tf.device("/job:ps"):
        there = tf.random_uniform([]) * 0.0 + 2.0
    with tf.device("/job:worker"):
        good, bad = there + 1.0, there + 2.0
    with tf.Session("grpc://far:1") as sess:
        (session,) = far[0].service._sessions.values()
        faults = {("far:0", "register"): Fault.LATE, ("far:1", "register"): Fault.CUT}
        threads.fault = lambda *packet: faults.get(packet, Fault.NONE)
        with pytest.raises(tf.errors.UnavailableError):
            sess.run(bad)
        threads.fault = lambda *packet: Fault.NONE
        gc.collect()
        assert sess.run(good) == 3.0
        before = len(threads.handled.answers)
        threads.late.set()
        threads.handled.wait_for(before + 1)
        assert len(session._parts) == 1


def test_a_lost_message_between_tasks(threads, count):
    sess, add, v = count
    sess.run(add)
    left = once(threads, "far:0", "deliver", Fault.LOST)
    with pytest.raises(tf.errors.DeadlineExceededError, match=rf"No answer from .*{PS}"):
        sess.run(add, options=SOON)
    assert not left
    assert (sess.run(v), sess.run(add)) == (2.0, 3.0)


def test_a_step_whose_values_are_known_to_be_lost_ends(threads, count):
    sess, add, v = count
    sess.run(add)
    left = once(threads, "far:0", "deliver", Fault.DROPPED)
    with pytest.raises(tf.errors.UnavailableError, match="it has died"):
        sess.run(add)  # without a deadline
    assert not left
    assert (sess.run(v), sess.run(add)) == (2.0, 3.0)


def test_a_lost_answer_leaves_what_was_done(threads, count):
    sess, add, v = count
    sess.run(add)
    once(threads, "far:0", "run", Fault.UNANSWERED)
    with pytest.raises(tf.errors.DeadlineExceededError, match=PS):
        sess.run(add, options=SOON)
    assert sess.run(v) == 3.0  # as in TensorFlow: nobody knows whether it was done
    assert sess.run(add) == 4.0


def test_what_comes_twice_is_done_once(threads, count):
    sess, add, v = count
    done = sess.run(v)
    for kind in ("deliver", "cancel"):
        threads.fault = lambda where, what, kind=kind: Fault.TWICE if what == kind else Fault.NONE
        done += 1.0
        assert sess.run(add) == done
    threads.fault = lambda where, what: Fault.TWICE if what == "run" else Fault.NONE
    before = len(threads.handled.answers)
    with contextlib.suppress(tf.errors.AbortedError):  # the refusal may come before the answer
        sess.run(add)
    threads.fault = lambda where, what: Fault.NONE
    threads.handled.wait_for(before + 4)
    assert any(b"came twice" in a.header for a in threads.handled.answers[before:])
    assert sess.run(v) in (done, done + 1.0)


def test_sessions_are_opened_once(threads, far):
    threads.fault = lambda where, what: Fault.TWICE if what in ("open", "register") else Fault.NONE
    with tf.device("/job:ps"):
        v = tf.Variable(1.0)
        more = v.assign_add(1.0)
    with tf.Session("grpc://far:1") as sess:
        sess.run(v.initializer)
        assert sess.run(more) == 2.0
        assert [len(s.service._sessions) for s in far] == [1, 1]


def test_a_step_whose_time_is_over_is_not_begun_later(threads, count):
    sess, add, v = count
    sess.run(add)
    once(threads, "far:0", "run", Fault.LATE)
    before = len(threads.handled.answers)
    with pytest.raises(tf.errors.DeadlineExceededError, match=PS):
        sess.run(add, options=SOON)
    # What the worker sends, that its part is cancelled, and that both tasks know of it.
    threads.handled.wait_for(before + 4)
    threads.late.set()
    threads.handled.wait_for(before + 5)
    assert sess.run(v) == 2.0


def test_what_is_late_arrives(threads, count):
    sess, add, _ = count
    sess.run(add)
    left = once(threads, "far:0", "deliver", Fault.LATE)
    threads.late.set()
    assert sess.run(add) == 3.0
    assert not left


@pytest.mark.parametrize("kind", ["run", "deliver", "register"])
def test_a_task_that_is_cut_off(threads, count, kind):
    sess, add, v = count
    done = sess.run(v)
    threads.fault = lambda where, what: (
        Fault.CUT if where == "far:0" and what == kind else Fault.NONE
    )
    fetched = add if kind != "register" else add * 2.0
    with pytest.raises(tf.errors.UnavailableError, match="far:0 is cut off"):
        sess.run(fetched)
    threads.fault = lambda where, what: Fault.NONE
    assert sess.run(v) == done
    assert sess.run(add) == done + 1.0


def test_nobody_can_be_told_that_a_session_ends(threads, far):
    sess = tf.Session("grpc://far:1")
    threads.fault = lambda where, what: Fault.CUT
    sess.close()
    threads.fault = lambda where, what: Fault.NONE
    with tf.Session("grpc://far:1") as again:
        assert again.run(tf.constant(2) + 1) == 3


def test_a_task_of_another_version(threads, count):
    handle = threads.open["far:0"]

    def older(packet):
        answer = handle(packet)
        header = json.loads(answer.header)
        del header["protocol"]
        return Packet(json.dumps(header).encode(), answer.parts)

    threads.open["far:0"] = older
    with pytest.raises(tf.errors.FailedPreconditionError, match=rf"{PS} at far:0 .*version 1\. "):
        tf.Session("grpc://far:1")

    def newer(packet):
        header = json.loads(packet.header)
        header["protocol"] += 1
        return handle(Packet(json.dumps(header).encode(), packet.parts))

    threads.open["far:0"] = newer
    with pytest.raises(tf.errors.FailedPreconditionError, match=rf"{PS} at far:0 .*same version"):
        tf.Session("grpc://far:1")


def test_a_task_that_is_another_one(threads, far):
    """Who is started with the job name of another task, or knows another ClusterSpec."""
    threads.serve("far:0", far[1].service.handle)
    with pytest.raises(tf.errors.FailedPreconditionError, match=rf"far:0.*it is .*, not {PS}"):
        tf.Session("grpc://far:1")
    names = tf.ConfigProto(
        cluster_def=tf.train.ClusterSpec({"a": ["far:0"], "worker": ["far:1"]}).as_cluster_def()
    )
    with tf.Session("grpc://far:1", config=names) as sess:  # the session brings names of its own
        assert sess.run(tf.constant(1) + 1) == 2


def test_a_child_of_fork_does_not_speak_for_its_parent(threads, count):
    sess, add, v = count
    reads, writes = os.pipe()
    before = len(threads.asked)
    child = os.fork()
    if not child:
        try:
            for ask in (lambda: sess.run(add), lambda: sess.run(v)):
                with contextlib.suppress(tf.errors.FailedPreconditionError):
                    ask()
                    os.write(writes, b"ran, ")
            sess.close()
            os.write(writes, b"%d packets" % (len(threads.asked) - before))
        finally:
            os._exit(0)
    os.close(writes)
    os.waitpid(child, 0)
    with os.fdopen(reads) as told:
        assert told.read() == "0 packets"
    assert sess.run(add) == 2.0


def test_what_a_process_waited_for_when_it_ended_is_for_others(threads, far):
    with tf.device("/job:ps"):
        queue = tf.FIFOQueue(2, [tf.float32], shared_name="queue")
        began = tf.Variable(0.0)
        with tf.control_dependencies([began.assign_add(1.0)]):
            taken = queue.dequeue()
        put = queue.enqueue(7.0)
    with tf.device("/job:worker"):
        result = taken + 1.0
    told: list[BaseException] = []

    def wait(sess: tf.Session) -> None:
        try:
            sess.run(result)
        except tf.errors.OpError as e:
            told.append(e)

    with tf.Session("grpc://far:1") as first, tf.Session("grpc://far:1") as second:
        second.run(began.initializer)
        thread = threading.Thread(target=wait, args=(first,))
        thread.start()
        while not second.run(began):
            pass
        threads.askers[first._engine._session].ended()
        thread.join()
        assert isinstance(told[0], tf.errors.CancelledError)
        second.run(put)
        assert second.run(result) == 8.0
        # What it had said, and is only now read, begins nothing.
        with pytest.raises(tf.errors.CancelledError):
            first.run(began.assign_add(tf.identity(result)))
