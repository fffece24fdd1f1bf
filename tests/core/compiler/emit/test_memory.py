"""Memory plan: buffers are used again, and nothing that anybody holds is ever overwritten."""

from __future__ import annotations

import dataclasses
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import opdock as tf
from opdock.compiler.emit.memory import plan_memory
from opdock.plugin import CLUSTER

SIDE = 64  # large enough for in-place work


@pytest.fixture(autouse=True)
def one_buffer_an_op(monkeypatch):
    """These tests count the buffers of single ops, which fusion would spare."""
    monkeypatch.setenv("OPDOCK_DISABLE_PASSES", "fuse,cluster")


def chain(x, n=12):
    out = [x]
    for i in range(n):
        out.append(tf.nn.relu(out[-1] * 1.5 - 0.25) + out[max(0, len(out) - 3)] + float(i))
    return out


def feed(i):
    return np.random.default_rng(i).normal(size=(SIDE, SIDE)).astype(np.float32)


def reference(x, n=12):
    out = [x]
    for i in range(n):
        part = np.maximum(out[-1] * np.float32(1.5) - np.float32(0.25), 0)
        out.append(part + out[max(0, len(out) - 3)] + np.float32(i))
    return out


def test_buffers_are_used_again(compiled):
    x = tf.placeholder(tf.float32, [SIDE, SIDE])
    y = chain(x)[-1]
    with tf.Session() as session:
        plan = compiled(session, y, {x: feed(0)}).plan
        assert 0 < plan.planned_bytes < plan.naive_bytes / 3
        for i in range(3):
            np.testing.assert_array_equal(session.run(y, {x: feed(i)}), reference(feed(i))[-1])


def test_two_hundred_steps_leave_all_fetched_arrays_alone():
    x = tf.placeholder(tf.float32, [SIDE, SIDE])
    tensors = chain(x)
    fetches = [tensors[-1], tensors[5], tensors[3], tf.transpose(tensors[4]), tensors[4][1:], x]
    held = []
    with tf.Session() as session:
        for i in range(200):
            got = session.run(fetches, {x: feed(i)})
            held.append((i, got, [g.tobytes() for g in got]))
    for i, got, before in held:
        assert [g.tobytes() for g in got] == before, f"step {i} was overwritten"
    np.testing.assert_array_equal(held[0][1][0], reference(feed(0))[-1])


def test_nothing_fetched_shares_memory_with_the_next_step():
    x = tf.placeholder(tf.float32, [SIDE, SIDE])
    fetches = chain(x)[1:] + [tf.reshape(chain(x)[3], [-1])]
    with tf.Session() as session:
        first, second = (session.run(fetches, {x: feed(i)}) for i in (0, 1))
    assert not any(np.shares_memory(a, b) for a in first for b in second)


def test_what_the_user_writes_into_results_is_the_users(graph):
    c = tf.constant(np.ones(5, np.float32))
    v = tf.Variable(np.ones(5, np.float32))
    r = tf.Variable(np.ones(5, np.float32), use_resource=True)
    x = tf.placeholder(tf.float32, [5])
    fed = np.ones(5, np.float32)
    fetches = [c, v, r, x, v.value(), r.value(), tf.reshape(c, [5, 1]), tf.identity(x),
               c + 0.0, v[1:], tf.reshape(x, [1, 5]), tf.expand_dims(r, 0)]  # fmt: skip
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for got in session.run(fetches, {x: fed}):
            got[...] = 99
        assert (fed == 1).all()
        for got in session.run(fetches, {x: fed}):
            assert (got == 1).all()


@pytest.mark.parametrize("resource", [False, True])
def test_a_variable_does_not_hold_the_callers_array(resource):
    x = tf.placeholder(tf.float32, [3])
    v = tf.Variable(np.zeros(3, np.float32), use_resource=resource)
    for route in (v.assign(x), v.assign(tf.identity(x)), v.assign(tf.reshape(x, [3]))):
        with tf.Session() as session:
            fed = np.ones(3, np.float32)
            got = session.run(route, {x: fed})
            fed[:] = 5
            assert list(session.run(v)) == [1, 1, 1]
            if got is not None:
                np.asarray(got)[...] = 7
            assert list(session.run(v)) == [1, 1, 1]


