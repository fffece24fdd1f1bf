"""Hundreds of declines and failures of memory on demand: no wrong result, growth, or noise."""

from __future__ import annotations

PREAMBLE = """
import gc, logging, io
import numpy as np, opdock as tf
import fixture_moody as moody

log = io.StringIO()
logging.getLogger("opdock.fallback").addHandler(logging.StreamHandler(log))
logging.getLogger("opdock.fallback").propagate = False
SOFT = tf.ConfigProto(allow_soft_placement=True)
MOODY = "/device:MOODY:0"
"""


def run(site, program):
    return site.run("-c", PREAMBLE + program, OPDOCK_PLUGINS="cpu,moody").stdout.splitlines()


def test_three_hundred_declines(site):
    assert run(site, """
x = tf.placeholder(tf.float32, [None])
with tf.device("/cpu:0"):
    count = tf.Variable(0)
    bump = tf.assign_add(count, 1)
with tf.control_dependencies([bump]), tf.device(MOODY):
    y = tf.add(x, x, name="y")
with tf.control_dependencies([y]):
    late = tf.assign_add(count, 1000)
wrong = 0
with tf.Session(config=SOFT) as sess:
    sess.run(count.initializer)
    for i in range(300):
        value = np.full(3, float(i if i % 3 else -i - 1), np.float32)
        got, _ = sess.run([y, late], {x: value})
        wrong += not np.array_equal(got, value + value)
        wrong += sess.run(count) != 1001 * (i + 1)
    session_programs = len(sess._cache.entries())
print(wrong, session_programs < 20, len(log.getvalue().splitlines()))
print(len(sess._engine.experience.moves), len(sess._engine.experience.bans))
""") == ["0 True 1", "1 1"]  # fmt: skip


def test_three_hundred_times_no_memory_in_new_ops(site):
    """Each graph's op fails once; what is remembered is by op, what is told once by op."""
    assert run(site, """
x = tf.placeholder(tf.float32, [None])
with tf.device(MOODY):
    made = [tf.multiply(x, float(i), name=f"m{i}") for i in range(2, 302)]
wrong = 0
with tf.Session(config=SOFT) as sess:
    for n in (3, 50):
        for i, m in enumerate(made, 2):
            wrong += not np.array_equal(sess.run(m, {x: np.ones(n)}), np.full(n, i))
    told = len(log.getvalue().splitlines())
    for i, m in enumerate(made, 2):
        wrong += not np.array_equal(sess.run(m, {x: np.ones(60)}), np.full(60, i))
print(wrong, told, len(log.getvalue().splitlines()) - told)
""") == ["0 300 0"]  # fmt: skip


def test_memory_does_not_grow(site):
    assert run(site, """
import tracemalloc
x = tf.placeholder(tf.float32, [None])
with tf.device(MOODY):
    y = tf.add(tf.multiply(x, x), x)
def steps(n):
    with tf.Session(config=SOFT) as sess:
        for i in range(n):
            assert sess.run(y, {x: np.full(2000, -1.0, np.float32)}).sum() == 0
steps(5); gc.collect(); tracemalloc.start(); steps(50); gc.collect()
before = tracemalloc.get_traced_memory()[0]
steps(300); gc.collect()
print(tracemalloc.get_traced_memory()[0] - before < 100_000)
""") == ["True"]  # fmt: skip


def test_each_session_tries_anew(site):
    assert run(site, """
x = tf.placeholder(tf.float32, [None])
with tf.device(MOODY):
    y = tf.add(x, x)
for _ in range(3):
    with tf.Session(config=SOFT) as sess:
        sess.run(y, {x: [-1.0]})
        sess.run(y, {x: [1.0]})
print(moody.calls["Add"], len(log.getvalue().splitlines()))
""") == ["3 3"]  # fmt: skip


def test_declines_in_parallel_traced_and_timed_steps(site):
    assert run(site, """
x = tf.placeholder(tf.float32, [None])
with tf.device(MOODY):
    y = [tf.add(x, float(i)) for i in range(6)]
total = tf.add_n(y)
value = np.full(4, -9.0, np.float32)
want = value * 6 + 15
for threads in (0, 4):
    config = tf.ConfigProto(allow_soft_placement=True, inter_op_parallelism_threads=threads)
    for options in (None, tf.RunOptions(trace_level=3), tf.RunOptions(timeout_in_ms=9000)):
        with tf.Session(config=config) as sess:
            for _ in range(3):
                assert np.array_equal(sess.run(total, {x: value}, options, tf.RunMetadata()), want)
print("ok", len(log.getvalue().splitlines()))
""") == ["ok 36"]  # fmt: skip


def test_declines_within_loops_and_branches(site):
    assert run(site, """
x = tf.placeholder(tf.float32, [2])
v = tf.Variable([0.0, 0.0])
with tf.device(MOODY):
    def body(i, y):
        with tf.control_dependencies([tf.assign_add(v, [1.0, 1.0])]):
            return i + 1, tf.add(y, x)
    y = tf.while_loop(lambda i, _: i < 4, body, [0, x])[1]
    z = tf.cond(x[0] < 0, lambda: tf.add(x, x), lambda: x)
with tf.Session(config=SOFT) as sess:
    sess.run(v.initializer)
    for k in range(1, 4):
        print(*sess.run([y, z], {x: [-1.0, 1.0]}), sess.run(v)[0] == 4 * k)
""") == ["[-5.  5.] [-2.  2.] True"] * 3  # fmt: skip


def test_concurrent_steps_that_decline(site):
    assert run(site, """
import threading
x = tf.placeholder(tf.float32, [None])
with tf.device(MOODY):
    y = tf.add(tf.multiply(x, 2.0), x)
wrong = []
with tf.Session(config=SOFT) as sess:
    def work(k):
        for i in range(40):
            value = np.full(3 + k, -float(i), np.float32)
            if not np.array_equal(sess.run(y, {x: value}), value * 3):
                wrong.append((k, i))
    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    [t.start() for t in threads]; [t.join() for t in threads]
print(wrong)
""") == ["[]"]  # fmt: skip


def test_the_move_is_explained(site):
    assert run(site, """
x = tf.placeholder(tf.float32, [None])
with tf.device(MOODY):
    y = tf.add(x, x, name="y")
with tf.Session(config=SOFT) as sess:
    sess.run(y, {x: [-1.0]})
    told = sess.explain(y, {x: [-1.0]})
    row = next(r for r in told.rows if r.node == "y")
    print(row.device[-5:], any("gave up at run time" in r for r in row.rejections))
    print("run-time fallback: y (Add" in told.summary())
""") == ["CPU:0 True", "True"]  # fmt: skip


def test_a_python_function_that_fails_for_memory_does_not_run_again(site):
    assert run(site, """
calls = []
def f(a):
    calls.append(1)
    raise error("mine")
y = tf.py_func(f, [tf.constant(1.0)], tf.float32)
config = tf.ConfigProto(allow_soft_placement=True, device_count={"CPU": 2})
for error, want in ((MemoryError, tf.errors.ResourceExhaustedError),
                    (NotImplementedError, tf.errors.UnimplementedError)):
    calls.clear()
    with tf.Session(config=config) as sess:
        try:
            sess.run(y)
        except want as e:
            print("mine" in str(e), len(calls))
""") == ["True 1"] * 2  # fmt: skip
