"""Special functions: as exact as their type, for any number of elements, at the edges too."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

import opdock as tf

pytestmark = pytest.mark.usefixtures("opencl")

_RNG = np.random.default_rng(0)
_N = 1003
"""No multiple of what a work item computes."""


def _spread(low: float, high: float) -> np.ndarray:
    return np.exp(_RNG.uniform(np.log(low), np.log(high), _N))


_TWO = _spread(0.05, 200), _spread(0.05, 200)
CASES = {
    "Erfinv": (("x",), (np.concatenate([_RNG.uniform(-1, 1, _N), 1 - _spread(1e-6, 0.1)]),)),
    "Ndtri": (("x",), (np.concatenate([_RNG.uniform(0, 1, _N), _spread(1e-30, 0.1)]),)),
    "Digamma": (("x",), (np.concatenate([_RNG.uniform(-9.9, 9.9, _N), _spread(9, 1e6)]),)),
    "BesselI0e": (("x",), (_RNG.normal(0, 10, _N),)),
    "BesselI1e": (("x",), (_RNG.normal(0, 10, _N),)),
    "Igamma": (("a", "x"), _TWO),
    "Igammac": (("a", "x"), _TWO),
    "Zeta": (("x", "q"), (1 + _spread(1e-2, 30), _spread(1e-2, 1e3))),
    "Betainc": (("a", "b", "x"), (*_TWO, _RNG.uniform(0, 1, _N))),
}
EXACT = {
    "Erfinv": special.erfinv, "Ndtri": special.ndtri, "Digamma": special.psi,
    "BesselI0e": special.i0e, "BesselI1e": special.i1e, "Igamma": special.gammainc,
    "Igammac": special.gammaincc, "Zeta": special.zeta, "Betainc": special.betainc,
}  # fmt: skip


def computed(op: str, names: tuple[str, ...], arrays: tuple[np.ndarray, ...]) -> np.ndarray:
    with tf.Graph().as_default(), tf.device("/device:OPENCL:0"):
        fed = [tf.placeholder(a.dtype, a.shape) for a in arrays]  # constants are folded elsewhere
        out = getattr(tf.raw_ops, op)(**dict(zip(names, fed, strict=True)))
        with tf.Session(config=tf.ConfigProto(allow_soft_placement=False)) as session:
            return session.run(out, dict(zip(fed, arrays, strict=True)))


@pytest.mark.parametrize("op", CASES)
def test_single_precision_is_rounded_once(op: str, opencl) -> None:
    names, given = CASES[op]
    arrays = tuple(a.astype(np.float32) for a in given)
    wanted = EXACT[op](*(a.astype(np.float64) for a in arrays))
    size, info = np.abs(wanted), np.finfo(np.float32)
    known = (size > info.tiny) & (size < info.max)
    tolerance = 1e-7 if opencl.is_cpu else 2e-6
    found = computed(op, names, arrays)
    np.testing.assert_allclose(found[known], wanted[known], rtol=tolerance)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_zeta_far_below_zero(dtype: type) -> None:
    """Where a term for each whole number on the way would take for ever."""
    q = np.array([-0.5, -3.25, -16.75, -1e5 - 0.5]).astype(dtype)
    s = np.array([2, 3, 4, 2]).astype(dtype)
    found = computed("Zeta", ("x", "q"), (s, q))
    terms = [
        np.sum((float(b) + np.arange(300_000, dtype=np.float64)) ** -float(a))
        for a, b in zip(s, q, strict=True)
    ]
    # What lies beyond the last term, by the integral.
    rest = (q.astype(np.float64) + 300_000 - 0.5) ** (1 - s.astype(np.float64))
    np.testing.assert_allclose(found, terms + rest / (s - 1), rtol=1e-5)


def test_edges() -> None:
    x = np.array([1, -1, 0, -0.0, 1.5, np.nan], np.float32)
    found = computed("Erfinv", ("x",), (x,))
    np.testing.assert_array_equal(found, [np.inf, -np.inf, 0, 0, np.nan, np.nan])
    assert np.signbit(found[3])
    s = np.array([1, 0.5, 2, 2, 2.5, np.inf], np.float32)
    q = np.array([1, 1, 0, -3, -0.5, 2], np.float32)
    found = computed("Zeta", ("x", "q"), (s, q))
    np.testing.assert_array_equal(found, [np.inf, np.nan, np.inf, np.inf, np.nan, 0])