@pytest.mark.parametrize("resource", [False, True])
def test_a_variable_does_not_hold_a_planned_buffer(resource):
    x = tf.placeholder(tf.float32, [SIDE, SIDE])
    v = tf.Variable(tf.zeros([SIDE, SIDE]), use_resource=resource)
    w = tf.Variable(tf.zeros([SIDE, SIDE]), use_resource=resource)
    y = chain(x)[-1]
    keep = tf.group(v.assign(y), w.assign(tf.transpose(y)))
    run_on = chain(x, 14)[-1]
    with tf.Session() as session:
        session.run(keep, {x: feed(0)})
        for i in range(1, 4):
            session.run([run_on, y], {x: feed(i)})
        np.testing.assert_array_equal(session.run(v), reference(feed(0))[-1])
        np.testing.assert_array_equal(session.run(w), reference(feed(0))[-1].T)


def test_a_fetched_variable_survives_updates():
    for resource in (False, True):
        v = tf.Variable(np.zeros(1000, np.float32), use_resource=resource)
        bump = v.assign_add(tf.ones([1000]))
        rows = tf.scatter_add(v, [0], [1.0])
        with tf.Session() as session:
            session.run(v.initializer)
            held = []
            for i in range(20):
                held.append((session.run([v, v.value()]), i))
                session.run(bump)
                session.run(rows)
            for got, i in held:
                assert all(g[1] == i and g[0] == 2 * i for g in got)


def test_two_threads_run_one_program():
    x = tf.placeholder(tf.float32, [SIDE, SIDE])
    y = chain(x)[-1]
    wrong = []

    def work(seed):
        for i in range(60):
            value = feed(seed + i % 5)
            if not np.array_equal(session.run(y, {x: value}), reference(value)[-1]):
                wrong.append((seed, i))

    with tf.Session() as session:
        session.run(y, {x: feed(0)})
        threads = [threading.Thread(target=work, args=(100 * k,)) for k in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert not wrong


def test_a_traced_step_beside_a_plain_one():
    x = tf.placeholder(tf.float32, [SIDE, SIDE])
    y = chain(x)[-1]
    wrong = []

    def work(seed, **options):
        for i in range(40):
            value = feed(seed + i % 5)
            if not np.array_equal(session.run(y, {x: value}, **options), reference(value)[-1]):
                wrong.append((seed, i))

    with tf.Session() as session:
        session.run(y, {x: feed(0)})
        traced = {"options": tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)}
        threads = [threading.Thread(target=work, args=(100 * k,), kwargs=traced if k % 2 else {})
                   for k in range(4)]  # fmt: skip
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert not wrong


def test_a_view_of_a_dying_buffer_is_not_written_over(compiled):
    """a[::-1] reads what `a + a[::-1]` would write: in place is for plain operands only."""
    x = tf.placeholder(tf.float32, [SIDE, SIDE])
    a = x * 2.0
    y = a + a[::-1]
    z = y[::-1] - (y * 3.0 + 1.0)
    with tf.Session() as session:
        value = feed(3)
        program = compiled(session, z, {x: value})
        in_place = 0
        for step in program.schedule.steps:
            if step.out is not None and any(
                program.line.names[s] == f"b{step.out}" for s in step.inputs
            ):
                assert all(v.node.op != "StridedSlice" for v in step.node.inputs), step.node
                in_place += 1
        assert in_place
        two = value * 2
        want = two + two[::-1]
        np.testing.assert_array_equal(
            session.run(z, {x: value}), want[::-1] - (want * np.float32(3) + np.float32(1))
        )


@pytest.mark.parametrize("ready", [False, True])
@pytest.mark.parametrize("reduces", [False, True])
def test_a_cluster_writes_over_an_input_that_dies_there(compiled, monkeypatch, ready, reduces):
    """Not over one that broadcasts, nor with a result that is a sum."""
    monkeypatch.setenv("OPDOCK_DISABLE_PASSES", "fuse")
    monkeypatch.setenv("OPDOCK_JIT", "sync")
    if not ready:
        monkeypatch.setattr("opdock_cpu.jit.generated.Generated.ready", False)
    x, row = tf.placeholder(tf.float32, [SIDE, SIDE]), tf.placeholder(tf.float32, [SIDE])
    a = tf.matmul(x, x)
    y = tf.tanh(a * 0.01) * 2.0 + row
    total = tf.reduce_sum(y, 1) if reduces else tf.constant(0.0)
    z = tf.matmul(y, y) + tf.reduce_max(total)
    value, offset = feed(4), feed(5)[0]
    with tf.Session() as session:
        program = compiled(session, z, {x: value, row: offset})
        over, names = [], program.line.names
        for step in program.schedule.steps:
            outs = step.outs or (step.out,)
            if step.node.op == CLUSTER:
                over.append([out is not None and f"b{out}" in
                             {names[s] for s in step.inputs} for out in outs])  # fmt: skip
        assert [True, False] in over if reduces else [True] in over
        for scale in (1, 2):
            want = np.tanh(value @ value * scale**2 * 0.01) * 2 + offset
            got = session.run(z, {x: value * scale, row: offset})
            top = want.sum(1).max() if reduces else 0
            np.testing.assert_allclose(got, want @ want + top, rtol=1e-3, atol=1e-2)


