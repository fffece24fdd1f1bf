"""Generated loops of the gamma functions agree with SciPy's to the last bit of single precision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import special

import opdock as tf
from opdock_cpu import gammas
from tests.backends.cpu.looped import given

RNG = np.random.default_rng(3)
COUNT = 3000
EDGES = np.array(
    [0.0, -0.0, 1.0, 2.0, -1.0, -0.5, 1e-30, 1e30, np.inf, -np.inf, np.nan, 127.0, 129.0],
    np.float32,
)


def _arguments(low: float, high: float) -> tuple[Any, Any]:
    """Pairs across orders of magnitude, some close to each other, and all pairs of edges."""
    a, x = (10 ** RNG.uniform(low, high, (2, COUNT))).astype(np.float32)
    close = a[:1000] * RNG.uniform(0.8, 1.2, 1000).astype(np.float32)
    first, second = (e.reshape(-1) for e in np.meshgrid(EDGES, EDGES))
    return np.concatenate([a, a[:1000], first]), np.concatenate([x, close, second])


def _agree(found: Any, wanted: Any, ulps: float = 1.0) -> None:
    """Each value is what the wanted one is in single precision, or next to it."""
    with np.errstate(over="ignore"):
        wanted = np.asarray(wanted, np.float64).astype(np.float32)
    np.testing.assert_array_equal(np.isfinite(found), np.isfinite(wanted))
    there = np.isfinite(wanted)
    np.testing.assert_array_equal(found[~there], wanted[~there])
    gap = np.abs(found[there] - wanted[there]) / np.spacing(np.abs(wanted[there]))
    assert gap.max() <= ulps


Both = Callable[..., Any]


@pytest.mark.parametrize(
    ("op", "name", "loops"),
    [
        ("igamma", "gammainc", ["_series", "_fraction"]),
        ("igammac", "gammaincc", ["_series", "_fraction"]),
        ("zeta", "zeta", ["_zeta"]),
    ],
)
def test_functions(both: Both, op: str, name: str, loops: list[str]) -> None:
    a, x = _arguments(-2.0, 2.5)
    a = a + np.float32(1) if op == "zeta" else a

    def build() -> Any:
        return getattr(tf, op)(given(a), given(x))

    found, plain = both(build, *loops)
    with np.errstate(all="ignore"):
        wanted = getattr(special, name)(a.astype(np.float64), x.astype(np.float64))
    _agree(found[0], wanted)
    np.testing.assert_array_equal(np.isnan(found[0]), np.isnan(plain[0]))


def test_polygamma(both: Both) -> None:
    n = np.concatenate([RNG.integers(-1, 8, COUNT).astype(np.float32), EDGES])
    x = RNG.uniform(-3.0, 9.0, n.size).astype(np.float32)
    found, plain = both(
        lambda: tf.polygamma(given(n), given(x)), "_zeta", "_factorials", "_digammas"
    )
    _agree(found[0], plain[0])


def test_slopes(both: Both) -> None:
    a, x = (RNG.uniform(0.2, 12.0, COUNT).astype(np.float32) for _ in range(2))

    def build() -> Any:
        shape, place = given(a), given(x)
        total = tf.igamma(shape, place)
        return [
            tf.gradients(total, [shape])[0],
            tf.raw_ops.RandomGammaGrad(alpha=shape, sample=place),
        ]

    (slope, moved), plain = both(build, "_slope", "_front")
    # Core's kernel computes in single precision, and cancels.
    np.testing.assert_allclose(slope, plain[0], rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(moved, plain[1], rtol=1e-6)
    # Against a difference of SciPy's function.
    wide = a.astype(np.float64)
    step = 1e-5 * wide
    slopes = (special.gammainc(wide + step, x) - special.gammainc(wide - step, x)) / (2 * step)
    np.testing.assert_allclose(slope, slopes, rtol=1e-4, atol=1e-6)


def test_gradients_of_samples_in_the_tail(both: Both) -> None:
    a = np.full(COUNT, 2.0, np.float32)
    x = np.linspace(0.0, 60.0, COUNT, dtype=np.float32)

    def build() -> Any:
        return tf.raw_ops.RandomGammaGrad(alpha=given(a), sample=given(x))

    found, plain = both(build, "_slope", "_tail")
    np.testing.assert_allclose(found[0], plain[0], rtol=1e-6)


def test_gradients_of_samples_in_double_precision(both: Both) -> None:
    a = 10 ** RNG.uniform(-2, 2, COUNT)
    x = np.concatenate(
        [RNG.gamma(a[: COUNT // 2]), a[COUNT // 2 :] * RNG.uniform(0, 9, COUNT // 2)]
    )

    def build() -> Any:
        return tf.raw_ops.RandomGammaGrad(alpha=given(a), sample=given(x))

    found, plain = both(build, "_slope", "_tail")
    assert found[0].dtype == np.float64
    # Towards the tail sums cancel, by eight digits at its beginning.
    np.testing.assert_allclose(found[0], plain[0], rtol=1e-6)
    bulk = x < a + 2 * np.sqrt(a)
    np.testing.assert_allclose(found[0][bulk], plain[0][bulk], rtol=1e-12)


def test_log_gamma(both: Both) -> None:
    near = [1 + np.float32(2) ** -k for k in range(24)] + [
        2 - np.float32(2) ** -k for k in range(24)
    ]
    x = np.concatenate([10 ** RNG.uniform(-30, 38, COUNT), RNG.uniform(-9, 9, COUNT), near, EDGES])
    x = x.astype(np.float32)
    found, plain = both(lambda: tf.lgamma(given(x)), "_log_gammas")
    # SciPy computes in double precision, and rounds.
    _agree(found[0], plain[0])


def test_incomplete_beta(both: Both) -> None:
    a, b = _arguments(-2.0, 3.5)
    with np.errstate(all="ignore"):
        mean = a / (a + b)
        spread = np.sqrt(mean * (1 - mean) / (a + b + 1))
    x = np.clip(mean + RNG.normal(size=a.size) * spread, 0, 1)
    x = np.concatenate([x[: -len(EDGES)], EDGES]).astype(np.float32)
    found, _ = both(lambda: tf.betainc(given(a), given(b), given(x)), "_beta")
    with np.errstate(all="ignore"):
        wanted = special.betainc(*(v.astype(np.float64) for v in (a, b, x)))
    np.testing.assert_array_equal(np.isnan(found[0]), np.isnan(wanted))
    np.testing.assert_allclose(found[0], wanted, rtol=3e-7, atol=1e-37)


def test_arguments_that_do_not_fit_are_told() -> None:
    with tf.Session() as session, pytest.raises((ValueError, tf.errors.InvalidArgumentError)):
        a, b = (tf.placeholder(tf.float32) for _ in range(2))
        session.run(tf.igamma(a, b), {a: np.ones((300, 2)), b: np.ones((300, 3))})


def test_no_elements() -> None:
    nothing = np.empty(0)
    for found in (
        gammas.gamma_of(nothing, nothing, True, special.gammaincc),
        gammas.gamma_slope(nothing, nothing),
    ):
        assert found is not None
        assert found.shape == (0,)
