"""The supervisor: what it finds or makes, its sessions, its threads."""

from __future__ import annotations

import threading

import pytest

import opdock as tf
from opdock.contrib import testing
from opdock.train.loops import services


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as g:
        yield g


def test_defaults_go_to_the_collections(graph):
    v = tf.Variable(0, name="global_step")
    tf.summary.scalar("v", v)
    sv = tf.train.Supervisor()
    keys = tf.GraphKeys
    for key, found in (
        (keys.READY_OP, sv.ready_op), (keys.INIT_OP, sv.init_op), (keys.SAVERS, sv.saver),
        (keys.LOCAL_INIT_OP, sv._local_init_op), (keys.SUMMARY_OP, sv.summary_op),
        (keys.GLOBAL_STEP, sv.global_step),
    ):  # fmt: skip
        assert tf.get_collection(key) == [found]
    assert sv.ready_for_local_init_op is None
    assert sv.summary_writer is None
    assert sv.save_path is None
    assert graph.finalized
    assert tf.train.Supervisor(graph=graph, ready_op=None, summary_op=None).summary_op is None


def test_a_session_is_initialized_restored_and_saved(tmp_path):
    v = tf.Variable(1, name="v")
    up = v.assign_add(1)
    seen = []
    sv = tf.train.Supervisor(
        logdir=str(tmp_path), save_model_secs=0, init_fn=lambda sess: seen.append(sess.run(v))
    )
    with sv.managed_session() as sess:
        assert sess.run(up) == 2
        sv.saver.save(sess, sv.save_path)
    with sv.managed_session() as sess:
        assert sess.run(v) == 2
    assert seen == [1]
    assert (tmp_path / "graph.pbtxt").exists()
    with pytest.raises(RuntimeError, match="closed Session"):
        sess.run(v)


def test_an_error_leaves_the_block_and_the_end_of_input_does_not():
    tf.Variable(1)
    sv = tf.train.Supervisor()
    with sv.managed_session():
        raise tf.errors.OutOfRangeError(None, None, "no more")
    assert sv.should_stop()
    with pytest.raises(KeyError), sv.managed_session():
        assert not sv.should_stop()
        raise KeyError("mine")


def test_an_error_of_a_thread_is_raised_at_the_end():
    tf.Variable(1)
    sv = tf.train.Supervisor()

    def fail():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), sv.managed_session():
        sv.loop(None, fail)
        sv.wait_for_stop()


def test_loops_and_queues_stop_with_the_block():
    element = tf.train.input_producer(tf.constant([1, 2]), shuffle=False).dequeue()
    sv, turned = tf.train.Supervisor(), threading.Event()
    before = set(threading.enumerate())
    with sv.managed_session() as sess:
        looper = sv.loop(None, turned.set)
        turned.wait()
        assert [int(sess.run(element)) for _ in range(3)] == [1, 2, 1]
        with sv.stop_on_exception():
            raise ValueError
        with pytest.raises(ValueError):
            sv.coord.raise_requested_exception()
        sv.coord.clear_stop()
    looper.join()
    left = set(threading.enumerate()) - before
    assert not [t for t in left if t.name.startswith("QueueRunnerThread")]


def turn(service):
    """One turn of a thread, in no thread."""
    service._coord._registered_threads.discard(service)
    service.start_loop()
    service.run_loop()


def test_services_write():
    step = tf.train.get_or_create_global_step()
    tf.summary.scalar("step", step)
    writer = testing.FakeSummaryWriter("nowhere")
    sv = tf.train.Supervisor(summary_writer=writer)
    with sv.managed_session() as sess:
        step.load(7, sess)
        turn(services.SVSummaryThread(sv, sess))
        turn(services.SVStepCounterThread(sv, sess))
        sv.summary_computed(sess, sess.run(sv.summary_op), 9)
    tags = {
        step: [v.tag for s in found for v in s.value] for step, found in writer.summaries.items()
    }
    assert tags == {7: ["step", "global_step/sec"], 9: ["step"]}
    assert writer._added_session_logs[-1].status == tf.SessionLog.STOP


def test_the_checkpoint_service(tmp_path):
    tf.train.get_or_create_global_step()
    sv = tf.train.Supervisor(logdir=str(tmp_path), save_summaries_secs=0)
    with sv.managed_session() as sess:
        turn(services.SVTimerCheckpointThread(sv, sess))
    assert tf.train.latest_checkpoint(str(tmp_path)) == sv.save_path + "-0"


def test_what_ends_before_there_is_a_session_is_no_good_end():
    tf.Variable(1)
    end = tf.errors.OutOfRangeError(None, None, "no more")

    def init_fn(session):
        raise end

    sv = tf.train.Supervisor(init_fn=init_fn)
    with pytest.raises(tf.errors.OutOfRangeError, match="no more"), sv.managed_session():
        raise AssertionError


def test_what_only_a_chief_may():
    with tf.device("/cpu:0"):
        tf.Variable(1)
    sv = tf.train.Supervisor(is_chief=False, logdir="never/made")
    with pytest.raises(RuntimeError, match="Only chief supervisor"):
        sv.start_standard_services(None)
    with pytest.raises(RuntimeError, match="requires a summary writer"):
        sv.summary_computed(None, b"")
    with tf.Graph().as_default():
        tf.Variable(1, name="nowhere")
        with pytest.raises(ValueError, match="must have their device set"):
            tf.train.Supervisor(is_chief=False)


def test_a_basic_loop_begins_again_when_aborted():
    tf.Variable(1)
    sv, turns = tf.train.Supervisor(), []

    def step(sess, name, times=0):
        turns.append(sess)
        if len(turns) == 2:
            raise tf.errors.AbortedError(None, None, "gone")
        if len(turns) == times:
            sv.request_stop()

    tf.train.basic_train_loop(sv, step, args=["a"], kwargs={"times": 4})
    assert len(turns) == 4
    assert turns[0] is turns[1]
    assert turns[2] is not turns[1]
