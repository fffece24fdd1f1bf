"""Sessions that start, recover and end by themselves."""

from __future__ import annotations

import threading

import pytest

import opdock as tf
from opdock.train.loops import wrapped_sessions as wrapped


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as g:
        yield g
    tf.summary.FileWriterCache.clear()


class Told(tf.train.SessionRunHook):
    """Notes when it is called; may raise, once, in the given turn."""

    def __init__(self, fail_at=None, error=None):
        self.calls = []
        self.fail_at, self.error = fail_at, error
        self.turn = 0

    def begin(self):
        self.calls.append("begin")

    def after_create_session(self, session, coord):
        assert isinstance(coord, tf.train.Coordinator)
        self.calls.append("session")

    def before_run(self, run_context):
        self.turn += 1
        if self.turn == self.fail_at:
            raise self.error

    def after_run(self, run_context, run_values):
        assert run_values.results is None
        self.calls.append("step")

    def end(self, session):
        self.calls.append("end")


def counter():
    step = tf.train.get_or_create_global_step()
    return tf.assign_add(step, 1)


def test_the_calls_of_a_hook(graph):
    op, hook = counter(), Told()
    with tf.train.MonitoredSession(hooks=[hook]) as session:
        assert graph.finalized
        assert session.graph is graph
        assert session.run(op) == 1
        assert session.run({"a": [op]}) == {"a": [2]}
    assert hook.calls == ["begin", "session", "step", "step", "end"]
    assert not graph.finalized
    assert session.should_stop()
    assert session.graph is None
    with pytest.raises(RuntimeError, match="closed"):
        session.run(op)
    with pytest.raises(RuntimeError, match="already closed"):
        session.close()


def test_variables_are_initialized_of_all_kinds():
    shared = tf.Variable(1)
    local = tf.get_local_variable("local", initializer=2)
    table = tf.contrib.lookup.HashTable(
        tf.contrib.lookup.KeyValueTensorInitializer(["a"], tf.constant([3], tf.int64)), -1
    )
    found = table.lookup(tf.constant("a"))
    with tf.train.MonitoredSession() as session:
        assert session.run([shared, local, found]) == [1, 2, 3]


@pytest.mark.parametrize("error", [tf.errors.OutOfRangeError(None, None, ""), StopIteration()])
def test_the_end_of_input_ends_the_block(error):
    op, hook = counter(), Told()
    with tf.train.MonitoredSession(hooks=[hook]) as session:
        session.run(op)
        raise error
    assert hook.calls[-1] == "end"


def test_another_error_leaves_the_block_and_calls_no_end():
    op, hook = counter(), Told()
    with pytest.raises(KeyError), tf.train.MonitoredSession(hooks=[hook]) as session:
        session.run(op)
        raise KeyError("mine")
    assert "end" not in hook.calls


@pytest.mark.parametrize("kind", [tf.errors.AbortedError, tf.errors.UnavailableError])
def test_a_step_is_run_again_when_a_process_went_away(kind, tmp_path):
    op = counter()
    hook = Told(fail_at=3, error=kind(None, None, "gone"))
    scaffold = tf.train.Scaffold()
    saver = tf.train.CheckpointSaverHook(str(tmp_path), save_steps=1, scaffold=scaffold)
    creator = tf.train.ChiefSessionCreator(scaffold, checkpoint_dir=str(tmp_path))
    with tf.train.MonitoredSession(creator, [saver, hook]) as session:
        # The third step goes on from the checkpoint of the second.
        assert [session.run(op) for _ in range(4)] == [1, 2, 3, 4]
    assert hook.calls == ["begin", "session", "step", "step", "session", "step", "step", "end"]


def test_a_scaffold_saves_objects(tmp_path):
    found = []
    for _ in range(2):
        with tf.Graph().as_default():
            step = tf.train.get_or_create_global_step()
            weight = tf.get_variable("w", initializer=3.0)
            count = tf.group(step.assign_add(1), weight.assign_add(0.5))
            scaffold = tf.train.Scaffold(saver=tf.train.Checkpoint(step=step, weight=weight))
            with tf.train.MonitoredTrainingSession(
                checkpoint_dir=str(tmp_path), save_checkpoint_steps=1, scaffold=scaffold
            ) as session:
                session.run(count)
                found.append(session.run(weight))
    assert found == [3.5, 4.0]
    names = [name for name, _ in tf.train.list_variables(str(tmp_path))]
    assert "weight/.ATTRIBUTES/VARIABLE_VALUE" in names


def test_a_singular_session_does_not_recover():
    op = counter()
    hook = Told(fail_at=1, error=tf.errors.AbortedError(None, None, "gone"))
    with (
        pytest.raises(tf.errors.AbortedError),
        tf.train.SingularMonitoredSession([hook]) as session,
    ):
        session.run(op)


def test_options_of_hooks_are_joined():
    traced = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE, output_partition_graphs=True)
    seen = []

    class Asks(tf.train.SessionRunHook):
        def before_run(self, run_context):
            return tf.train.SessionRunArgs(None, options=traced)

        def after_run(self, run_context, run_values):
            seen.append((run_values.options, run_values.run_metadata))

    op = counter()
    with tf.train.MonitoredSession(hooks=[Asks()]) as session:
        session.run(op, options=tf.RunOptions(timeout_in_ms=60000))
    ((options, metadata),) = seen
    assert options.trace_level == tf.RunOptions.FULL_TRACE
    assert options.timeout_in_ms == 60000
    assert metadata.step_stats.dev_stats
    assert metadata.partition_graphs