def test_without_the_pass_nothing_is_planned(compiled, monkeypatch):
    monkeypatch.setenv("OPDOCK_DISABLE_PASSES", "memory")
    x = tf.placeholder(tf.float32, [SIDE, SIDE])
    with tf.Session() as session:
        plan = compiled(session, chain(x)[-1], {x: feed(0)}).plan
    assert plan.planned_bytes == plan.naive_bytes == 0


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 40), st.integers(0, 40)), min_size=3,
                max_size=25), st.data())  # fmt: skip
def test_any_mix_of_views_and_arithmetic(program, data):
    ops = [
        (lambda a, b: a + b, np.add), (lambda a, b: a - b, np.subtract),
        (lambda a, b: a[::-1], lambda a, b: a[::-1]),
        (lambda a, b: tf.reshape(tf.reshape(a, [-1]), [SIDE, SIDE]), lambda a, b: a),
        (lambda a, b: tf.maximum(a, b), np.maximum), (lambda a, b: tf.identity(b), lambda a, b: b),
    ]  # fmt: skip
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [SIDE, SIDE])
        made, want = [x, x * 0.5], [feed(1), feed(1) * np.float32(0.5)]
        for op, i, j in program:
            a, b = -1 - i % len(made), -1 - j % len(made)
            tensor, array = ops[op]
            made.append(tensor(made[a], made[b]))
            want.append(array(want[a], want[b]))
        picks = data.draw(st.lists(st.integers(0, len(made) - 1), min_size=1, max_size=3))
        with tf.Session() as session:
            for _ in range(2):
                got = session.run([made[i] for i in picks], {x: feed(1)})
        for g, i in zip(got, picks, strict=True):
            np.testing.assert_array_equal(g, want[i])


def test_what_a_kernel_keeps_decides(compiled):
    """A sum into a variable reads its operand; an assignment and a user's function keep it."""
    x = tf.placeholder(tf.float32, [SIDE, SIDE])
    v = tf.Variable(tf.zeros([SIDE, SIDE]))
    bias = tf.ones([SIDE])
    routes = {
        "added": v.assign_add(tf.nn.bias_add(x, bias)).op,
        "assigned": v.assign(tf.nn.bias_add(x, bias)).op,
        "seen": tf.py_func(lambda a: a.sum(), [tf.nn.bias_add(x, bias)], tf.float32),
    }
    with tf.Session() as session:
        session.run(v.initializer)
        planned = {}
        for name, route in routes.items():
            planned[name] = compiled(session, route, {x: feed(0)}).plan.planned_bytes
            for i in range(3):
                session.run(route, {x: feed(i)})
    assert planned == {"added": SIDE * SIDE * 4, "assigned": 0, "seen": 0}


def test_a_kernel_that_does_not_say_keeps_everything(compiled):
    x = tf.placeholder(tf.float32, [SIDE, SIDE])
    v = tf.Variable(tf.zeros([SIDE, SIDE]))
    add = v.assign_add(tf.nn.bias_add(x, tf.ones([SIDE]))).op
    with tf.Session() as session:
        session.run(v.initializer)
        program = compiled(session, add, {x: feed(0)})
        (step,) = [s for s in program.schedule.steps if s.node.op == "AssignAdd"]
        assert plan_memory(program.schedule).planned_bytes
        step.node.kernel = dataclasses.replace(step.node.kernel, keeps=None)
        assert not plan_memory(program.schedule).planned_bytes
        step.node.kernel = dataclasses.replace(step.node.kernel, keeps="value")
        assert not plan_memory(program.schedule).planned_bytes
