"""Nothing that a caller holds is ever overwritten: a thousand steps, every array kept."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import opdock as tf

STEPS = 1000
N = 40  # 40 x 40 float32: large enough for in-place work


def feeds(step):
    rng = np.random.default_rng(step % 7)
    return rng.normal(size=(N, N)).astype(np.float32)


class Kept:
    """What a session returned, beside copies made at once."""

    def __init__(self):
        self.pairs = []

    def add(self, results):
        for value in results:
            if isinstance(value, np.ndarray):
                self.pairs.append((value, value.copy()))

    def check(self):
        assert self.pairs
        assert all(np.array_equal(a, b, equal_nan=True) for a, b in self.pairs)
        arrays = {id(a): a for a, _ in self.pairs[-40:]}
        some = list(arrays.values())
        for i, a in enumerate(some):
            assert not any(np.shares_memory(a, b) for b in some[:i])


def training(optimizer, resource):
    x = tf.placeholder(tf.float32, [N, N])
    w = tf.get_variable("w", [N, N], initializer=tf.ones_initializer(), use_resource=resource)
    b = tf.get_variable("b", [N], initializer=tf.zeros_initializer(), use_resource=resource)
    h = tf.nn.relu(tf.nn.bias_add(tf.matmul(x, w), b))
    loss = tf.reduce_mean(tf.square(h - x))
    pairs = optimizer.compute_gradients(loss, [w, b])
    train = optimizer.apply_gradients(pairs)
    return x, [train, loss, h], [g for g, _ in pairs], [w, b, tf.identity(w), tf.reshape(w, [-1])]


OPTIMIZERS = {
    "descent": lambda: tf.train.GradientDescentOptimizer(1e-3),
    "momentum": lambda: tf.train.MomentumOptimizer(1e-3, 0.9),
    "adam": lambda: tf.train.AdamOptimizer(1e-3),
}


@pytest.mark.parametrize("resource", [False, True])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_training(name, resource):
    x, plain, gradients, variables = training(OPTIMIZERS[name](), resource)
    kept = Kept()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for step in range(STEPS):
            if step % 3 == 0:
                kept.add(session.run([*plain, *gradients], {x: feeds(step)}))
            elif step % 3 == 1:
                kept.add(session.run(plain, {x: feeds(step)}))
            else:
                kept.add(session.run(variables))
        kept.check()


def test_planned_gradients_give_what_fetched_ones_would():
    """Fetched gradients have no planned buffer: a step must not depend on that."""
    x, plain, gradients, variables = training(tf.train.MomentumOptimizer(1e-3, 0.9), False)
    with tf.Session() as one, tf.Session() as other:
        for session in (one, other):
            session.run(tf.global_variables_initializer())
        for step in range(50):
            one.run(plain, {x: feeds(step)})
            other.run([*plain, *gradients], {x: feeds(step)})
        for a, b in zip(one.run(variables), other.run(variables), strict=True):
            np.testing.assert_array_equal(a, b)
        planned = one.explain(plain, {x: feeds(0)}).memory
        fetched = other.explain([*plain, *gradients], {x: feeds(0)}).memory
        assert planned.naive_bytes > fetched.naive_bytes


def test_views_feeds_and_loops():
    x = tf.placeholder(tf.float32, [N, N])
    y = tf.exp(-tf.square(x)) * 2.0 + x
    _, looped = tf.while_loop(
        lambda i, v: i < 3, lambda i, v: (i + 1, v * 0.5 + y), [tf.constant(0), y]
    )
    branch = tf.cond(tf.reduce_sum(x) > 0, lambda: y + 1.0, lambda: tf.identity(y))
    fetches = [x, y, tf.identity(y), tf.reshape(y, [-1]), y[1:], tf.transpose(y), looped, branch,
               tf.stop_gradient(y), tf.expand_dims(x, 0), *tf.unstack(y)[:2],
               *tf.split(y, 2)]  # fmt: skip
    kept = Kept()
    with tf.Session() as session:
        call = session.make_callable(fetches, [x])
        for step in range(STEPS):
            value = feeds(step)
            kept.add(call(value) if step % 2 else session.run(fetches, {x: value}))
            value[...] = np.nan  # what the caller does with a feed afterwards is the caller's
        kept.check()


@pytest.mark.parametrize("resource", [False, True])
def test_assigned_values(resource):
    """What goes into a variable stays there, whatever buffers the next steps use."""
    x = tf.placeholder(tf.float32, [N, N])
    v = tf.get_variable("v", [N, N], initializer=tf.zeros_initializer(), use_resource=resource)
    y = tf.square(x) * 0.5 + 1.0
    assign, bump = v.assign(y), v.assign_add(y * 2.0)
    twist = v.assign(tf.transpose(y * 3.0))
    kept = Kept()
    with tf.Session() as session:
        session.run(v.initializer)
        for step in range(STEPS):
            value = feeds(step)
            want = np.square(value) * np.float32(0.5) + np.float32(1)
            session.run((assign.op, bump.op, twist.op)[step % 3], {x: value})
            if step % 3 == 1:
                want = before + want * np.float32(2)  # noqa: F821 - of the step before
            elif step % 3 == 2:
                want = (want * np.float32(3)).T
            session.run(y, {x: -value})
            before = session.run(v)
            np.testing.assert_allclose(before, want, rtol=1e-6)
            kept.add([before])
        kept.check()


def test_tensor_arrays_and_python_functions_keep_what_they_get():
    x = tf.placeholder(tf.float32, [N, N])
    held = []

    def hold(value):
        held.append((value, value.copy()))
        return value

    y = tf.sqrt(tf.abs(x)) + 0.25
    z = tf.py_func(hold, [y * 2.0], tf.float32)
    array = tf.TensorArray(tf.float32, 3, clear_after_read=False)
    for i in range(3):
        array = array.write(i, y * float(i) - 1.0)
    total = tf.add_n([array.read(i) for i in range(3)]) + array.stack()[1]
    kept = Kept()
    with tf.Session() as session:
        for step in range(STEPS // 4):
            value = feeds(step)
            got = session.run([z, total], {x: value})
            root = np.sqrt(np.abs(value)) + np.float32(0.25)
            np.testing.assert_allclose(got[1], root * 4 - 4, rtol=1e-5, atol=1e-5)
            kept.add(got)
        kept.check()
    assert all(np.array_equal(a, b) for a, b in held)


def test_threads_on_one_session():
    x, plain, gradients, variables = training(tf.train.GradientDescentOptimizer(1e-4), True)
    errors = []

    def work(seed):
        kept = Kept()
        try:
            for step in range(STEPS // 8):
                value = feeds(seed + step)
                h = session.run([plain[2], x], {x: value})
                assert np.array_equal(h[1], value)
                kept.add(h)
                kept.add(session.run([*plain, gradients[0]] if step % 2 else plain, {x: value}))
                kept.add(session.run(variables))
            kept.check()
        except BaseException as e:
            errors.append(e)

    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert not errors
