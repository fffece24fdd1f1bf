"""Sessions that are restored, initialized or waited for, and what they say when they are not."""

from __future__ import annotations

import functools

import pytest

import opdock as tf
from opdock.train.loops import session_manager


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as g:
        yield g


def test_initialized_when_there_is_no_checkpoint(tmp_path):
    v = tf.Variable(1, name="v")
    x = tf.placeholder(tf.int32, [])
    manager = tf.train.SessionManager(ready_op=tf.report_uninitialized_variables())
    called = []
    with manager.prepare_session(
        "", v.assign(x).op, tf.train.Saver(), str(tmp_path), init_feed_dict={x: 5},
        init_fn=called.append,
    ) as sess:  # fmt: skip
        assert sess.run(v) == 5
        assert called == [sess]
        tf.train.Saver().save(sess, str(tmp_path / "model"))
    with manager.prepare_session("", None, tf.train.Saver(), str(tmp_path)) as sess:
        assert sess.run(v) == 5


def test_restored_from_a_path(tmp_path):
    v = tf.Variable(3, name="v")
    saver = tf.train.Saver()
    with tf.Session() as sess:
        sess.run(v.initializer)
        path = saver.save(sess, str(tmp_path / "model"))
    manager = tf.train.SessionManager(ready_op=tf.report_uninitialized_variables())
    sess, restored = manager.recover_session("", saver, checkpoint_filename_with_path=path)
    assert restored
    assert sess.run(v) == 3
    with pytest.raises(ValueError, match="Can not provide both"):
        manager.recover_session("", saver, str(tmp_path), path)


def test_what_is_missing_is_said(tmp_path):
    tf.Variable(1, name="a")
    b = tf.Variable(2, name="b")
    ready = tf.report_uninitialized_variables()
    manager = tf.train.SessionManager(ready_op=ready)
    with pytest.raises(RuntimeError, match="no init_op or init_fn or local_init_op was given"):
        manager.prepare_session("")
    with pytest.raises(RuntimeError, match="did not make model ready.*Variables not init.*: a$"):
        manager.prepare_session("", b.initializer)
    _, restored = manager.recover_session("", tf.train.Saver(), str(tmp_path))
    assert not restored
    local = tf.train.SessionManager(tf.no_op(), None, ready)
    with pytest.raises(RuntimeError, match="ready for local_init.*Variables not initialized: a"):
        local.prepare_session("", b.initializer)
    with pytest.raises(ValueError, match="must also pass a local_init_op"):
        tf.train.SessionManager(ready_for_local_init_op=ready)


def test_waiting_ends(monkeypatch):
    v = tf.Variable(1, name="v")
    manager = tf.train.SessionManager(
        ready_op=tf.report_uninitialized_variables(), recovery_wait_secs=0.5
    )
    now = [0.0]
    monkeypatch.setattr(session_manager.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(session_manager.time, "sleep", lambda s: now.__setitem__(0, now[0] + s))
    with pytest.raises(tf.errors.DeadlineExceededError, match="after waiting 3 secs"):
        manager.wait_for_session("", max_wait_secs=3)
    assert now[0] == 3.0
    # On a server, the chief's variables are everybody's.
    server = tf.train.Server.create_local_server()
    with tf.Session(server.target) as chief:
        chief.run(v.initializer)
        assert manager.wait_for_session(server.target).run(v) == 1


@pytest.mark.parametrize("kind", ["supervised", "monitored", "recovering"])
def test_a_checkpoint_that_is_cut_off_is_not_the_end_of_input(tmp_path, kind):
    tf.get_variable("v", [100], initializer=tf.ones_initializer())
    step = tf.assign_add(tf.train.get_or_create_global_step(), 1)
    saver = tf.train.Saver()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        path = saver.save(sess, str(tmp_path / "model.ckpt"))

    def cut_off():
        data = tmp_path / "model.ckpt.data-00000-of-00001"
        data.write_bytes(data.read_bytes()[:100])

    def recovered():
        with tf.train.MonitoredTrainingSession(
            checkpoint_dir=str(tmp_path), save_checkpoint_secs=None, save_summaries_steps=None,
            hooks=[Aborting(cut_off)],
        ) as sess:  # fmt: skip
            while not sess.should_stop():
                sess.run(step)

    if kind == "recovering":
        begin = recovered
    elif kind == "supervised":
        cut_off()
        begin = tf.train.Supervisor(logdir=str(tmp_path), saver=saver).managed_session().__enter__
    else:
        cut_off()
        begin = functools.partial(tf.train.MonitoredTrainingSession, checkpoint_dir=str(tmp_path))
    with pytest.raises(tf.errors.DataLossError, match="Read fewer bytes than requested: key v"):
        begin()
    with tf.Session() as sess, pytest.raises(tf.errors.OutOfRangeError):
        saver.restore(sess, path)  # as TensorFlow's does


class Aborting(tf.train.SessionRunHook):
    """Ends the first session, after which another one is made."""

    def __init__(self, first):
        self.first = first

    def before_run(self, run_context):
        if self.first:
            self.first()
            self.first = None
            raise tf.errors.AbortedError(None, None, "gone")
