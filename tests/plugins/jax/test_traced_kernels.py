"""Kernels that run op by op: each is one XLA program, if it can be traced."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf
from opdock.plugin import tracing
from opdock_jax import namespace

DEVICE = "/device:JAX:0"
OP_BY_OP = tf.ConfigProto(allow_soft_placement=False)
OP_BY_OP.graph_options.optimizer_options.opt_level = -1


@pytest.fixture
def session():
    with tf.Graph().as_default(), tf.device(DEVICE), tf.Session(config=OP_BY_OP) as sess:
        yield sess


@pytest.fixture
def runs(monkeypatch):
    """The kernels that were traced, by what they are called with afterwards."""
    found = []
    made = tracing.TracedKernel._traced

    def traced(self, *arguments):
        found.append(self)
        return made(self, *arguments)

    monkeypatch.setattr(tracing.TracedKernel, "_traced", traced)
    return found


def test_a_kernel_is_traced_once_for_a_shape(session, runs):
    x = tf.placeholder(tf.float32, [None])
    y = tf.linalg.set_diag(tf.zeros([2, 2]), x)
    for value in ([1.0, 2.0], [3.0, 4.0]):
        assert session.run(y, {x: value}).tolist() == np.diag(value).tolist()
    assert len(runs) == len(set(map(id, runs)))


def test_a_check_of_values_is_the_kernels_own_error(session, runs):
    at = tf.placeholder(tf.int32, [2])
    rows = tf.gather(tf.constant([1.0, 2.0]), at)
    assert session.run(rows, {at: [1, 0]}).tolist() == [2.0, 1.0]
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"indices\[1\] = 5"):
        session.run(rows, {at: [0, 5]})
    assert session.run(rows, {at: [0, 1]}).tolist() == [1.0, 2.0]
    assert len(runs) == 1


def test_one_program_serves_all_places_of_a_slice(session, runs):
    x, at = tf.placeholder(tf.float32, [3, 2]), tf.placeholder(tf.int32, [])
    row, part = x[at], tf.slice(x, [at, 0], [1, 2])
    value = np.arange(6, dtype=np.float32).reshape(3, 2)
    for i in range(3):
        assert session.run([row, part], {x: value, at: i})[0].tolist() == value[i].tolist()
    assert len(runs) == len(set(map(id, runs)))
    with pytest.raises(tf.errors.InvalidArgumentError, match="slice index 3 of dimension 0"):
        session.run(row, {x: value, at: 3})


def test_an_update_is_traced_with_its_variable(session, runs):
    v = tf.get_variable("v", initializer=np.zeros((3, 2), np.float32))
    at = tf.placeholder(tf.int32, [2])
    step = tf.scatter_add(v, at, tf.ones([2, 2]))
    session.run(v.initializer)
    for _ in range(3):
        value = session.run(step, {at: [0, 2]})
    assert value.tolist() == [[3, 3], [0, 0], [3, 3]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="indices"):
        session.run(step, {at: [0, 9]})
    assert session.run(v).tolist() == value.tolist()
    assert len(runs) == len(set(map(id, runs)))


def test_what_depends_on_values_runs_as_it_is(session):
    x = tf.placeholder(tf.int32, [None])
    values, places = tf.unique(x)
    for fed, expected in (([1, 1, 2], [1, 2]), ([3, 3, 3], [3])):
        assert session.run(values, {x: fed}).tolist() == expected
    assert session.run(places, {x: [5, 4, 5]}).tolist() == [0, 1, 0]


def test_random_numbers_go_on_from_run_to_run(session):
    tf.set_random_seed(3)
    number = tf.random_uniform([4], seed=1)
    got = [session.run(number) for _ in range(2)]
    with tf.Graph().as_default(), tf.device("/cpu:0"), tf.Session() as other:
        tf.set_random_seed(3)
        number = tf.random_uniform([4], seed=1)
        for value in got:
            np.testing.assert_array_equal(value, other.run(number))
    assert not np.array_equal(*got)


def test_a_check_that_nobody_takes_along_asks_for_values():
    assert tracing.defer(namespace.namespace, np.bool_(True))
    with tracing.deferring() as checks:
        assert not tracing.defer(namespace.namespace, np.bool_(True))
    assert [bool(c) for c in checks] == [True]
