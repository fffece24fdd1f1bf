"""Elementary functions of devices that are CPUs: their last bit, their edges, vectors of them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

import opdock as tf

ONE = {
    "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh,
    "atan": np.arctan, "atanh": np.arctanh, "cos": np.cos, "cosh": np.cosh, "erf": special.erf,
    "erfc": special.erfc, "expm1": np.expm1, "lgamma": special.gammaln, "log": np.log,
    "log1p": np.log1p, "sin": np.sin, "sinh": np.sinh, "tan": np.tan,
}  # fmt: skip
EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -3.0, 2.5, 10.2, np.inf, -np.inf, np.nan, 1e-45, 1e-40,
         3e38, -2e9 - 1, 88.9, -104.0]  # fmt: skip
UNITS = 1
"""Units in the last place: a value in double precision, rounded once."""


@pytest.fixture(autouse=True)
def _a_processor(opencl):
    if not opencl.is_cpu:
        pytest.skip("the device is no CPU: its driver's own functions serve")


def several(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    any_bits = rng.integers(0, 1 << 32, 20_000, dtype=np.uint64).astype(np.uint32).view(np.float32)
    spread = [rng.normal(0, s, 5_000) for s in (1e-6, 0.3, 3, 30)]
    return np.concatenate([any_bits, *spread, EDGES]).astype(np.float32)


def computed(name: str, *arrays: np.ndarray) -> np.ndarray:
    with tf.Graph().as_default(), tf.device("/device:OPENCL:0"):
        held = [tf.placeholder(a.dtype, a.shape) for a in arrays]
        out = getattr(tf.math, name)(*held)
        with tf.Session(config=tf.ConfigProto(allow_soft_placement=False)) as session:
            return session.run(out, dict(zip(held, arrays, strict=True)))


def check(found: np.ndarray, wanted: np.ndarray) -> None:
    """Within the units of the rounded values; infinities, NaNs and zeros' signs exactly."""
    known = np.isfinite(wanted)
    np.testing.assert_array_equal(found[~known], wanted[~known])
    zero = wanted == 0
    np.testing.assert_array_equal(np.signbit(found[zero]), np.signbit(wanted[zero]))
    normal = np.maximum(np.abs(wanted[known]), np.finfo(np.float32).tiny)
    error = np.abs(found[known].astype(np.float64) - wanted[known]) / np.spacing(normal)
    assert error.max() <= UNITS


@pytest.mark.parametrize("name", ONE)
@np.errstate(all="ignore")
def test_functions(name):
    x = several(1)
    if name == "lgamma":
        # SciPy takes the limit of the poles at minus infinity, and knows few digits where it is 0.
        x = x[(x > -20) | (x != x)]
    check(computed(name, x), ONE[name](x.astype(np.float64)).astype(np.float32))


@np.errstate(all="ignore")
def test_angles_near_whole_quarters_of_a_turn():
    """NumPy's are exact in double precision, so all digits that a float has are known."""
    near = (np.arange(1, 4000) * np.pi / 2).astype(np.float32)
    x = np.concatenate([near, -near, np.float32(2.0) ** np.arange(24, 128, dtype=np.float32)])
    for name in ("sin", "cos", "tan"):
        check(computed(name, x), ONE[name](x.astype(np.float64)).astype(np.float32))


@np.errstate(all="ignore")
def test_remainders_are_exact():
    x, y = several(2), np.random.default_rng(3).permutation(several(4))
    x = np.concatenate([np.repeat(EDGES, len(EDGES)).astype(np.float32), x])
    y = np.concatenate([np.tile(EDGES, len(EDGES)).astype(np.float32), y])
    with tf.Graph().as_default(), tf.device("/device:OPENCL:0"), tf.Session() as session:
        found = session.run(tf.truncatemod(x, y))
    wanted = np.fmod(x, y)
    np.testing.assert_array_equal(found, wanted)
    known = wanted == wanted
    np.testing.assert_array_equal(np.signbit(found[known]), np.signbit(wanted[known]))


@pytest.mark.parametrize(("name", "exact"), [("atan2", np.arctan2), ("pow", np.power)])
@np.errstate(all="ignore")
def test_functions_of_two(name, exact):
    x, y = several(2), np.random.default_rng(3).permutation(several(4))
    x = np.concatenate([np.repeat(EDGES, len(EDGES)).astype(np.float32), np.abs(x), x])
    y = np.concatenate([np.tile(EDGES, len(EDGES)).astype(np.float32), y, y])
    wanted = exact(x.astype(np.float64), y.astype(np.float64)).astype(np.float32)
    check(computed(name, x, y), wanted)


def test_double_precision_stays_the_drivers():
    x = np.random.default_rng(5).uniform(0.1, 0.9, 1000)
    np.testing.assert_allclose(computed("log", x), np.log(x), 1e-15)
    np.testing.assert_allclose(computed("pow", x, x), x**x, 1e-15)
