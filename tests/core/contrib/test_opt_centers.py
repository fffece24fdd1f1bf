"""Optimizers of workers that meet at central variables, in a session of one task."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.contrib import opt
from tests.threads import WAIT

WORKER = "/cpu:0"


@pytest.fixture(autouse=True)
def _graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def _model(getter: Any, partitioned: bool = False) -> tuple[Any, Any]:
    partitioner = tf.fixed_size_partitioner(2) if partitioned else None
    with tf.variable_scope("", custom_getter=getter, partitioner=partitioner):
        step = tf.train.get_or_create_global_step()
        return step, tf.get_variable("v", initializer=tf.constant([0.0, 0.5]))


def _values(session: Any, *names: str) -> list[Any]:
    graph = session.graph
    return [session.run(graph.get_tensor_by_name(f"{name}:0")).tolist() for name in names]


def test_agn_applies_the_mean_of_a_period_to_the_center() -> None:
    step, v = _model(getter := opt.AGNCustomGetter(WORKER))
    inner = tf.train.AdamOptimizer(0.1, beta1=0.0, beta2=0.0)
    optimizer = opt.AGNOptimizer(inner, 1, getter, communication_period=3)
    train = optimizer.apply_gradients([(tf.constant([-1.0, -1.0]), v)], step)
    assert not [w for w in tf.global_variables() if "beta" in w.op.name]
    hook = optimizer.make_session_run_hook(is_chief=True, task_index=0)
    with tf.train.MonitoredSession(hooks=[hook]) as session:
        names = ("v", "global_center_variable/v", "grad_variable/v", "global_step")
        for expected in (
            ([0.1, 0.6], [0.0, 0.5], [-1, -1], 0),
            ([0.2, 0.7], [0.0, 0.5], [-2, -2], 0),
            ([0.1, 0.6], [0.1, 0.6], [0, 0], 1),
            ([0.2, 0.7], [0.1, 0.6], [-1, -1], 1),
        ):
            session.run(train)
            for found, wanted in zip(_values(session, *names), expected, strict=True):
                np.testing.assert_allclose(found, wanted, atol=1e-6)


def test_elastic_averages_pull_both_ways_and_are_saved_in_the_place_of_variables(
    tmp_path: Any,
) -> None:
    step, v = _model(getter := opt.ElasticAverageCustomGetter(WORKER))
    inner = tf.train.GradientDescentOptimizer(1.0)
    optimizer = opt.ElasticAverageOptimizer(
        inner, 1, getter, communication_period=2, moving_rate=0.5, rho=0.25
    )
    pairs = optimizer.compute_gradients(tf.reduce_sum(v))
    train = optimizer.apply_gradients(pairs, step)
    saver = optimizer.swapping_saver()
    with tf.train.MonitoredSession(hooks=[optimizer.make_session_run_hook(True, 0)]) as session:
        session.run(train)
        np.testing.assert_allclose(_values(session, "v")[0], [-1.0, -0.5])
        # The distance of 1 from the center adds 0.25 * -1 to the gradient.
        assert np.allclose(session.run(pairs[0][0]), 0.75)
        session.run(train)
        own, central, kept = _values(
            session, "v", "global_center_variable/v", "local_center_variable/v"
        )
        np.testing.assert_allclose(own, [-0.875, -0.375])
        np.testing.assert_allclose(central, [-0.875, -0.375])
        np.testing.assert_allclose(kept, [0.0, 0.5])
        raw: Any = session._tf_sess()
        path = saver.save(raw, str(tmp_path / "m"), write_meta_graph=False)
    np.testing.assert_allclose(tf.train.load_variable(path, "v"), central)


def test_parts_of_variables_have_their_own_centers() -> None:
    _, v = _model(getter := opt.ElasticAverageCustomGetter(WORKER), partitioned=True)
    assert [getter._global_map[part].op.name for part in v] == [
        "global_center_variable/v/part_0", "global_center_variable/v/part_1",
    ]  # fmt: skip
    with pytest.raises(RuntimeError, match="global_center_variable is empty"):
        opt.ElasticAverageOptimizer(
            tf.train.GradientDescentOptimizer(1.0), 1, opt.ElasticAverageCustomGetter(WORKER)
        ).swapping_saver()


def test_models_of_two_workers_are_averaged() -> None:
    server = tf.train.Server.create_local_server()
    found: dict[int, Any] = {}

    def work(number: int) -> None:
        with tf.Graph().as_default():
            with tf.variable_scope(f"worker{number}"):
                getter = opt.ModelAverageCustomGetter(WORKER)
                with tf.variable_scope("", custom_getter=getter):
                    v = tf.get_variable("v", initializer=float(number))
            # The central variable is one for both.
            central = tf.Variable(0.0, trainable=False, name="center")
            getter._global_map[v] = central
            step = tf.train.get_or_create_global_step()
            with tf.variable_scope(f"worker{number}"):
                optimizer = opt.ModelAverageOptimizer(
                    tf.train.GradientDescentOptimizer(1.0), 2, number == 0, getter, 2
                )
            train = optimizer.apply_gradients([(tf.constant(-1.0), v)], step)
            with tf.Session(server.target) as session:
                if number == 0:
                    session.run(tf.global_variables_initializer())
                    ready.set()
                assert ready.wait(WAIT)
                session.run(tf.local_variables_initializer())
                session.run(train)
                early = session.run([v, step])
                session.run(train)
                found[number] = (early, session.run([v, central, step]))

    ready = threading.Event()
    threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # 0 + 2 and 1 + 2 have the mean 2.5.
    assert found == {0: ([1.0, 0], [2.5, 2.5, 1]), 1: ([2.0, 0], [2.5, 2.5, 1])}


def test_model_averages_need_a_global_step() -> None:
    _, v = _model(getter := opt.ModelAverageCustomGetter(WORKER))
    optimizer = opt.ModelAverageOptimizer(tf.train.GradientDescentOptimizer(1.0), 1, True, getter)
    with pytest.raises(ValueError, match="Must supply at least one variable"):
        optimizer.apply_gradients([])
    with pytest.raises(ValueError, match="Global step is required"):
        optimizer.apply_gradients([(tf.constant([1.0, 1.0]), v)])
