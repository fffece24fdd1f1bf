"""Portable special functions beyond what the samples cover: accuracy over their whole domain."""

from __future__ import annotations

import array_api_compat.numpy as xp
import numpy as np
import pytest
from scipy import special as scipy

from opdock.kernels.portable import special

RNG = np.random.default_rng(7)
WIDE = np.concatenate(
    [RNG.normal(size=500) * 5, RNG.normal(size=50) * 1e-6, [0.0, 1.0, -1.0, 26.0]]
)
POSITIVE = np.concatenate([RNG.uniform(1e-3, 40, 500), [0.5, 1e5, 1e-8]])
UNIT = np.concatenate([RNG.uniform(1e-12, 1, 500), [1e-100, 1e-300, 1e-5, 0.5]])


@pytest.mark.parametrize(
    ("name", "reference", "x"),
    [
        ("erf", scipy.erf, WIDE),
        ("erfc", scipy.erfc, WIDE),
        ("erfinv", scipy.erfinv, 2 * UNIT - 1),
        ("lgamma", scipy.gammaln, WIDE[np.abs(WIDE) > 1e-3]),
        ("digamma", scipy.psi, POSITIVE),
        ("i0e", scipy.i0e, WIDE * 10),
        ("i1e", scipy.i1e, WIDE * 10),
    ],
)
def test_of_one_argument(name, reference, x):
    function = getattr(special, name)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(function(xp, x), reference(x), rtol=2e-12, atol=1e-13)
        narrow = function(xp, x.astype(np.float32))
        assert narrow.dtype == np.float32
        np.testing.assert_allclose(narrow, reference(x.astype(np.float32)), rtol=2e-3, atol=2e-5)


def test_single_precision_takes_the_terms_that_it_can_tell():
    for name in ("erf", "erfcx", "i0e_near", "i0e_far", "i1e_near", "i1e_far"):
        series, t = np.array(special.SERIES[name]), np.linspace(-1, 1, 101)
        few = special.terms_told(special.SERIES[name], 2.0**-23)
        assert len(few) < len(series) - 3
        whole = np.polynomial.chebyshev.chebval(t, series)
        part = np.polynomial.chebyshev.chebval(t, few)
        assert np.abs(whole - part).max() < 2.0**-23 / 16 * abs(series[0])


@pytest.mark.parametrize(
    ("name", "reference", "ulps"),
    [("erf", scipy.erf, 3), ("erfc", scipy.erfc, 6), ("erfinv", scipy.erfinv, 4)],
)
def test_single_precision_is_as_good_as_its_last_bits(name, reference, ulps):
    x = (2 * UNIT - 1).astype(np.float32)
    x = x[np.abs(x) < 1]
    with np.errstate(all="ignore"):
        found = getattr(special, name)(xp, x)
    expected = reference(x.astype(np.float64))
    off = np.abs(found - expected) / np.spacing(np.abs(expected).astype(np.float32))
    assert off.max() < ulps


@pytest.mark.parametrize("name", ["lgamma", "digamma"])
def test_single_precision_starts_its_series_earlier(name):
    x = np.concatenate([RNG.uniform(0.01, 5, 2000), RNG.uniform(-9.9, 90, 2000)])
    x = x.astype(np.float32)
    with np.errstate(all="ignore"):
        found, whole = (getattr(special, name)(xp, x.astype(t)) for t in (np.float32, np.float64))
    sure = np.abs(x - np.round(x)) > 1e-2  # next to a pole the last bit of the argument tells
    np.testing.assert_allclose(found[sure], whole[sure], rtol=2e-5, atol=3e-5)


def test_normal_quantiles_reach_the_far_tail():
    np.testing.assert_allclose(special.ndtri(xp, UNIT), scipy.ndtri(UNIT), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "reference"), [("igamma", scipy.gammainc), ("igammac", scipy.gammaincc)]
)
def test_incomplete_gamma(name, reference):
    a, x = RNG.uniform(0.1, 60, 500), RNG.uniform(0, 90, 500)
    got = getattr(special, name)(xp, a, x)
    np.testing.assert_allclose(got, reference(a, x), rtol=1e-11, atol=1e-14)


def test_the_derivative_of_the_incomplete_gamma_by_its_parameter():
    a, x = RNG.uniform(0.5, 20, 200), RNG.uniform(0.1, 30, 200)
    h = 1e-4
    differences = (
        8 * (scipy.gammainc(a + h, x) - scipy.gammainc(a - h, x))
        - (scipy.gammainc(a + 2 * h, x) - scipy.gammainc(a - 2 * h, x))
    ) / (12 * h)
    np.testing.assert_allclose(special.igamma_grad_a(xp, a, x), differences, rtol=1e-7, atol=1e-10)


def test_incomplete_beta():
    a, b, x = RNG.uniform(0.1, 40, 500), RNG.uniform(0.1, 40, 500), RNG.uniform(0, 1, 500)
    np.testing.assert_allclose(
        special.betainc(xp, a, b, x), scipy.betainc(a, b, x), rtol=1e-10, atol=1e-14
    )


def test_zeta_and_polygamma():
    s, q = RNG.uniform(1.01, 30, 500), RNG.uniform(0.05, 30, 500)
    np.testing.assert_allclose(special.zeta(xp, s, q), scipy.zeta(s, q), rtol=1e-12)
    n = RNG.integers(0, 9, 500).astype(np.float64)
    want = np.array([scipy.polygamma(int(k), x) for k, x in zip(n, q, strict=True)])
    np.testing.assert_allclose(special.polygamma(xp, n, q), want, rtol=1e-11)
    # Whole exponents reach negative arguments: the sum skips nothing on its way up.
    np.testing.assert_allclose(
        special.zeta(xp, np.array([3.0, 2.0]), np.array([-0.5, -1.5])),
        [-8 + scipy.zeta(3, 0.5), 1 / 2.25 + 4 + scipy.zeta(2, 0.5)],
    )


@pytest.mark.parametrize(
    ("name", "arguments", "want"),
    [
        ("erf", ([np.inf, -np.inf, np.nan],), [1, -1, np.nan]),
        ("erfinv", ([1.0, -1.0, 1.5],), [np.inf, -np.inf, np.nan]),
        ("ndtri", ([0.0, 1.0, -1.0],), [-np.inf, np.inf, np.nan]),
        ("lgamma", ([0.0, -3.0, np.inf, np.nan],), [np.inf, np.inf, np.inf, np.nan]),
        ("digamma", ([0.0, -3.0, np.inf],), [np.nan, np.nan, np.inf]),
        ("igamma", ([1.0, 1.0, -1.0], [0.0, np.inf, 1.0]), [0, 1, np.nan]),
        ("igammac", ([1.0, 1.0, 1.0], [0.0, np.inf, -1.0]), [1, 0, np.nan]),
        ("betainc", ([1.0, 1.0, -1.0], [1.0, 1.0, 1.0], [0.0, 1.0, 0.5]), [0, 1, np.nan]),
        ("zeta", ([1.0, 0.5, 2.0], [1.0, 1.0, 0.0]), [np.inf, np.nan, np.inf]),
        ("polygamma", ([-1.0, 0.5, 0.0], [1.0, 1.0, 1.0]), [np.nan, np.nan, -np.euler_gamma]),
    ],
)
def test_ends(name, arguments, want):
    with np.errstate(all="ignore"):
        got = getattr(special, name)(xp, *[np.array(a) for a in arguments])
    np.testing.assert_allclose(got, want)
