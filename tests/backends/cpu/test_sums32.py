"""What zeros add to sums of bytes is added where the sums are narrowed, to the last bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from opdock.plugin import windows
from opdock_cpu.jit import looped
from opdock_cpu.narrowing import Narrowing
from opdock_cpu.ranges import F32
from opdock_cpu.sums32 import Rest, Sums32
from opdock_cpu.windowed_sums import window_sums

RNG = np.random.RandomState(5)
FIRST = Narrowing.between((F32(-4e6), F32(4e6)), (F32(-3.5), F32(6.25)), least=3, most=250)
THEN = Narrowing.between((F32(-9e5), F32(9e5)), (F32(-1.0), F32(8.0)), least=20, most=200)
EVERY = np.arange(-9000, -9000 + 256 * 75, 75, dtype=np.int32)


@pytest.fixture(params=[False, True], ids=["numpy", "generated"])
def generated(request, monkeypatch):
    monkeypatch.setenv("OPDOCK_JIT", "sync")
    monkeypatch.setattr(looped, "_SMALL", 0)
    run = looped.Looped.__call__

    def called(self, *args, **words):
        assert not request.param or run(self, *args, **words)
        return request.param

    monkeypatch.setattr(looped.Looped, "__call__", called)


def narrow(how, sums):
    level = ((sums * how.factor >> 32) + how.shift) >> 16
    return np.clip(level, how.least, how.most)


@pytest.mark.parametrize("counted", [False, True])
@pytest.mark.parametrize("kind", [np.int32, np.float32])
def test_sums_with_a_rest(kind, counted, generated):
    depth = 19
    values = RNG.randint(-(1 << 20), 1 << 20, (3, 5, depth))
    offsets = RNG.randint(-(1 << 20), 1 << 20, depth).astype(np.int32)
    counts = RNG.randint(0, 1 << 14, (3, 5)).astype(np.int32)
    bias = RNG.randint(-2000, 2000, depth).astype(np.int32)
    sums = Sums32(values.astype(kind), Rest(offsets, counts if counted else None, -37))
    expected = values + offsets + (37 * counts[..., None] if counted else 0)
    np.testing.assert_array_equal(sums.whole(), expected)
    assert sums.whole().dtype == np.int32
    np.testing.assert_array_equal(sums.narrowed(FIRST), narrow(FIRST, expected))
    first = replace(FIRST, least=0, most=255)
    every = EVERY[narrow(first, expected)] + bias
    found = sums.narrowed_twice(first, THEN, EVERY, bias)
    np.testing.assert_array_equal(found, narrow(THEN, every.astype(np.int64)))
    assert len(np.unique(found)) > 10


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize(("window", "stride"), [((3, 3), 1), ((2, 5), 2), ((1, 1), 3)])
def test_sums_of_windows(window, stride, padding, generated):
    layout = windows.Layout({"strides": [1, stride, stride, 1], "padding": padding})
    where = layout.window((9, 11), window)
    x = RNG.randint(0, 256, (3, 9, 11, 21)).astype(np.uint8)
    padded = np.zeros((3, *where.padded, 21), np.int64)
    padded[:, where.inner[0], where.inner[1]] = x
    expected = np.zeros((3, *where.out), np.int64)
    for r, c in np.ndindex(*where.out):
        part = padded[:, r * stride : r * stride + window[0], c * stride : c * stride + window[1]]
        expected[:, r, c] = part.sum(axis=(1, 2, 3))
    np.testing.assert_array_equal(window_sums(x, where), expected)
