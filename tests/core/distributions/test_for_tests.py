"""The helpers of tests of distributions pass what is right and fail what is a little wrong."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf
from opdock.distributions import for_tests

D = tf.distributions


class Exponential:
    """The exponential as a bijector; `factor` is what is wrong with its determinant."""

    dtype = None

    def __init__(self, factor: float = 1.0, shift: float = 0.0) -> None:
        self._factor, self._shift = factor, shift

    def forward(self, x):
        return tf.exp(x)

    def inverse(self, y):
        return tf.log(y) + self._shift

    def forward_log_det_jacobian(self, x, event_ndims):
        return tf.cast(self._factor * x, tf.float32)

    def inverse_log_det_jacobian(self, y, event_ndims):
        return -tf.cast(self._factor * tf.log(y), tf.float32)


class Diagonal:
    """Two independent normal variables; `off` is how far the mean is said to be off."""

    def __init__(self, off: float = 0.0) -> None:
        self._each = D.Normal([0.0, 0.5], [1.0, 2.0])
        self._off = off

    def sample(self, n, seed=None):
        return self._each.sample(n, seed=seed)

    def log_prob(self, x):
        return tf.reduce_sum(self._each.log_prob(x), -1) + self._off

    def mean(self):
        return self._each.mean() + self._off

    def covariance(self):
        return tf.diag(self._each.variance())

    def variance(self):
        return self._each.variance()

    def stddev(self):
        return self._each.stddev()

    def batch_shape_tensor(self):
        return tf.constant([], tf.int32)

    def event_shape_tensor(self):
        return tf.constant([2], tf.int32)


class Discrete(tf.test.TestCase, for_tests.DiscreteScalarDistributionTestHelpers):
    __test__ = False  # not pytest's: its helpers are called

    def runTest(self) -> None:
        """Not run: the methods are."""


class Vectors(tf.test.TestCase, for_tests.VectorDistributionTestHelpers):
    __test__ = False  # not pytest's: its helpers are called

    def runTest(self) -> None:
        """Not run: the methods are."""


@pytest.fixture(autouse=True)
def session():
    with tf.Graph().as_default(), tf.Session() as found:
        yield found


def test_maps_are_held_against_their_inverses(session) -> None:
    for_tests.assert_scalar_congruency(Exponential(), -1.0, 1.0, sess=session)
    x = np.linspace(-3, 3, 7, dtype=np.float32)
    for_tests.assert_bijective_and_finite(Exponential(), x, np.exp(x), 0, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("wrong", [Exponential(factor=1.1), Exponential(shift=0.01)])
def test_maps_that_are_not_undone_fail(wrong, session) -> None:
    with pytest.raises(AssertionError):
        for_tests.assert_scalar_congruency(wrong, -1.0, 1.0, sess=session)


def test_what_is_not_finite_fails() -> None:
    with pytest.raises(AssertionError, match="not all finite"):
        for_tests.assert_bijective_and_finite(Exponential(), np.array([0.0, np.inf]), np.ones(2), 0)
    with pytest.raises(AssertionError):
        for_tests.assert_strictly_monotonic(np.array([0, 2, 1, 3]))
    for_tests.assert_strictly_monotonic(np.array([3, 1, 0]))


def test_counts_are_held_against_probabilities(session) -> None:
    helper = Discrete()
    right = D.Categorical(probs=[[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]])
    helper.run_test_sample_consistent_log_prob(session.run, right, rtol=0.05)
    wrong = D.Categorical(probs=[0.2, 0.3, 0.5])
    wrong.log_prob = D.Categorical(probs=[0.3, 0.3, 0.4]).log_prob
    with pytest.raises(AssertionError):
        helper.run_test_sample_consistent_log_prob(session.run, wrong, rtol=0.05)
    with pytest.raises(ValueError, match="at least 1"):
        helper.run_test_sample_consistent_log_prob(session.run, right, num_threshold=0)


def test_moments_are_held_against_samples(session) -> None:
    Discrete().run_test_sample_consistent_mean_variance(session.run, D.Normal(2.0, 3.0), rtol=0.05)
    Vectors().run_test_sample_consistent_mean_covariance(session.run, Diagonal(), rtol=0.05)
    with pytest.raises(AssertionError):
        Vectors().run_test_sample_consistent_mean_covariance(session.run, Diagonal(0.3), rtol=0.05)


def test_densities_are_held_against_a_balls_volume(session) -> None:
    Vectors().run_test_sample_consistent_log_prob(session.run, Diagonal(), rtol=0.05)
    with pytest.raises(AssertionError):
        Vectors().run_test_sample_consistent_log_prob(session.run, Diagonal(0.3), rtol=0.05)
