"""Random features of a kernel, and the hinge loss of several classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opdock as tf

methods: Any = tf.contrib.kernel_methods


@pytest.fixture(autouse=True)
def graph() -> Any:
    with tf.Graph().as_default() as made:
        yield made


def test_products_of_features_are_about_the_kernel() -> None:
    x = np.random.RandomState(0).uniform(size=[5, 3]).astype(np.float32)
    mapper = methods.RandomFourierFeatureMapper(3, 4000, stddev=0.7, seed=3, name="m")
    first, again = (mapper.map(tf.constant(x)) for _ in range(2))
    with tf.Session() as s:
        made, same = s.run([first, again])
    np.testing.assert_array_equal(made, same)
    squares = ((x[:, None] - x[None]) ** 2).sum(-1)
    np.testing.assert_allclose(made @ made.T, np.exp(-squares / (2 * 0.7**2)), atol=0.06)
    assert [mapper.name, mapper.input_dim, mapper.output_dim] == ["m", 3, 4000]


@pytest.mark.parametrize("shape", [[2, 4], [3]])
def test_features_have_to_fit(shape: list[int]) -> None:
    with pytest.raises(methods.InvalidShapeError):
        methods.RandomFourierFeatureMapper(3, 10).map(tf.zeros(shape))


def test_hinge_loss() -> None:
    logits = tf.constant([[1.2, -1.4, -1.0], [1.4, 1.8, 4.0], [0.5, 1.8, -1.0]])
    labels = tf.constant([0, 1, 2], tf.int64)
    plain = methods.sparse_multiclass_hinge_loss(labels, logits)
    weighed = methods.sparse_multiclass_hinge_loss(labels[:, None], logits, [1.0, 0.0, 2.0])
    with tf.Session() as s:
        np.testing.assert_allclose(s.run(plain), (0 + 3.2 + 3.8) / 3, rtol=1e-6)
        np.testing.assert_allclose(s.run(weighed), 7.6 / 2, rtol=1e-6)
        with pytest.raises(tf.errors.InvalidArgumentError):
            s.run(methods.sparse_multiclass_hinge_loss(labels + 1, logits))
    assert plain in tf.losses.get_losses()


@pytest.mark.parametrize(
    ("labels", "logits", "weights", "match"),
    [
        (tf.int32, [3, 2, 1], 1.0, "logits should have rank 2"),
        (tf.float32, [3, 2], 1.0, "Invalid dtype for labels"),
        (tf.int32, [3, 2], np.ones([1, 1, 1]), "non-scalar weights should have rank 1"),
        (tf.int32, [3, 2], [1.0, 2.0], "not compatible|are incompatible"),
    ],
)
def test_what_the_loss_refuses(labels: Any, logits: Any, weights: Any, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        methods.sparse_multiclass_hinge_loss(tf.zeros([3], labels), tf.zeros(logits), weights)
