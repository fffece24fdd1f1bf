"""`tf.distributions`: shapes, probabilities against SciPy, samples, gradients, checks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

import opdock as tf
from opdock.distributions.distribution import Univariate

ds = tf.distributions


@pytest.fixture(autouse=True)
def _graph() -> Any:
    with tf.Graph().as_default():
        yield


def run(fetches: Any, feed: Any = None) -> Any:
    with tf.Session() as session:
        return session.run(fetches, feed)


X = np.array([0.1, 0.4, 0.9])
UNIVARIATE = {
    "Normal": (lambda: ds.Normal(*np.array([0.5, 2.0])), stats.norm(0.5, 2.0)),
    "Laplace": (lambda: ds.Laplace(*np.array([0.5, 2.0])), stats.laplace(0.5, 2.0)),
    "StudentT": (lambda: ds.StudentT(*np.array([3.0, 0.5, 2.0])), stats.t(3.0, 0.5, 2.0)),
    "Uniform": (lambda: ds.Uniform(*np.array([-1.0, 2.0])), stats.uniform(-1.0, 3.0)),
    "Gamma": (lambda: ds.Gamma(*np.array([3.0, 2.0])), stats.gamma(3.0, scale=0.5)),
    "Exponential": (lambda: ds.Exponential(np.float64(2.0)), stats.expon(scale=0.5)),
    "Beta": (lambda: ds.Beta(*np.array([2.0, 3.0])), stats.beta(2.0, 3.0)),
}


@pytest.mark.parametrize("name", UNIVARIATE)
def test_densities_and_statistics_are_scipys(name: str) -> None:
    make, known = UNIVARIATE[name]
    d = make()
    found = run([d.prob(X), d.log_prob(X), d.cdf(X), d.log_survival_function(X),
                 d.entropy(), d.mean(), d.stddev(), d.variance()])  # fmt: skip
    wanted = [known.pdf(X), known.logpdf(X), known.cdf(X), known.logsf(X),
              known.entropy(), known.mean(), known.std(), known.var()]  # fmt: skip
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9)


@pytest.mark.parametrize("name", UNIVARIATE)
def test_samples_have_the_shape_and_the_distribution(name: str) -> None:
    make, known = UNIVARIATE[name]
    d = make()
    assert isinstance(d, Univariate)
    drawn = d.sample([4, 500], seed=11)
    assert drawn.shape.as_list() == [4, 500]
    assert stats.kstest(run(drawn).ravel(), known.cdf).pvalue > 1e-4


def test_parameters_broadcast_to_the_batch() -> None:
    d = ds.Normal(tf.zeros([2, 1]), tf.ones([3]))
    assert d.batch_shape.as_list() == [2, 3]
    assert d.event_shape.as_list() == []
    assert d.sample(5).shape.as_list() == [5, 2, 3]
    assert str(d) == (
        'tfp.distributions.Normal("Normal/", batch_shape=(2, 3), event_shape=(), dtype=float32)'
    )
    unknown = tf.placeholder(tf.float32)
    open_batch = ds.Normal(unknown, 1.0)
    assert run(open_batch.batch_shape_tensor(), {unknown: np.zeros([4, 2])}).tolist() == [4, 2]
    assert not run(open_batch.is_scalar_batch(), {unknown: np.zeros([4, 2])})
    assert ds.Dirichlet([1.0, 2.0, 3.0]).sample([2]).shape.as_list() == [2, 3]


def test_copies_differ_in_what_is_given() -> None:
    d = ds.Bernoulli(probs=[0.25, 0.5]).copy(dtype=tf.int64, name="other")
    assert d.dtype is tf.int64
    assert d.name == "other/"
    assert d.parameters["probs"] == [0.25, 0.5]
    assert {k: v.as_list() for k, v in ds.Normal.param_static_shapes([2]).items()} == {
        "loc": [2], "scale": [2],
    }  # fmt: skip


def test_choices_and_counts() -> None:
    probs = np.array([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]])
    choice = ds.Categorical(probs=probs)
    np.testing.assert_allclose(run(choice.prob([2, 0])), [0.5, 0.6])
    np.testing.assert_allclose(run(choice.cdf([2, 0])), [0.5, 0.0])
    assert run(choice.mode()).tolist() == [2, 0]
    assert run(choice.sample(100, seed=3)).max() <= 2

    counts = ds.Multinomial(np.array([4.0, 3.0]), probs=probs)
    given = np.array([[1.0, 1.0, 2.0], [2.0, 0.0, 1.0]])
    wanted = [stats.multinomial(4, probs[0]).pmf(given[0]),
              stats.multinomial(3, probs[1]).pmf(given[1])]  # fmt: skip
    np.testing.assert_allclose(run(counts.prob(given)), wanted)
    assert run(counts.sample(7, seed=3)).sum(-1).tolist() == [[4.0, 3.0]] * 7
    unknown = ds.DirichletMultinomial(np.float64(4.0), np.array([1.0, 2.0, 3.0]))
    pmf = stats.dirichlet_multinomial([1, 2, 3], 4).pmf([1, 1, 2])
    np.testing.assert_allclose(run(unknown.prob(given[0])), pmf)
    np.testing.assert_allclose(
        run([unknown.covariance(), ds.Dirichlet(np.array([1.0, 2.0, 3.0])).covariance()]),
        [stats.dirichlet_multinomial([1, 2, 3], 4).cov(), stats.dirichlet([1, 2, 3]).cov()],
    )


def test_gradients_flow_through_samples() -> None:
    concentration = tf.constant(2.0)
    drawn = ds.Gamma(concentration, 1.0).sample(2000, seed=5)
    # The mean of the samples is the concentration.
    np.testing.assert_allclose(run(tf.gradients(drawn, concentration)[0]) / 2000, 1.0, atol=0.1)
    p = tf.constant([0.0, 0.5, 1.0])
    assert np.isfinite(run(tf.gradients(ds.Normal(0.0, 1.0).quantile(p), p)[0])).all()


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (lambda: ds.Normal(0.0, 1.0), lambda: ds.Normal(1.0, 2.0)),
        (lambda: ds.Gamma(2.0, 1.0), lambda: ds.Gamma(3.0, 2.0)),
        (lambda: ds.Beta(2.0, 1.5), lambda: ds.Beta(3.0, 2.0)),
        (lambda: ds.Bernoulli(probs=0.3), lambda: ds.Bernoulli(probs=0.6)),
    ],
)
def test_divergences_are_means_of_differences(a: Any, b: Any) -> None:
    a, b = a(), b()
    drawn = a.sample(20000, seed=2)
    mean = tf.reduce_mean(a.log_prob(drawn) - b.log_prob(drawn))
    exact, estimate, zero = run([ds.kl_divergence(a, b), mean, a.kl_divergence(a)])
    np.testing.assert_allclose(exact, estimate, atol=0.02)  # three standard errors
    assert abs(zero) < 1e-6


def test_the_nearest_divergence_is_taken() -> None:
    class Mine(ds.Normal):
        pass

    class Yours(Mine):
        pass

    @ds.RegisterKL(Mine, ds.Normal)
    def _divergence(a: Any, b: Any, name: Any = None) -> Any:
        return tf.constant(42.0)

    assert run(ds.kl_divergence(Yours(0.0, 1.0), ds.Normal(0.0, 1.0))) == 42.0
    with pytest.raises(ValueError, match="has already been registered"):
        ds.RegisterKL(Mine, ds.Normal)(_divergence)
    with pytest.raises(NotImplementedError, match="No KL"):
        ds.kl_divergence(ds.Normal(0.0, 1.0), ds.Uniform())


def test_a_distribution_of_a_library_is_asked_for_its_own_divergence() -> None:
    class Theirs:
        name = "theirs"

        def kl_divergence(self, other: Any, name: Any = "kl_divergence") -> Any:
            return tf.constant(7.0 if isinstance(other, Theirs) else float("nan"), name=name)

    same = ds.kl_divergence(Theirs(), Theirs(), allow_nan_stats=False)
    assert run(same) == 7.0
    with pytest.raises(tf.errors.InvalidArgumentError, match="theirs and Normal.* returned NaN"):
        run(ds.kl_divergence(Theirs(), ds.Normal(0.0, 1.0), allow_nan_stats=False))
    with pytest.raises(NotImplementedError, match="No KL"):
        ds.kl_divergence(ds.Normal(0.0, 1.0), Theirs())


def test_checks() -> None:
    with pytest.raises(ValueError, match="Must pass probs or logits, but not both"):
        ds.Bernoulli(logits=0.0, probs=0.5)
    with pytest.raises(NotImplementedError, match="quantile is not implemented: Gamma"):
        ds.Gamma(1.0, 1.0).quantile(0.5)
    with pytest.raises(ValueError, match="type=<dtype: 'float64'>, must be of the same type"):
        ds.Normal(tf.constant(0.0), tf.constant(1.0, tf.float64))
    scale = tf.placeholder(tf.float32, [])
    for fetch in (
        ds.Normal(0.0, scale, validate_args=True).mean(),
        ds.Gamma(scale, 1.0, allow_nan_stats=False).mode(),
        ds.Bernoulli(probs=1.0 - scale, validate_args=True).mean(),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError):
            run(fetch, {scale: -1.0})
    assert np.isnan(run(ds.Gamma(0.5, 1.0).mode()))
