"""Sessions over the tasks of a cluster: what runs where, what is shared, what errors say."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import opdock as tf
from opdock.compiler.tasks.assign import task_of
from opdock.runtime.cluster import task

PS, WORKER = "/job:ps/replica:0/task:0", "/job:worker/replica:0/task:0"


def model(x):
    """A small regression, and the op that trains it."""
    w = tf.get_variable("w", initializer=np.ones([3, 2], np.float32))
    b = tf.get_variable("b", initializer=np.zeros([2], np.float32))
    loss = tf.reduce_sum(tf.square(tf.matmul(x, w) + b - 1.0))
    step = tf.train.get_or_create_global_step()
    return loss, tf.train.AdamOptimizer(0.1).minimize(loss, global_step=step), step


def trained(target: str, setter) -> list[np.ndarray]:
    with tf.Graph().as_default(), tf.device(setter):
        x = tf.placeholder(tf.float32, [None, 3])
        loss, train, step = model(x)
        with tf.Session(target) as sess:
            sess.run(tf.global_variables_initializer())
            data = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
            losses = [sess.run([loss, train], {x: data})[0] for _ in range(3)]
            assert sess.run(step) == 3
            return [np.array(losses), *sess.run(tf.trainable_variables())]


def test_training_is_the_same_with_variables_elsewhere(cluster):
    servers = cluster(ps=2, worker=1)
    setter = tf.train.replica_device_setter(ps_tasks=2)
    far, near = trained(servers["worker"][0].target, setter), trained("", None)
    for a, b in zip(far, near, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_replicas_between_graphs_share_what_is_on_servers(cluster):
    servers = cluster(ps=1, worker=2)
    sessions = []
    for index in range(2):
        with tf.Graph().as_default():
            setter = tf.train.replica_device_setter(
                ps_tasks=1, worker_device=f"/job:worker/task:{index}"
            )
            with tf.device(setter):
                shared = tf.Variable(1.0, name="shared")
                add = shared.assign_add(10.0)
            with tf.device(f"/job:worker/task:{index}"):
                own = tf.Variable(index, name="own")
            sess = tf.Session(servers["worker"][index].target)
            sess.run(own.initializer)
            if index == 0:
                sess.run(shared.initializer)
            sessions.append((sess, add, shared, own))
    (first, add, shared, own), (second, add2, shared2, own2) = sessions
    first.run(add)
    second.run(add2)
    assert (first.run(shared), second.run(shared2)) == (21.0, 21.0)
    assert (first.run(own), second.run(own2)) == (0, 1)


def test_what_asks_for_no_task_is_in_the_same_one_for_all_workers(cluster):
    servers = cluster(worker=2, ps=1)
    sessions = []
    for index in range(2):
        with tf.Graph().as_default():
            count = tf.get_variable("count", initializer=0)
            queue = tf.FIFOQueue(2, [tf.int32], shapes=[[]], shared_name="queue")
            put, taken = queue.enqueue(count + 10 * index), queue.dequeue()
            sess = tf.Session(servers["worker"][index].target)
            sessions.append((sess, count, count.assign_add(1), put, taken))
    (first, count, add, put, _), (second, count2, add2, _, taken) = sessions
    first.run(count.initializer)
    second.run(add2)
    assert (first.run(add), second.run(count2)) == (2, 2)
    first.run(put)
    assert second.run(taken) == 2
    assert PS in str(first.explain(add))


def test_a_variable_that_asks_for_no_task_is_where_a_user_of_it_is_in_all_steps(cluster):
    servers = cluster(worker=1, ps=1)
    count = tf.get_variable("count", initializer=3, use_resource=True)
    with tf.device("/job:worker"):
        known = count.is_initialized()
    with tf.Session(servers["worker"][0].target) as sess:
        sess.run(count.initializer)
        assert sess.run(known)
        assert sess.run(count.assign_add(1)) == 4
        assert WORKER in str(sess.explain(count.read_value()))


def test_what_asks_for_no_task_is_where_a_preferred_kind_of_device_is(cluster, monkeypatch):
    servers = cluster(worker=2, ps=1)
    devices = task.TaskSession.devices

    def with_accelerators(self):
        host = next(d for d in devices(self) if d[1] == "CPU")
        own = task_of(host[0])
        accelerator = [f"{own}/device:GPU:0", "GPU", 0, "", True]
        unasked = [f"{own}/device:XLA_CPU:0", "XLA_CPU", 0, "", False]
        return [host] if own == PS else [accelerator, host, unasked]

    monkeypatch.setattr(task.TaskSession, "devices", with_accelerators)
    with tf.Session(servers["worker"][1].target) as sess:
        assert len(sess.list_devices()) == 7
        explained = str(sess.explain(tf.random_uniform([])))
    assert WORKER in explained
    assert PS not in explained


def test_replicas_in_one_graph(cluster):
    servers = cluster(ps=1, worker=2)
    with tf.device("/job:ps"):
        w = tf.Variable([1.0, 2.0])
    gradients = []
    for index in range(2):
        with tf.device(f"/job:worker/task:{index}"):
            gradients.append(tf.gradients(tf.reduce_sum(w * w * (index + 1.0)), [w])[0])
    with tf.device("/job:ps"):
        update = w.assign_sub(0.1 * tf.add_n(gradients))
    with tf.Session(servers["worker"][1].target) as sess:
        sess.run(w.initializer)
        np.testing.assert_allclose(sess.run(update), [0.4, 0.8], rtol=1e-6)


def test_values_go_to_and_fro_in_one_step(cluster):
    servers = cluster(ps=1, worker=2)
    value = tf.constant(0.0)
    for turn in range(6):
        with tf.device(f"/job:worker/task:{turn % 2}"):
            value = tf.random_uniform([]) * 0.0 + value + 1.0
        with tf.device("/job:ps"):
            value = tf.identity(value) * 2.0
    with tf.Session(servers["worker"][0].target) as sess:
        assert [sess.run(value) for _ in range(3)] == [126.0] * 3


def test_what_is_waited_for_in_another_task_has_run(cluster):
    servers = cluster(ps=1, worker=1)
    with tf.device("/job:ps"):
        v = tf.Variable(1.0)
        more = v.assign_add(1.0)
    with tf.device("/job:worker"), tf.control_dependencies([more]):
        there = tf.no_op()
    with tf.device("/job:ps"), tf.control_dependencies([there]):
        read = v.read_value()
    with tf.Session(servers["worker"][0].target) as sess:
        sess.run(v.initializer)
        assert sess.run(read) == 2.0
        sess.run(there)
        assert sess.run(v) == 3.0


def test_fetches_and_feeds_of_all_kinds(cluster):
    servers = cluster(ps=1, worker=1)
    with tf.device("/job:ps"):
        x = tf.placeholder(tf.float32, [None])
        words = tf.string_join([tf.constant([b"a", b""]), tf.constant("b")])
        flag, empty = x > 1.0, tf.zeros([0, 3], tf.bfloat16)
        both = tf.split(x, 2)
    with tf.device("/job:worker"):
        longer = tf.string_join([words, "c"])
        chosen = tf.where(tf.concat([flag, flag], 0), tf.tile(x, [2]), -tf.tile(x, [2]))
        joined = both[1] - both[0]
    with tf.Session(servers["worker"][0].target) as sess:
        found = sess.run({"l": longer, "c": chosen, "e": empty, "x": x, "j": joined}, {x: [1, 2]})
        assert found["l"].tolist() == [b"abc", b"bc"]
        assert found["c"].tolist() == [-1, 2, -1, 2]
        assert found["e"].shape == (0, 3)
        assert found["x"].tolist() == [1, 2]
        found["c"][0] = 5.0  # the caller's own
        assert sess.run(joined, {both[0]: [1.0], both[1]: [5.0]}).tolist() == [4.0]
        assert sess.run(joined, {both[1]: [9.0], x: [1, 2]}).tolist() == [8.0]
        run = sess.make_callable([joined, chosen], [x])
        assert run(np.array([3, 5], np.float32))[0].tolist() == [2.0]


def test_a_queue_that_tasks_share(cluster):
    servers = cluster(ps=1, worker=2)
    with tf.device("/job:ps"):
        queue = tf.FIFOQueue(2, [tf.float32], shapes=[[]], shared_name="q")
    with tf.device("/job:worker/task:0"):
        put = queue.enqueue(tf.constant(3.0) + 4.0)
    with tf.device("/job:worker/task:1"):
        taken = queue.dequeue() + 1.0
    got = []
    with tf.Session(servers["worker"][1].target) as taker:
        thread = threading.Thread(target=lambda: got.append(taker.run(taken)))
        thread.start()
        with tf.Session(servers["worker"][0].target) as putter:
            putter.run(put)
        thread.join()
    assert got == [8.0]


def test_a_step_may_put_what_it_waits_for(cluster):
    servers = cluster(ps=1, worker=1)
    with tf.device("/job:ps"):
        queue = tf.FIFOQueue(2, [tf.float32], shapes=[[]])
        first = queue.dequeue()
        v = tf.Variable(2.0)
    with tf.device("/job:worker"):
        put = queue.enqueue(v * 3.0)
        result = first + 1.0
    with tf.Session(servers["worker"][0].target) as sess:
        sess.run(v.initializer)
        assert sess.run([result, put])[0] == 7.0


def test_random_streams_go_on_from_step_to_step(cluster):
    servers = cluster(ps=1, worker=1)
    with tf.device("/job:ps"):
        there = tf.random_uniform([3], seed=7)
    with tf.device("/job:worker"):
        doubled = there * 2.0
    with tf.Session(servers["worker"][0].target) as sess, tf.Session() as alone:
        with tf.Graph().as_default():
            same = tf.random_uniform([3], seed=7)
            own = tf.Session()
            wanted = [own.run(same) * 2 for _ in range(2)]
        del alone
        for value in wanted:
            assert len(set(sess.run(doubled).tolist())) == 3
            assert value.shape == (3,)


# ---------------------------------------------------------------- settings and what is told
def test_filters_say_which_tasks_a_session_sees(cluster):
    addresses = {"ps": ["apart:1"], "worker": ["apart:2", "apart:3"]}  # nobody starts the third
    servers = [tf.train.Server(addresses, job_name=j, task_index=0) for j in ("ps", "worker")]
    filters = ["/job:ps", "/job:worker/task:0"]
    with tf.device("/job:ps"):
        v = tf.Variable(1.0)
    config = tf.ConfigProto(device_filters=filters)
    with tf.Session(servers[1].target, config=config) as sess:
        sess.run(v.initializer)
        tasks = {d.name.rpartition("/device:")[0] for d in sess.list_devices()}
        assert tasks == {PS, WORKER}


def test_a_session_may_bring_names_of_its_own():
    servers = [tf.train.Server.create_local_server() for _ in range(2)]
    config = tf.ConfigProto()
    job = config.cluster_def.job.add(name="team")
    for i, server in enumerate(servers):
        job.tasks[i] = server.target.removeprefix("grpc://")
    with tf.device("/job:team/task:1"):
        v = tf.Variable(5.0)
    with tf.Session(servers[0].target, config=config) as sess:
        sess.run(v.initializer)
        with tf.device("/job:team/task:0"):
            assert sess.run(v + 1.0) == 6.0
    with tf.Session(servers[1].target) as other, pytest.raises(tf.errors.InvalidArgumentError):
        other.run(v)  # it knows no job "team"
    del job.tasks[0]
    with pytest.raises(tf.errors.InvalidArgumentError, match="cluster_def.*has no task at"):
        tf.Session(servers[0].target, config=config)


def test_traces_and_graphs_of_all_tasks(cluster):
    servers = cluster(ps=1, worker=1)
    with tf.device("/job:ps"):
        there = tf.random_uniform([2, 2], name="there")
    with tf.device("/job:worker"):
        result = tf.matmul(there, there, name="here")
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE, output_partition_graphs=True)
    told = tf.RunMetadata()
    with tf.Session(servers["worker"][0].target) as sess:
        sess.run(result, options=options, run_metadata=told)
        names = {
            (stats.device.rpartition("/device:")[0], node.node_name)
            for stats in told.step_stats.dev_stats
            for node in stats.node_stats
        }
        assert (WORKER, "here") in names
        assert any(task == PS and name.startswith("there") for task, name in names)
        ops = {node.op for graph in told.partition_graphs for node in graph.node}
        assert {"_SendToTask", "_ReceiveFromTask"} <= ops
        explained = sess.explain(result, run_metadata=told)
        rows = {r.node: r for r in explained.rows}
        assert rows["here"].device == f"{WORKER}/device:CPU:0"
        assert rows["there"].device == f"{PS}/device:CPU:0"
        assert rows["here"].us is not None
        assert explained.crossings == [f"{PS} to {WORKER}: there:0 (16 bytes)"]
        text = str(explained)
        assert "/job:ps/task:0/CPU:0" in text
        assert explained.crossings[0] in text


def test_what_is_sent_is_told(cluster):
    servers = cluster(ps=1, worker=1)
    with tf.device("/job:ps"):
        v = tf.Variable(tf.zeros([2, 3]), name="v")
        words = tf.string_join(["a", "b"], name="words")
        add = v.assign_add(tf.ones([2, 3]), name="add")
    with tf.device("/job:worker"), tf.control_dependencies([add]):
        both = tf.string_join([words, "c"])
    with tf.Session(servers["worker"][0].target) as sess:
        (told,) = sess.explain(both).crossings
        assert told.startswith(f"{PS} to {WORKER}: ")
        assert "words:0 (of sizes known when they are there)" in told
        assert "that add has run" in told


def test_lines_of_where_operations_run(cluster, capsys):
    servers = cluster(ps=1, worker=1)
    with tf.device("/job:ps"):
        v = tf.Variable([1.0, 2.0], name="v")
    with tf.device("/job:worker"):
        total = tf.reduce_sum(v * 2.0, name="total")
    unused = tf.add(total, 1.0, name="unused")
    config = tf.ConfigProto(log_device_placement=True)
    with tf.Session(servers["worker"][0].target, config=config) as sess:
        sess.run(v.initializer)
        sess.run(total)
    lines = capsys.readouterr().out.splitlines()
    assert f"v: (VariableV2): {PS}/device:CPU:0" in lines
    assert f"total: (Sum): {WORKER}/device:CPU:0" in lines
    assert f"{unused.op.name}: ({unused.op.type}): {PS}/device:CPU:0" in lines
    assert len(set(lines)) == len(lines)


def test_devices_are_compared_with_the_variables_of_all_tasks(cluster):
    servers = cluster(ps=1, worker=1)
    with tf.device("/job:ps"):
        v = tf.Variable([1.0, 2.0])
    with tf.device("/job:worker"):
        r = tf.get_variable("r", initializer=[3.0], use_resource=True)
        total = tf.reduce_sum(v * 2.0) + r
    with tf.Session(servers["worker"][0].target) as sess:
        sess.run([v.initializer, r.initializer])
        found = sess.bisect(total, "cpu:0", "cpu:0")
        assert not found
        assert found.checked > 2
        assert sess.run(total).tolist() == [9.0]


def test_one_task_runs_its_own_steps_as_ever(cluster):
    servers = cluster(ps=1, worker=1)
    with tf.device("/job:worker"):
        result = tf.reduce_sum(tf.random_uniform([4]))
    with tf.Session(servers["worker"][0].target) as sess:
        sess.run(result)
        assert "Sum" in str(sess.explain(result))
        handle = sess.partial_run_setup([result], [])
        assert sess.partial_run(handle, result) >= 0.0


def test_parts_that_no_step_will_run_are_forgotten(cluster):
    servers = cluster(ps=1, worker=1)
    with tf.device("/job:ps"):
        x = tf.placeholder(tf.float32, [])
        there = x * 2.0
    with tf.device("/job:worker"):
        fetched = [there + float(i) for i in range(3)]
    with tf.Session(servers["worker"][0].target) as sess:
        (session,) = servers["ps"][0]._server.service._sessions.values()
        sess.run(fetched[0], {x: 1.0})
        sess.run(fetched[1], {x: 1.0})
        assert len(session._parts) == 2
        there.op.graph._edited() if hasattr(there.op.graph, "_edited") else sess._cache.forget()
        sess.run(fetched[2], {x: 1.0})
        assert len(session._parts) == 1
    assert not servers["ps"][0]._server.service._sessions


def test_monitored_sessions_of_chief_and_worker(cluster, tmp_path):
    servers = cluster(ps=1, worker=2)
    done: list[int] = []

    def work(index: int) -> None:
        with tf.Graph().as_default():
            with tf.device(
                tf.train.replica_device_setter(
                    ps_tasks=1, worker_device=f"/job:worker/task:{index}"
                )
            ):
                _, train, step = model(tf.ones([2, 3]))
            target = servers["worker"][index].target
            hooks = [tf.train.StopAtStepHook(last_step=6)]
            with tf.train.MonitoredTrainingSession(
                target, is_chief=index == 0, hooks=hooks, log_step_count_steps=None,
                checkpoint_dir=str(tmp_path) if index == 0 else None,
            ) as sess:  # fmt: skip
                while not sess.should_stop():
                    done.append(sess.run([train, step])[1])

    chief = threading.Thread(target=work, args=(0,))
    chief.start()
    chief.join()
    work(1)
    assert max(done) >= 5
    assert tf.train.latest_checkpoint(str(tmp_path)).endswith("-6")
