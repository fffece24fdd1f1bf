"""Quotients of complex numbers in a generated loop, beside those of double precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opdock as tf
from tests.backends.cpu.looped import given

RNG = np.random.default_rng(4)
OPS = ["Div", "RealDiv", "DivNoNan"]


def _numbers(*shape: int) -> Any:
    """Of all sizes."""
    scale = 10.0 ** RNG.uniform(-30, 30, shape)
    return (scale * np.exp(1j * RNG.uniform(-4, 4, shape))).astype(np.complex64)


def _close(found: Any, x: Any, y: Any) -> None:
    with np.errstate(all="ignore"):
        wanted = (x.astype(np.complex128) / y).astype(np.complex64)
    assert found.dtype == np.complex64
    there = np.isfinite(wanted) & (np.abs(wanted) > 1e-30)
    assert there.sum() > found.size // 4
    gap = np.abs(found[there].astype(np.complex128) - wanted[there])
    assert (gap / np.abs(wanted[there].astype(np.complex128))).max() < 2e-7


@pytest.mark.parametrize("op", OPS)
def test_pairs(both: Any, op: str) -> None:
    x, y = _numbers(40, 50), _numbers(40, 50)
    found, _ = both(lambda: getattr(tf.raw_ops, op)(x=given(x), y=given(y)), "_quotients")
    _close(found[0], x, y)


@pytest.mark.parametrize("op", OPS)
def test_one_for_all(both: Any, op: str) -> None:
    x, one = _numbers(40, 50), np.array(3 - 4j, np.complex64)
    call = getattr(tf.raw_ops, op)
    found, _ = both(
        lambda: [call(x=given(x), y=given(one)), call(x=given(one), y=given(x))], "_quotients"
    )
    _close(found[0], x, one)
    _close(found[1], one, x)


@pytest.mark.parametrize("op", ["Reciprocal", "Inv"])
def test_reciprocals(both: Any, op: str) -> None:
    x = _numbers(2000)
    found, _ = both(lambda: getattr(tf.raw_ops, op)(x=given(x)), "_quotients")
    _close(found[0], np.array(1, np.complex64), x)


def test_zeros(both: Any) -> None:
    x, y = np.full(2000, 3 - 4j, np.complex64), np.zeros(2000, np.complex64)
    x[5], y[7] = 0, 1

    def build() -> list[Any]:
        left, right = given(x), given(y)
        return [tf.raw_ops.Div(x=left, y=right), tf.raw_ops.DivNoNan(x=left, y=right)]

    found, _ = both(build, "_quotients")
    by_zero, no_nan = found
    assert by_zero[0] == complex(np.inf, -np.inf)
    assert np.isnan(by_zero[5].real) and np.isnan(by_zero[5].imag)
    assert by_zero[7] == no_nan[7] == 3 - 4j
    assert not np.delete(no_nan, 7).any()


def test_rows_are_left_to_numpy(both: Any) -> None:
    x, row = _numbers(40, 50), _numbers(50)
    found, plain = both(lambda: tf.raw_ops.RealDiv(x=given(x), y=given(row)))
    np.testing.assert_array_equal(found[0], plain[0])
