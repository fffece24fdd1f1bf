"""`Session`: its life, its program cache, callables, threads, time-outs and traces."""

from __future__ import annotations

import gc
import logging
import threading
import time

import numpy as np
import pytest

import opdock as tf


def programs(session):
    return {id(e.program) for e in session._cache.entries()}


# ---------------------------------------------------------------- life
def test_a_session_that_is_closed_while_a_step_is_compiled_cancels_it(monkeypatch):
    x = tf.placeholder(tf.float32, [])
    session = tf.Session()
    compile_ = session._engine.compile

    def closing(*args, **options):
        session.close()  # as another thread does
        return compile_(*args, **options)

    monkeypatch.setattr(session._engine, "compile", closing)
    with pytest.raises(tf.errors.CancelledError, match="Session::Close"):
        session.run(x + 1.0, {x: 1.0})


def test_a_closed_session_refuses():
    x = tf.constant(1)
    session = tf.Session()
    session.run(x)
    session.close()
    session.close()
    with pytest.raises(RuntimeError, match="Attempted to use a closed Session"):
        session.run(x)


def test_the_context_manager_closes_and_restores(graph):
    x = tf.constant(1)
    with tf.Session() as session:
        assert tf.get_default_session() is session
        with session.as_default():
            assert x.eval() == 1
        assert tf.get_default_session() is session
    assert tf.get_default_session() is None
    with pytest.raises(RuntimeError, match="closed Session"):
        session.run(x)


def test_as_default_does_not_close():
    x = tf.constant(1)
    session = tf.Session()
    with session.as_default() as same:
        assert same is session
    assert session.run(x) == 1
    session.close()


def test_an_empty_graph():
    with tf.Session(graph=tf.Graph()) as session:
        with pytest.raises(RuntimeError, match="The Session graph is empty"):
            session.run([])


def test_a_session_of_another_graph():
    other = tf.Graph()
    with other.as_default():
        y = tf.constant(2)
    x = tf.constant(1)
    with tf.Session(graph=other) as session:
        assert tf.get_default_graph() is other
        assert session.run(y) == 2
        with pytest.raises(ValueError, match="not an element of this graph"):
            session.run(x)


def test_wrong_arguments():
    with pytest.raises(TypeError, match="graph must be a tf.Graph"):
        tf.Session(graph=3)
    with pytest.raises(TypeError, match="config must be a tf.ConfigProto"):
        tf.Session(config=3)
    with pytest.raises(tf.errors.NotFoundError, match="grpc"):
        tf.Session("grpc://nowhere")


def test_facts(graph):
    tf.constant(1, name="c")
    config = tf.ConfigProto()
    with tf.Session(config=config) as session:
        assert session.graph is graph
        assert session.sess_str == ""
        assert session.graph_def.node[0].name == "c"
        names = [d.name for d in session.list_devices()]
        assert "/job:localhost/replica:0/task:0/device:CPU:0" in names


def test_interactive_session():
    session = tf.InteractiveSession()
    try:
        assert tf.get_default_session() is session
        assert (tf.constant(2) * 3).eval() == 6
    finally:
        session.close()
    assert tf.get_default_session() is None


def test_interactive_session_of_a_graph(graph):
    other = tf.Graph()
    session = tf.InteractiveSession(graph=other)
    try:
        assert tf.get_default_graph() is other
    finally:
        session.close()
    assert tf.get_default_graph() is graph


def test_variables_die_with_their_session():
    v = tf.Variable(1.0)
    with tf.Session() as session:
        session.run(v.initializer)
    with tf.Session() as session:
        with pytest.raises(tf.errors.FailedPreconditionError):
            session.run(v)


def test_a_dropped_session_frees_its_arrays():
    import weakref

    v = tf.Variable(np.zeros(1000, np.float32))
    session = tf.Session()
    session.run(v.initializer)
    engine = weakref.ref(session._engine)
    del session
    gc.collect()
    assert engine() is None