def test_a_step_function():
    op, hook = counter(), Told()

    def step_fn(step_context):
        step_context.session.run(op)  # without hooks
        if step_context.run_with_hooks(op) >= 4:
            step_context.request_stop()
        return "went on"

    with tf.train.MonitoredSession(hooks=[hook]) as session:
        assert session.run_step_fn(step_fn) == "went on"
        with pytest.raises(ValueError, match="`step_fn` may either have one"):
            session.run_step_fn(lambda other: None)
        session.run_step_fn(step_fn)
    assert hook.calls.count("step") == 2


def test_an_error_of_a_thread_is_the_error_of_the_loop():
    op = counter()
    with pytest.raises(ZeroDivisionError), tf.train.MonitoredSession() as session:
        session.run(op)
        session._coordinated_creator.coord.request_stop(ZeroDivisionError())
        assert session.should_stop()


def test_queue_runners_are_started_and_stopped():
    producer = tf.train.input_producer(tf.constant([1, 2, 3]), num_epochs=2, shuffle=False)
    element = producer.dequeue()
    seen, before = [], set(threading.enumerate())
    with tf.train.MonitoredSession() as session:
        while not session.should_stop():
            seen.append(int(session.run(element)))
    assert seen == [1, 2, 3, 1, 2, 3]
    left = set(threading.enumerate()) - before
    assert not [t for t in left if t.name.startswith("QueueRunnerThread")]


def test_scaffold_finds_what_is_there_and_keeps_what_is_given():
    tf.Variable(1)
    given = tf.constant(["missing"])
    mine = tf.no_op("mine")
    tf.add_to_collection(tf.GraphKeys.INIT_OP, mine)
    first = tf.train.Scaffold(ready_op=given, init_feed_dict={given: []})
    second = tf.train.Scaffold(copy_from_scaffold=first, init_fn=lambda scaffold, sess: None)
    second.finalize()
    assert second.ready_op is given
    assert second.init_op is mine
    assert second.init_feed_dict == {given: []}
    assert first.init_fn is None
    assert second.init_fn("session") is None
    assert tf.get_collection(tf.GraphKeys.SAVERS) == [second.saver]
    with pytest.raises(TypeError, match="not a Scaffold"):
        tf.train.Scaffold(copy_from_scaffold="one")


def test_scaffold_does_not_choose_among_several():
    for _ in range(2):
        tf.add_to_collection(tf.GraphKeys.READY_OP, tf.report_uninitialized_variables())
    with pytest.raises(RuntimeError, match=r'"ready_op".*tf.Scaffold\(ready_op=item to use\)'):
        tf.train.Scaffold().finalize()


def test_resources_are_initialized_with_the_variables(graph):
    from opdock.ops.composed import resources

    flag = tf.Variable(False, collections=[])
    resources.register_resource(
        flag.op.outputs[0], flag.initializer, tf.is_variable_initialized(flag)
    )
    report = resources.report_uninitialized_resources()
    with tf.Session() as sess:
        assert sess.run(report).tolist() == [flag.op.outputs[0].name.encode()]
    with tf.train.MonitoredSession() as session:
        assert session.run(report).size == 0


def test_training_session_restores_and_saves(tmp_path):
    op = counter()
    tf.summary.scalar("one", tf.constant(1.0))

    def train(steps):
        with tf.train.MonitoredTrainingSession(
            checkpoint_dir=str(tmp_path), save_checkpoint_steps=2, save_summaries_steps=2,
            log_step_count_steps=None, hooks=[tf.train.StopAtStepHook(num_steps=steps)],
        ) as session:  # fmt: skip
            while not session.should_stop():
                session.run(op)

    train(3)
    assert tf.train.latest_checkpoint(str(tmp_path)).endswith("model.ckpt-3")
    train(4)
    assert tf.train.latest_checkpoint(str(tmp_path)).endswith("model.ckpt-7")
    events = [e for p in tmp_path.glob("events*") for e in tf.train.summary_iterator(str(p))]
    assert sum(e.HasField("summary") for e in events) >= 3


def test_a_worker_waits_for_the_chief():
    # Where two tasks share no server, a worker's variables are nobody's to initialize.
    counter()
    creator = tf.train.WorkerSessionCreator(max_wait_secs=0)
    with pytest.raises(tf.errors.DeadlineExceededError, match="Session was not ready after"):
        tf.train.MonitoredSession(creator)


def test_layers_stop_for_their_own_reasons():
    class Inner:
        def close(self):
            raise tf.errors.UnavailableError(None, None, "gone")

    layer = wrapped.WrappedSession(Inner())
    assert not layer.should_stop()
    layer.close()
    layer.close()
    assert layer.should_stop()
    coord = tf.train.Coordinator(clean_stop_exception_types=[])
    outer = wrapped.CoordinatedSession(layer, coord)
    coord.request_stop()
    assert outer.should_stop()
