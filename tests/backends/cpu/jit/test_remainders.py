"""Remainders in generated loops are NumPy's, to the bit but for the rounding of a last sum."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock_cpu.jit import remainders
from tests.backends.cpu.looped import given

RNG = np.random.default_rng(9)
OPS = {"FloorMod": np.remainder, "Mod": np.fmod, "TruncateMod": np.fmod}
SPECIAL = np.array(
    [0.0, -0.0, 1.0, -1.0, 3.5, np.inf, -np.inf, np.nan, 1e-45, -3e38, 3e38, 1e-30, 2.0**24 - 1],
    np.float32,
)


def _pairs(spread: float, dtype: str) -> tuple[Any, Any]:
    a, b = (RNG.normal(size=4000) * 10 ** RNG.uniform(-spread, spread, 4000) for _ in range(2))
    # Quotients next to whole numbers, from both sides.
    a[:500] = b[:500] * RNG.integers(1, 1000, 500)
    first, second = (e.reshape(-1) for e in np.meshgrid(SPECIAL, SPECIAL))
    with np.errstate(over="ignore"):
        if spread > 2:
            return np.concatenate([a, first]).astype(dtype), np.concatenate([b, second]).astype(
                dtype
            )
        return a.astype(dtype), b.astype(dtype)


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("spread", [1.0, 3.0, 37.0])
def test_pairs(both: Any, op: str, dtype: str, spread: float) -> None:
    x, y = _pairs(spread, dtype)
    found, _ = both(lambda: getattr(tf.raw_ops, op)(x=given(x), y=given(y)), "_remainders")
    with np.errstate(all="ignore"):
        wanted = OPS[op](x, y)
    assert found[0].dtype == x.dtype
    np.testing.assert_array_equal(found[0], wanted)
    there = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(found[0][there]), np.signbit(wanted[there]))


@pytest.mark.parametrize("op", OPS)
def test_broadcasts(both: Any, op: str) -> None:
    x, row = RNG.normal(size=(60, 70)).astype(np.float32), np.full(70, 0.3, np.float32)

    def build() -> list[Any]:
        call = getattr(tf.raw_ops, op)
        column = given(np.full((60, 1), -0.7, np.float32))
        one = given(np.array(0.4, np.float32))
        return [call(x=given(x), y=given(row)), call(x=given(x), y=one), call(x=one, y=given(x)),
                call(x=column, y=given(row))]  # fmt: skip

    found, plain = both(build, "_remainders")
    for a, b in zip(found, plain, strict=True):
        np.testing.assert_array_equal(a, b)


def test_far_quotients_are_a_block_of_their_own() -> None:
    x, y = np.full(2048, 1e10, np.float32), np.full(2048, 3.0, np.float32)
    x[:1024] = 7.0
    assert remainders._far(x, y, 0, 1024, 1) == 0
    assert remainders._far(x, y, 1024, 2048, 1) == 1024