def test_feeding_by_name_is_feeding_the_tensor(graph):
    x, y = (tf.placeholder(tf.float32, (2,), name=name) for name in "xy")
    z = x - y
    a, b = np.float32([5, 7]), np.float32([1, 2])
    with tf.Session() as session:
        for _ in range(3):
            for feed in ({x: a, y: b}, {"x:0": a, "y:0": b}, {"x:0": a, y: b}, {b"x:0": a, y: b}):
                np.testing.assert_array_equal(session.run(z, feed), a - b)
        assert len(programs(session)) == 1
        np.testing.assert_array_equal(session.run(z, {"x:0": [1, 2], "y:0": b}), [0, 0])
        with pytest.raises(ValueError, match="Cannot feed value of shape"):
            session.run(z, {"x:0": np.float32([1, 2, 3]), "y:0": b})
        with pytest.raises(TypeError, match="does not exist"):
            session.run(z, {"x:0": a, "w:0": b})
        w = tf.add(z, 1.0, name="w")  # a name that there is by now
        np.testing.assert_array_equal(session.run(w + z, {"w:0": b, "x:0": a, "y:0": b}), a)
        found = session.run(z, {"x:0": a, x: b, y: b})  # both ways at once: the later one
        np.testing.assert_array_equal(found, b - b)


# ---------------------------------------------------------------- the program cache
def test_the_same_signature_compiles_once():
    x = tf.placeholder(tf.float32, [None])
    y = x + 1.0
    with tf.Session() as session:
        for i in range(5):
            session.run(y, {x: [float(i)] * 3})
            session.run(y, feed_dict={x: np.zeros(3)})
            session.run([y], {x: np.zeros(3, np.float32)})
        assert len(programs(session)) == 1 or len(programs(session)) == 2
        before = programs(session)
        session.run(y, {x: np.ones(3, np.float32)})
        assert programs(session) == before


def test_a_new_shape_makes_a_new_program_up_to_a_point():
    x = tf.placeholder(tf.float32, [None, 2])
    y = tf.reduce_sum(x, 1) * 2.0
    with tf.Session() as session:
        for n in range(1, 9):
            session.run(y, {x: np.ones((n, 2), np.float32)})
        assert len(programs(session)) == 8
        for n in range(9, 40):
            assert list(session.run(y, {x: np.ones((n, 2), np.float32)})) == [4.0] * n
        assert len(programs(session)) == 9


def test_a_thousand_batch_sizes_stay_bounded():
    x = tf.placeholder(tf.float32, [None, 8])
    w = tf.Variable(np.ones((8, 4), np.float32))
    loss = tf.reduce_mean(tf.nn.relu(tf.matmul(x, w)))
    step = tf.train.GradientDescentOptimizer(1e-6).minimize(loss)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for n in range(1, 1001):
            session.run([step, loss], {x: np.ones((n, 8), np.float32)})
        assert len(programs(session)) <= 12


def test_the_program_for_all_shapes_is_right_for_each():
    x, y = tf.placeholder(tf.float32), tf.placeholder(tf.float32)
    z = x + tf.transpose(y)
    with tf.Session() as session:
        for n in range(1, 20):
            for m in (n, 1, 3):
                a = np.arange(n * m, dtype=np.float32).reshape(n, m)
                b = np.arange(n * m, dtype=np.float32).reshape(m, n)
                np.testing.assert_array_equal(session.run(z, {x: a, y: b}), a + b.T)
        for shape in ((), (2,), (2, 3, 4)):
            a = np.ones(shape, np.float32)
            np.testing.assert_array_equal(session.run(z, {x: a, y: a.T}), a + a)


def test_the_graph_may_grow_between_runs():
    x = tf.placeholder(tf.float32, [])
    y = x + 1.0
    with tf.Session() as session:
        assert session.run(y, {x: 1.0}) == 2
        z = y * 10.0
        assert session.run(z, {x: 1.0}) == 20
        assert session.run(y, {x: 1.0}) == 2


# ---------------------------------------------------------------- callables
def test_make_callable():
    x, y = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
    with tf.Session() as session:
        add = session.make_callable(x + y, [x, y])
        assert add(1.0, 2.0) == 3
        both = session.make_callable([x + y, {"p": x * y}], feed_list=[x, "Placeholder_1:0"])
        assert both(3.0, 4.0) == [7, {"p": 12}]
        with pytest.raises(tf.errors.InvalidArgumentError, match="must feed a value"):
            add(1.0)
        v = tf.Variable(0)
        session.run(v.initializer)
        bump = session.make_callable(v.assign_add(1).op)
        assert bump() is None
        assert session.run(v) == 1
        metadata = tf.RunMetadata()
        traced = session.make_callable(x + y, [x, y], accept_options=True)
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        assert traced(1.0, 2.0, options=options, run_metadata=metadata) == 3
        assert metadata.step_stats.dev_stats


