"""Bytes go through pools and are made of floats as NumPy does it, whatever code runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from opdock.plugin import windows
from opdock_cpu import byte_pools, ranges
from opdock_cpu.jit import looped
from opdock_cpu.jit.looped import Array, Looped
from opdock_cpu.ranges import F32, integers


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPDOCK_JIT", "sync")
    monkeypatch.setattr(looped, "_SMALL", 0)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize(("size", "step"), [(2, 2), (3, 2), (4, 3)])
def test_pools(size: int, step: int, padding: str) -> None:
    x = np.random.RandomState(size).randint(0, 256, (3, 9, 10, 13)).astype(np.uint8)
    attrs = {"ksize": [1, size, size, 1], "strides": [1, step, step, 1], "padding": padding}
    where = windows.Pool(attrs).on(x.shape)
    most, mean = byte_pools.largest(x, where), byte_pools.means(x, where)
    assert most is not None and mean is not None
    (top, _), (left, _) = where.pads
    for r, c in np.ndindex(*where.out):
        y, z = r * step - top, c * step - left
        part = x[:, max(y, 0) : y + size, max(z, 0) : z + size]
        np.testing.assert_array_equal(most[:, r, c], part.max(axis=(1, 2)))
        count = part.shape[1] * part.shape[2]
        np.testing.assert_array_equal(mean[:, r, c], part.sum(axis=(1, 2), dtype=int) // count)


@pytest.mark.parametrize("ends", [(-1, 3), (0, 1), (-5.3, 0), (-0.001, 100), (-3e20, 1e20)])
def test_bytes_of_floats(ends: tuple[float, float], monkeypatch: pytest.MonkeyPatch) -> None:
    low, high = map(F32, ends)
    one = float(high - low) / 255
    odd = [np.nan, np.inf, -np.inf, 3e38, -3e38, 0, -0.0]
    near = (np.arange(-20, 300) / 2 * one, np.arange(-20, 300) * one + float(low))
    some = np.random.RandomState(0).normal(size=20000) * 255 * one + float(low)
    x = np.concatenate([some, *near, odd]).astype(F32)
    called: list[bool] = []
    run = looped.Looped.__call__

    def noted(self: Looped, *args: Any) -> bool:
        called.append(run(self, *args))
        return called[-1]

    monkeypatch.setattr(looped.Looped, "__call__", noted)
    found = ranges.quantized_bytes(x, low, high)
    assert called == [True]
    with np.errstate(all="ignore"):
        wanted = ranges.quantized(x, low, high, integers(np.uint8)).astype(np.uint8)
    np.testing.assert_array_equal(found, wanted)


def _rows(begin: int, end: int, out: Array, x: Array, depth: int, times: int) -> None:
    for i in range(begin, end):
        total = 0
        for c in range(depth):
            total += int(x[i * depth + c]) * times
        out[i] = total


def test_code_that_says_numbers_itself_is_bounded() -> None:
    sums = Looped(_rows, fixed=["depth"])
    for depth in range(1, 3 * looped._VARIANTS):
        x, out = np.arange(5 * depth, dtype=np.int32), np.zeros(5, np.int64)
        for times in (1, 7):
            assert sums(5, 1 << 20, out, x, depth, times)
            np.testing.assert_array_equal(out, x.reshape(5, depth).sum(axis=1) * times)
    kinds = {id(bound) for bound in sums._codes.values()}
    assert len(kinds) == looped._VARIANTS + 1
