"""Shuffles by generated code have the order of those that Python makes."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf
from opdock.plugin import philox
from opdock_cpu.jit import llvm, swaps


@pytest.mark.parametrize("length", [1, 2, 5, swaps.MANY, 10_007])
def test_the_order_is_that_of_single_swaps(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPDOCK_JIT", "sync")
    place = (12345, 1 << 70)
    assert llvm.available()
    order = swaps.swapped(place, length)
    np.testing.assert_array_equal(order, philox.shuffled(place, length))
    np.testing.assert_array_equal(np.sort(order), np.arange(length))


def test_a_program_shuffles_the_same_either_way(monkeypatch: pytest.MonkeyPatch) -> None:
    def drawn() -> np.ndarray:
        with tf.Graph().as_default(), tf.Session() as session:
            rows = tf.random_shuffle(tf.range(swaps.MANY + 3), seed=7)
            session.run(rows)
            return session.run(rows)

    monkeypatch.setenv("OPDOCK_JIT", "sync")
    generated = drawn()
    monkeypatch.setattr(llvm, "available", lambda: False)
    np.testing.assert_array_equal(generated, drawn())
