"""Conditional accumulators: what they add up, what they drop, who waits."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import opdock as tf


@pytest.fixture(autouse=True)
def _graph() -> Any:
    with tf.Graph().as_default():
        yield


@pytest.mark.parametrize(("kind", "wanted"), [("MEAN", [2.0, 4.0]), ("SUM", [4.0, 8.0])])
def test_gradients_add_up_and_old_ones_are_dropped(kind: str, wanted: list[float]) -> None:
    box = tf.ConditionalAccumulator(tf.float32, shape=[2], reduction_type=kind)
    one, two = box.apply_grad([1.0, 2.0]), box.apply_grad([3.0, 6.0])
    late, count = box.apply_grad([9.0, 9.0], local_step=0), box.num_accumulated()
    taken = box.take_grad(2)
    assert taken.shape.as_list() == [2]
    with tf.Session() as session:
        session.run([one, two])
        assert session.run(count) == 2
        assert session.run(taken).tolist() == wanted
        session.run(late)  # the taking has moved the accumulator to step 1
        assert session.run(count) == 0
        session.run(box.set_global_step(0))
        session.run(late)
        assert session.run(count) == 1


def test_slices_are_divided_by_how_often_they_came() -> None:
    box = tf.SparseConditionalAccumulator(tf.float32, shape=[5, None])
    one = box.apply_grad([0, 2], [[1.0, 1.0], [2.0, 2.0]], [5, 2])
    two = box.apply_indexed_slices_grad(tf.IndexedSlices([[4.0, 4.0], [3.0, 3.0]], [2, 3]))
    taken = box.take_indexed_slices_grad(2)
    with tf.Session() as session:
        session.run(one)
        session.run(two)
        found = session.run(taken)
    assert found.indices.tolist() == [0, 2, 3]
    assert found.values.tolist() == [[1.0, 1.0], [3.0, 3.0], [3.0, 3.0]]
    assert found.dense_shape.tolist() == [5, 2]


def test_who_takes_waits_for_enough() -> None:
    box = tf.ConditionalAccumulator(tf.float32, shape=[])
    give, taken = box.apply_grad(3.0), box.take_grad(2)
    with tf.Session() as session:
        found: list[Any] = []
        thread = threading.Thread(target=lambda: found.append(session.run(taken)))
        thread.start()
        session.run(give)
        session.run(give)
        thread.join()
    assert found == [3.0]


def test_a_session_that_closes_ends_the_waiting() -> None:
    taken = tf.ConditionalAccumulator(tf.float32, shape=[]).take_grad(1)
    session = tf.Session()
    started, found = threading.Event(), []

    def wait() -> None:
        started.set()
        try:
            session.run(taken)
        except (tf.errors.CancelledError, RuntimeError) as error:
            found.append(str(error))

    waiting = threading.Thread(target=wait)
    waiting.start()
    started.wait()
    session.close()
    waiting.join()
    # The closing may have come before the waiting.
    assert "TakeGrad operation was cancelled" in found[0] or "closed" in found[0]


def test_what_does_not_fit_is_an_error() -> None:
    box = tf.ConditionalAccumulator(tf.float32, shape=[2])
    slices = tf.SparseConditionalAccumulator(tf.float32, shape=[3, 2])
    grad = tf.placeholder(tf.float32)
    with pytest.raises(ValueError, match="incompatible"):
        box.apply_grad([1.0, 2.0, 3.0])
    with tf.Session() as session:
        for fetch, said in (
            (box.apply_grad(grad), r"expected \[2\], got \[3\]"),
            (box.take_grad(0), "num_required must be positive, but was 0"),
            (slices.apply_grad([0, 1], [[1.0, 1.0]]), "Expected 2 non-empty input values, got 1"),
            (slices.apply_grad([3], [[1.0, 1.0]]), "index is 3 exceeded 3"),
        ):
            with pytest.raises(tf.errors.InvalidArgumentError, match=said):
                session.run(fetch, {grad: np.ones(3)})
