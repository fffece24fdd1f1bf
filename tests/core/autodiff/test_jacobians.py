"""Jacobians as tensors, and the checker that takes a function."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.autodiff.checker import compute_gradient_of, max_error
from opdock.autodiff.jacobians import batch_jacobian, hessian_vector_product, jacobian
from opdock.eager.modes import eager_mode


@pytest.fixture(autouse=True)
def _graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def run(fetch: Any, feed: dict[Any, Any] | None = None) -> Any:
    with tf.Session() as session:
        return session.run(fetch, feed)


def test_derivatives_of_each_number() -> None:
    x, w = tf.placeholder(tf.float64, [2, 3]), tf.constant(np.arange(12.0).reshape(3, 4))
    y = tf.matmul(x, w) ** 2
    found = jacobian(y, {"x": x, "w": w, "far": tf.constant(1.0)})
    assert found["far"] is None
    assert found["x"].shape.as_list() == [2, 4, 2, 3] and found["w"].shape == (2, 4, 3, 4)
    at = np.random.default_rng(3).normal(size=(2, 3))
    by_x, by_w, own = run([found["x"], found["w"], batch_jacobian(y, x)], {x: at})
    scale = 2 * at @ run(w)
    want = np.einsum("bj,ij->bji", scale, run(w))
    np.testing.assert_allclose(own, want)
    for b in range(2):
        np.testing.assert_allclose(by_x[b, :, b], want[b])
        assert not by_x[b, :, 1 - b].any()
        np.testing.assert_allclose(
            by_w[b], np.einsum("j,i,jk->jik", scale[b], at[b], np.eye(4)), atol=1e-12
        )


def test_batches_that_are_none() -> None:
    x = tf.ones([2, 3])
    assert batch_jacobian(tf.ones([2, 2]), x) is None
    with pytest.raises(ValueError, match="Need first dimension of output shape"):
        batch_jacobian(tf.ones([3, 2]), x)


def test_the_checker_of_functions() -> None:
    with tf.Session():
        found = compute_gradient_of(
            lambda a, b: a * b + tf.sin(a),
            [np.array([1.0, 2.0]), tf.constant([3.0, 4.0], tf.float64)],
        )
        assert [j.shape for j in found[0]] == [(2, 2), (2, 2)] and max_error(*found) < 1e-6
        wrong = tf.custom_gradient(lambda a: (a * a, lambda grad: grad * a))
        assert max_error(*compute_gradient_of(wrong, [np.array([2.0])])) == pytest.approx(2.0, 1e-3)
        with pytest.raises(ValueError, match="`x` must be a list of Tensors"):
            compute_gradient_of(tf.sin, np.array([1.0]))
    with pytest.raises(ValueError, match="needs a default session"):
        compute_gradient_of(tf.sin, [1.0])


def test_the_checker_of_functions_that_run_at_once() -> None:
    with eager_mode():
        found = compute_gradient_of(
            lambda a, b: tf.gather(a * b + tf.sin(a), [1, 0]),
            [np.array([1.0, 2.0]), tf.constant([3.0, 4.0], tf.float64)],
        )
        assert [j.shape for j in found[0]] == [(2, 2), (2, 2)] and max_error(*found) < 1e-6
        turned = compute_gradient_of(lambda a: a * (2.0 + 3.0j), [np.array([1.0 - 1.0j])])
        assert turned[0][0].shape == (2, 2) and max_error(*turned) < 1e-6
        wrong = tf.custom_gradient(lambda a: (a * a, lambda grad: grad * a))
        assert max_error(*compute_gradient_of(wrong, [np.array([2.0])])) == pytest.approx(2.0, 1e-3)
        none = compute_gradient_of(lambda a: tf.constant([1.0]), [np.array([2.0, 3.0])])
        assert none[0][0].tolist() == [[0.0], [0.0]]


def test_a_hessian_times_a_vector() -> None:
    x, y = tf.constant([1.0, 2.0]), tf.constant([3.0, 4.0])
    parts = [tf.constant([1.0, -1.0]), tf.constant([0.5, 2.0])]
    products = hessian_vector_product(tf.reduce_sum(x * x * y), [x, y], parts)
    with tf.Session() as session:
        found = session.run(products)
    # The Hessian of x^2 y is [[2y, 2x], [2x, 0]].
    np.testing.assert_allclose(found[0], [6 * 1 + 2 * 0.5, 8 * -1 + 4 * 2])
    np.testing.assert_allclose(found[1], [2 * 1, 4 * -1])
    with pytest.raises(ValueError, match="xs and v must have the same length"):
        hessian_vector_product(x, [x, y], parts[:1])
