"""Helpers of TensorFlow's tests of distributions and bijectors, which others' tests use too.

What is sampled is held against what is computed, and a map against its inverse.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import opdock as tf
from opdock.distributions.uniform import Uniform

__all__ = [
    "DiscreteScalarDistributionTestHelpers", "VectorDistributionTestHelpers",
    "assert_bijective_and_finite", "assert_finite", "assert_scalar_congruency",
    "assert_strictly_decreasing", "assert_strictly_increasing", "assert_strictly_monotonic",
]  # fmt: skip

Run = Callable[[Any], Any]


# ------------------------------------------------------------------------------------ bijectors
def assert_finite(array: Any) -> None:
    """Fails unless all elements are finite."""
    if not np.isfinite(array).all():
        raise AssertionError(f"array was not all finite. {np.asarray(array)[:15]}")


def assert_strictly_increasing(array: Any) -> None:
    """Fails unless each element is larger than the one before."""
    np.testing.assert_array_less(0.0, np.diff(array))


def assert_strictly_decreasing(array: Any) -> None:
    """Fails unless each element is smaller than the one before."""
    np.testing.assert_array_less(np.diff(array), 0.0)


def assert_strictly_monotonic(array: Any) -> None:
    """Fails unless the elements rise, or fall, all the way."""
    rises = array[0] < array[-1]
    (assert_strictly_increasing if rises else assert_strictly_decreasing)(array)


def assert_scalar_congruency(
    bijector: Any, lower_x: float, upper_x: float, n: int = 10_000, rtol: float = 0.01,
    sess: Any = None,
) -> None:  # fmt: skip
    """Fails unless a map of the real line is monotonic, inverse to its inverse, and measures so.

    Args:
        bijector: the map.
        lower_x: where the interval begins on which it is tried.
        upper_x: where it ends.
        n: how many samples are drawn.
        rtol: how far the measure of the interval's image may be off.
        sess: the session; the default one otherwise.
    """
    sess = sess or tf.get_default_session()
    steps = np.linspace(lower_x, upper_x, num=10, dtype=np.float32)
    if bijector.dtype is not None:
        steps = steps.astype(bijector.dtype.as_numpy_dtype)
    lower_y, upper_y = sorted(sess.run([bijector.forward(lower_x), bijector.forward(upper_x)]))
    x = Uniform(low=lower_x, high=upper_x).sample(n, seed=0)
    y = Uniform(low=lower_y, high=upper_y).sample(n, seed=1)
    # The integral of |dx/dy| over the image is the interval's length.
    dx = tf.exp(bijector.inverse_log_det_jacobian(y, event_ndims=0))
    dy = tf.exp(bijector.forward_log_det_jacobian(bijector.inverse(y), event_ndims=0))
    found = sess.run(
        {
            "rising": bijector.forward(steps), "x": x, "y": y, "dx": dx, "dy": dy,
            "back": bijector.inverse(bijector.forward(x)),
            "forth": bijector.forward(bijector.inverse(y)),
            "length": (upper_y - lower_y) * tf.reduce_mean(dx),
        }
    )  # fmt: skip
    assert_strictly_monotonic(found["rising"])
    near = np.testing.assert_allclose
    near(found["back"], found["x"], atol=1e-5, rtol=1e-3)
    near(found["forth"], found["y"], atol=1e-5, rtol=1e-3)
    near(upper_x - lower_x, found["length"], atol=0, rtol=rtol)
    near(found["dx"], 1.0 / found["dy"], atol=1e-5, rtol=1e-3)


def assert_bijective_and_finite(
    bijector: Any, x: Any, y: Any, event_ndims: int, atol: float = 0, rtol: float = 1e-5,
    sess: Any = None,
) -> None:  # fmt: skip
    """Fails unless a map and its inverse undo each other, with determinants that cancel out.

    Args:
        bijector: the map.
        x: values that it takes, near the edges of what it takes.
        y: values that it gives.
        event_ndims: how many dimensions one value has.
        atol: how far results may be off.
        rtol: how far, relative to them.
        sess: the session; the default one otherwise.
    """
    sess = sess or tf.get_default_session()
    assert_finite(x)
    assert_finite(y)
    of_x, of_y = bijector.forward(x), bijector.inverse(y)
    found = sess.run(
        {
            "back": bijector.inverse(of_x), "forth": bijector.forward(of_y),
            "inverse_x": bijector.inverse_log_det_jacobian(of_x, event_ndims=event_ndims),
            "forward_x": bijector.forward_log_det_jacobian(x, event_ndims=event_ndims),
            "inverse_y": bijector.inverse_log_det_jacobian(y, event_ndims=event_ndims),
            "forward_y": bijector.forward_log_det_jacobian(of_y, event_ndims=event_ndims),
            "of_x": of_x, "of_y": of_y,
        }
    )  # fmt: skip
    for value in found.values():
        assert_finite(value)
    for one, other in (
        (found["back"], x), (found["forth"], y),
        (-found["inverse_x"], found["forward_x"]), (-found["inverse_y"], found["forward_y"]),
    ):  # fmt: skip
        np.testing.assert_allclose(one, other, atol=atol, rtol=rtol)


# ------------------------------------------------------------------------------------ samples
class DiscreteScalarDistributionTestHelpers:
    """Holds samples of a discrete distribution against its probabilities and moments."""

    assertAllClose: Any

    def run_test_sample_consistent_log_prob(
        self, sess_run_fn: Run, dist: Any, num_samples: int = 100_000, num_threshold: int = 1000,
        seed: int = 42, batch_size: int | None = None, rtol: float = 1e-2, atol: float = 0.0,
    ) -> None:  # fmt: skip
        """Fails unless values are drawn as often as their probability says.

        Args:
            sess_run_fn: runs tensors.
            dist: the distribution.
            num_samples: how many samples are drawn.
            num_threshold: values that are drawn less often are not compared.
            seed: the seed of the samples.
            batch_size: how many distributions it is, if that is not known from it.
            rtol: how far frequencies may be off, relative to probabilities.
            atol: how far they may be off.

        Raises:
            ValueError: `num_threshold` is below 1.
        """
        if num_threshold < 1:
            raise ValueError(f"num_threshold({num_threshold}) must be at least 1.")
        drawn = tf.reshape(dist.sample(num_samples, seed=seed), [num_samples, -1])
        batch = sess_run_fn([dist.batch_shape_tensor()])[0]
        for i in range(batch_size or math.prod(int(n) for n in batch)):
            counts, edges = self.histogram(drawn[:, i])
            each = tf.reshape(edges, [-1, *[1] * len(batch)])
            chances = tf.reshape(tf.exp(dist.log_prob(each)), [tf.size(edges), -1])[:, i]
            counted, expected = sess_run_fn([counts, chances])
            often = counted > num_threshold
            self.assertAllClose(
                expected[often], counted[often] / num_samples, rtol=rtol, atol=atol
            )  # fmt: skip

    def run_test_sample_consistent_mean_variance(
        self, sess_run_fn: Run, dist: Any, num_samples: int = 100_000, seed: int = 24,
        rtol: float = 1e-2, atol: float = 0.0,
    ) -> None:  # fmt: skip
        """Fails unless samples have the distribution's mean, variance and deviation.

        Args:
            sess_run_fn: runs tensors.
            dist: the distribution.
            num_samples: how many samples are drawn.
            seed: their seed.
            rtol: how far moments may be off, relative to what they should be.
            atol: how far they may be off.
        """
        drawn = tf.cast(dist.sample(num_samples, seed=seed), tf.float32)
        mean, variance = tf.nn.moments(drawn, [0])
        pairs = [
            (dist.mean(), mean), (dist.variance(), variance), (dist.stddev(), tf.sqrt(variance)),
        ]  # fmt: skip
        for expected, found in sess_run_fn(pairs):
            self.assertAllClose(expected, found, rtol=rtol, atol=atol)

    def histogram(
        self, x: Any, value_range: Any = None, nbins: Any = None, name: str | None = None
    ) -> tuple[Any, Any]:
        """How many of some values lie in each bin of a range, and where the bins begin.

        Args:
            x: the values, a vector.
            value_range: the range; from the least value to one above the largest by default.
            nbins: how many bins; one for each unit by default.
            name: a name for the operations.
        """
        with tf.name_scope(name, "histogram", [x]):
            x = tf.convert_to_tensor(x, name="x")
            if value_range is None:
                value_range = [tf.reduce_min(x), 1 + tf.reduce_max(x)]
            value_range = tf.convert_to_tensor(value_range, name="value_range")
            low, high = value_range[0], value_range[1]
            if nbins is None:
                nbins = tf.cast(high - low, tf.int32)
            step = (high - low) / tf.cast(nbins, value_range.dtype)
            edges = tf.range(low, high, tf.cast(step, x.dtype), dtype=x.dtype)
            return tf.histogram_fixed_width(x, value_range, nbins), edges


class VectorDistributionTestHelpers:
    """Holds samples of a distribution of vectors against its densities and moments."""

    assertAllClose: Any

    def run_test_sample_consistent_log_prob(
        self, sess_run_fn: Run, dist: Any, num_samples: int = 100_000, radius: float = 1.0,
        center: Any = 0.0, seed: int = 42, rtol: float = 1e-2, atol: float = 0.0,
    ) -> None:  # fmt: skip
        """Fails unless a ball has the volume that samples in it say, each by its density.

        Args:
            sess_run_fn: runs tensors.
            dist: the distribution, which has to reach all of the ball.
            num_samples: how many samples are drawn.
            radius: the ball's radius.
            center: where it is.
            seed: the seed of the samples.
            rtol: how far the volume may be off, relative to what it is.
            atol: how far it may be off.
        """
        drawn = tf.identity(dist.sample(num_samples, seed=seed))  # maps forget it
        inside = tf.cast(tf.norm(drawn - center, axis=-1) <= radius, drawn.dtype)
        volume = tf.reduce_mean(tf.exp(-dist.log_prob(drawn)) * inside, axis=0)
        start = tf.global_variables_initializer()
        sess_run_fn(start)
        batch, event, found = sess_run_fn(
            [dist.batch_shape_tensor(), dist.event_shape_tensor(), volume]
        )
        half = event[0] / 2
        actual = math.exp(
            half * math.log(math.pi) - math.lgamma(1 + half) + event[0] * math.log(radius)
        )
        self.assertAllClose(np.full(batch, actual), found, rtol=rtol, atol=atol)

    def run_test_sample_consistent_mean_covariance(
        self, sess_run_fn: Run, dist: Any, num_samples: int = 100_000, seed: int = 24,
        rtol: float = 1e-2, atol: float = 0.1, cov_rtol: float | None = None,
        cov_atol: float | None = None,
    ) -> None:  # fmt: skip
        """Fails unless samples have the distribution's mean, covariance, variance and deviation.

        Args:
            sess_run_fn: runs tensors.
            dist: the distribution.
            num_samples: how many samples are drawn.
            seed: their seed.
            rtol: how far moments may be off, relative to what they should be.
            atol: how far they may be off.
            cov_rtol: the same of covariances; `rtol` by default.
            cov_atol: the same of covariances; `atol` by default.
        """
        drawn = dist.sample(num_samples, seed=seed)
        mean = tf.reduce_mean(drawn, axis=0)
        off = drawn - mean
        covariance = tf.reduce_mean(off[..., :, None] * off[..., None, :], axis=0)
        variance = tf.matrix_diag_part(covariance)
        pairs = [
            (dist.mean(), mean), (dist.covariance(), covariance),
            (dist.variance(), variance), (dist.stddev(), tf.sqrt(variance)),
        ]  # fmt: skip
        for i, (expected, found) in enumerate(sess_run_fn(pairs)):
            bounds = (cov_rtol or rtol, cov_atol or atol) if i == 1 else (rtol, atol)
            self.assertAllClose(expected, found, rtol=bounds[0], atol=bounds[1])
