"""`Session.shadow` and `Session.use_kernel`: a second device beside the first, another kernel."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock import plugin as api
from tests.core.runtime.inspect import test_bisect
from tests.core.runtime.inspect.test_bisect import TWISTED


@pytest.fixture
def twisted() -> Iterator[None]:
    api.register(test_bisect, "twisted-for-tests")
    yield
    api.unregister("twisted-for-tests")


def network() -> tuple[tf.Tensor, tf.Tensor]:
    x = tf.placeholder(tf.float32, [None, 3], name="x")
    w = tf.get_variable("w", [3, 2], initializer=tf.ones_initializer())
    return x, tf.reduce_sum(tf.tanh(tf.matmul(x, w), name="hidden"), name="total")


FED = np.full((4, 3), 0.25, np.float32)


# ---------------------------------------------------------------- shadows
def test_what_differs_is_told_and_results_stay(twisted: None) -> None:
    x, total = network()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        alone = sess.run(total, {x: FED})
        with sess.shadow(TWISTED, share=1.0, budget=1e9) as shadow:
            assert sess.run(total, {x: FED}) == alone
            assert sess.run(total, {x: FED}) == alone
        assert sess.run(total, {x: FED}) == alone
    assert shadow
    bad = [c for c in shadow.found.values() if c.error]
    assert [c.count for c in bad] == [2] * len(bad)
    assert any("hidden" in c.node or "Tanh" in str(c) or c.op for c in bad)
    (product,) = [c for c in shadow.found.values() if c.op == "MatMul"]
    assert (product.error, product.count) == ("", 2)
    assert "test_shadow.py" in product.line
    assert "results of" in str(shadow) and "absolute" in str(shadow)


def test_a_budget_bounds_the_cost(twisted: None) -> None:
    x, total = network()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        with sess.shadow(TWISTED, share=1.0, budget=0.0) as shadow:
            for _ in range(3):
                sess.run(total, {x: FED})
        assert sum(c.count for c in shadow.found.values()) <= 1, "the first cannot be foreseen"
        with sess.shadow(TWISTED, share=0.0, budget=1e9) as shadow:
            sess.run(total, {x: FED})
        assert shadow.found == {} and not shadow
        with pytest.raises(ValueError, match="share must be from 0 to 1"):
            sess.shadow(TWISTED, share=2.0)
        with pytest.raises(tf.errors.InvalidArgumentError, match="no device .*did you mean"):
            sess.shadow("twiste:0")


def test_one_comparison_at_most_is_beyond_the_budget(
    twisted: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a clock that moves by one where it is read, and by 50 while anything is compared."""
    x, total = network()
    now, longest = [0.0], 52.0  # a comparison reads it twice on each side
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        shadow = sess.shadow(TWISTED, share=1.0, budget=0.25)

        def read() -> float:
            now[0] += 1
            return now[0]

        fallback, real = shadow._engine.fallback, type(shadow._engine.fallback).elsewhere

        def elsewhere(self: Any, *given: Any) -> Any:
            now[0] += 50
            return real(self, *given)

        monkeypatch.setattr(shadow, "_clock", read)
        monkeypatch.setattr(type(fallback), "elsewhere", elsewhere)
        with shadow:
            for _ in range(600):
                sess.run(total, {x: FED})
                assert shadow.cost <= 0.25 * shadow.steps + longest
    count = sum(c.count for c in shadow.found.values())
    assert count > 5 and shadow.cost >= 50 * count
    assert shadow.cost >= 0.25 * shadow.steps - longest, "what there is time for is compared"


# ---------------------------------------------------------------- kernels
def negated(ctx: api.KernelContext, x: np.ndarray) -> np.ndarray:
    return -np.tanh(x)


def test_a_kernel_is_swapped_in_a_running_session() -> None:
    x, total = network()
    kernel = api.Kernel(op="Tanh", fn=negated, dtypes={"T": {tf.float32}})
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        alone = sess.run(total, {x: FED})
        undo = sess.use_kernel(kernel, device="cpu:0")
        np.testing.assert_allclose(sess.run(total, {x: FED}), -alone, rtol=1e-6)
        (row,) = [r for r in sess.explain(total, {x: FED}).rows if r.node == "hidden"]
        assert row.kernel.endswith("test_shadow.negated") and row.how == "native"
        with tf.Session() as other:
            other.run(tf.global_variables_initializer())
            assert other.run(total, {x: FED}) == alone, "it is this session's alone"
        undo()
        undo()
        assert sess.run(total, {x: FED}) == alone
        undo = sess.use_kernel(kernel, node="another")
        assert sess.run(total, {x: FED}) == alone
        with pytest.raises(TypeError, match=r"opdock\.plugin\.Kernel"):
            sess.use_kernel(negated)


def test_a_kernel_that_does_not_admit_a_node_is_told() -> None:
    x, total = network()
    kernel = api.Kernel(op="Tanh", fn=negated, when=lambda sig: "not today")
    doubles = api.Kernel(op="Tanh", fn=negated, dtypes={"T": {tf.float64}})
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        alone = sess.run(total, {x: FED})
        sess.use_kernel(kernel)
        sess.use_kernel(doubles)
        assert sess.run(total, {x: FED}) == pytest.approx(alone)
        (row,) = [r for r in sess.explain(total, {x: FED}).rows if r.node == "hidden"]
        assert any("not today" in r for r in row.rejections)
        assert any("float64" in r for r in row.rejections)


def test_a_kernel_that_declines_is_stood_in_for() -> None:
    def declines(ctx: api.KernelContext, x: np.ndarray) -> np.ndarray:
        raise tf.errors.UnimplementedError(None, None, "no more")

    x, total = network()
    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as sess:
        sess.run(tf.global_variables_initializer())
        alone = sess.run(total, {x: FED})
        sess.use_kernel(api.Kernel(op="Tanh", fn=declines))
        assert sess.run(total, {x: FED}) == pytest.approx(alone)


def test_a_kernel_serves_in_bodies_of_loops() -> None:
    def twice(ctx: api.KernelContext, x: np.ndarray) -> np.ndarray:
        return x * 2

    out = tf.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, tf.tanh(v)), (0, tf.ones([2])))[1]
    with tf.Session() as sess:
        sess.use_kernel(api.Kernel(op="Tanh", fn=twice))
        np.testing.assert_array_equal(sess.run(out), [8.0, 8.0])