# ---------------------------------------------------------------- threads
def test_sessions_and_threads_do_not_disturb_each_other():
    v = tf.Variable(np.zeros(4, np.float32))
    x = tf.placeholder(tf.float32, [4])
    y = tf.nn.relu(x * 2.0) + v
    bump = v.assign_add(tf.ones([4]))
    problems = []

    def work(session, k):
        try:
            for i in range(50):
                value = np.full(4, float(i * k), np.float32)
                if (session.run(y, {x: value}) < value * 2).any():
                    problems.append((k, i))
                session.run(bump)
        except Exception as e:
            problems.append(e)

    sessions = [tf.Session() for _ in range(2)]
    for session in sessions:
        session.run(v.initializer)
    threads = [threading.Thread(target=work, args=(s, k)) for s in sessions for k in (1, 2, 3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not problems
    assert [list(s.run(v)) for s in sessions] == [[150] * 4] * 2


def test_threads_build_their_own_graphs():
    problems = []

    def work(k):
        try:
            with tf.Graph().as_default(), tf.Session() as session:
                v = tf.Variable(float(k))
                session.run(tf.global_variables_initializer())
                for _ in range(20):
                    session.run(v.assign_add(1.0))
                if session.run(v) != k + 20:
                    problems.append(k)
        except Exception as e:
            problems.append(e)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not problems


def test_inter_op_threads_change_no_result():
    v = tf.Variable(np.zeros((16, 16), np.float32))
    x = tf.placeholder(tf.float32, [16, 16])
    branches = [tf.matmul(x, x * float(k)) for k in range(8)]
    y = tf.add_n(branches)
    with tf.control_dependencies([y]):
        late = v.assign_add(y)
    with tf.control_dependencies([late]):
        read = v.read_value() * 2.0
    value = np.random.default_rng(0).normal(size=(16, 16)).astype(np.float32)
    results = []
    for threads in (0, 1, 4):
        with tf.Session(config=tf.ConfigProto(inter_op_parallelism_threads=threads)) as session:
            session.run(v.initializer)
            got = [session.run([y, read, v], {x: value}) for _ in range(10)]
            results.append([a.tobytes() for g in got for a in g[:2]])
            with pytest.raises(tf.errors.InvalidArgumentError):
                session.run(tf.gather([1], tf.placeholder_with_default(5, [])))
    assert results[0] == results[1] == results[2]


def test_intra_op_threads_are_honoured():
    import threadpoolctl

    def inside(x):
        pools = threadpoolctl.threadpool_info()
        return np.array(max([p["num_threads"] for p in pools if p["user_api"] == "blas"] or [0]))

    y = tf.py_func(inside, [tf.constant(1.0)], tf.int64)
    before = threadpoolctl.threadpool_info()
    with tf.Session(config=tf.ConfigProto(intra_op_parallelism_threads=1)) as session:
        assert session.run(y) == 1
    # The limit holds for the process, as in TF, until a session asks for another.
    with tf.Session() as session:
        assert session.run(y) == max(p["num_threads"] for p in before)


# ---------------------------------------------------------------- errors and state
def test_what_ran_before_an_error_ran_once():
    v = tf.Variable(0)
    x = tf.placeholder(tf.int32, [])
    with tf.control_dependencies([v.assign_add(1)]):
        y = tf.gather([1, 2], x, name="fails")
    with tf.control_dependencies([y]):
        after = v.assign_add(100)
    with tf.Session() as session:
        session.run(v.initializer)
        for k in range(1, 4):
            with pytest.raises(tf.errors.InvalidArgumentError, match="fails"):
                session.run(after, {x: 7})
            assert session.run(v) == k
        session.run(after, {x: 1})
        assert session.run(v) == 104


def test_an_error_does_not_keep_the_buffers():
    x = tf.placeholder(tf.float32, [None])
    i = tf.placeholder(tf.int32, [])
    y = tf.gather(tf.nn.relu(x * 2.0) + 1.0, i)
    with tf.Session() as session:
        for k in range(50):
            value = np.full(2000, float(k), np.float32)
            with pytest.raises(tf.errors.InvalidArgumentError):
                session.run(y, {x: value, i: 9999})
            assert session.run(y, {x: value, i: 5}) == 2 * k + 1


def test_errors_of_python_functions():
    def fail(x):
        raise ValueError("my own words")

    y = tf.py_func(fail, [tf.constant(1.0)], tf.float32, name="mine")
    with tf.Session() as session:
        with pytest.raises(tf.errors.OpError, match="my own words") as caught:
            session.run(y)
        assert "mine" in str(caught.value)


def test_interrupts_pass_through():
    def stop(x):
        raise KeyboardInterrupt

    y = tf.py_func(stop, [tf.constant(1.0)], tf.float32)
    z = tf.constant(1.0) + 1
    with tf.Session() as session:
        with pytest.raises(KeyboardInterrupt):
            session.run(y)
        assert session.run(z) == 2


def test_time_outs():
    """The caller goes on while the step still hangs."""
    release = threading.Event()
    y = tf.py_func(lambda x: (release.wait(), x)[1], [tf.constant(1.0)], tf.float32)
    with tf.Session() as session:
        with pytest.raises(tf.errors.DeadlineExceededError):
            session.run(y, options=tf.RunOptions(timeout_in_ms=100))
        release.set()
        assert session.run(tf.constant(1) + 1, options=tf.RunOptions(timeout_in_ms=600_000)) == 2
    release.clear()
    with tf.Session(config=tf.ConfigProto(operation_timeout_in_ms=100)) as session:
        with pytest.raises(tf.errors.DeadlineExceededError):
            session.run(y)
        release.set()


def test_a_python_function_may_use_the_session():
    v = tf.Variable(3.0)
    double = v * 2.0
    with tf.Session() as session:
        session.run(v.initializer)
        y = tf.py_func(lambda x: np.float32(session.run(double) + x), [double], tf.float32)
        assert session.run(y) == 12


# ---------------------------------------------------------------- traces
def test_run_metadata():
    x = tf.placeholder(tf.float32, [3], name="x")
    y = tf.add(tf.multiply(x, x, name="m"), 1.0, name="y")
    metadata = tf.RunMetadata()
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE, output_partition_graphs=True)
    with tf.Session() as session:
        before = time.time_ns() // 1000
        got = session.run(y, {x: [1, 2, 3]}, options=options, run_metadata=metadata)
        after = time.time_ns() // 1000
    assert list(got) == [2, 5, 10]
    (device,) = metadata.step_stats.dev_stats
    assert device.device == "/job:localhost/replica:0/task:0/device:CPU:0"
    stats = {n.node_name: n for n in device.node_stats}
    assert {"m", "y"} <= set(stats)
    assert before <= stats["m"].all_start_micros <= stats["y"].all_start_micros <= after
    described = stats["m"].output[0].tensor_description
    assert described.dtype == 1
    assert [d.size for d in described.shape.dim] == [3]
    assert described.allocation_description.requested_bytes == 12
    (graph_def,) = metadata.partition_graphs
    assert {"m", "y"} <= {n.name for n in graph_def.node}
    assert {n.device for n in graph_def.node} == {device.device}


def test_without_a_trace_level_nothing_is_traced():
    x = tf.constant(1.0) + 1
    metadata = tf.RunMetadata()
    with tf.Session() as session:
        session.run(x, options=tf.RunOptions(), run_metadata=metadata)
    assert not metadata.step_stats.dev_stats


def test_a_traced_step_is_a_step():
    v = tf.Variable(0)
    bump = v.assign_add(1)
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
    with tf.Session() as session:
        session.run(v.initializer)
        for k in range(1, 4):
            assert session.run(bump, options=options, run_metadata=tf.RunMetadata()) == k


def test_explain():
    x = tf.placeholder(tf.float32, [2], name="x")
    with tf.device("/cpu:0"):
        y = tf.add(x, 1.0, name="y")
    with tf.Session() as session:
        told = session.explain(y, {x: [1.0, 2.0]})
    row = next(r for r in told.rows if r.node == "y")
    assert (row.op, row.requested, row.how) == ("Add", "/device:CPU:0", "portable")
    assert row.device.endswith("CPU:0")
    assert row.kernel
    assert row.line.startswith(__file__)
    assert "y" in str(told)
    assert told.to_dict()["rows"][0]["node"]
    assert "CPU:0" in told.summary()


def test_explain_runs_nothing():
    v = tf.Variable(0)
    bump = v.assign_add(1)
    with tf.Session() as session:
        session.run(v.initializer)
        session.explain(bump)
        assert session.run(v) == 0


def test_nothing_is_logged_in_plain_use(caplog):
    with caplog.at_level(logging.INFO), tf.Session() as session:
        session.run(tf.constant(1.0) / 0.0)
    assert not [r for r in caplog.records if r.name.startswith("opdock") and r.levelno > 20]
