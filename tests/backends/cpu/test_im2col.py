"""Gradients of filters from inputs that are unfolded along lines alone."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from opdock.plugin import windows
from opdock_cpu import im2col

RNG = np.random.default_rng(4)


def _window(size: Any, window: Any, stride: int, dilation: int, padding: str) -> windows.Window:
    rank = len(size)
    attrs = {
        "strides": [1, *[2] * (rank - 2), 1, stride, 1],
        "dilations": [1, *[dilation] * rank, 1],
        "padding": padding,
        "data_format": "NHWC" if rank == 2 else "NDHWC",
    }
    return windows.Layout(attrs).window(size, window)


SIZES = [((9, 8), (2, 3)), ((9, 8), (1, 1)), ((6, 9, 7), (2, 3, 2)), ((3, 7, 6), (3, 7, 6))]
CASES = [
    (size, window, stride, dilation, padding)
    for (size, window), (stride, dilation), padding in itertools.product(
        SIZES, [(1, 1), (3, 1), (1, 2)], ["SAME", "VALID"]
    )
    # Without padding a window has to fit somewhere.
    if padding == "SAME" or all((k - 1) * dilation < n for k, n in zip(window, size, strict=True))
]


@pytest.mark.parametrize(("size", "window", "stride", "dilation", "padding"), CASES)
def test_a_filters_gradient_is_the_sum_over_all_places(
    monkeypatch: pytest.MonkeyPatch,
    size: Any,
    window: Any,
    stride: int,
    dilation: int,
    padding: str,
) -> None:
    where = _window(size, window, stride, dilation, padding)
    x, grad = RNG.normal(size=(2, *size, 3)), RNG.normal(size=(2, *where.out, 5))
    ran = []
    by_lines = im2col._filter_by_lines
    monkeypatch.setattr(im2col, "_filter_by_lines", lambda *a: ran.append(1) or by_lines(*a))
    monkeypatch.setattr(im2col, "_PLANE", 0)
    found = im2col.conv_backward_filter(x, grad, where, 3)
    assert ran or where.is_pointwise
    padded = im2col.pad(x, where)
    wanted = np.zeros((*window, 3, 5))
    for place in itertools.product(*map(range, where.out)):
        at = tuple(
            slice(p * s, p * s + k * d, d)
            for p, s, k, d in zip(place, where.strides, window, where.dilations, strict=True)
        )
        seen, back = padded[(slice(None), *at)], grad[(slice(None), *place)]
        wanted += np.tensordot(seen, back, (0, 0))
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(("batch", "channels", "outputs"), [(0, 3, 5), (2, 0, 5), (2, 3, 0)])
def test_nothing_adds_up_to_zero(batch: int, channels: int, outputs: int) -> None:
    where = _window((6, 9, 7), (2, 3, 2), 1, 1, "SAME")
    x, grad = np.ones((batch, 6, 9, 7, channels)), np.ones((batch, *where.out, outputs))
    found = im2col.conv_backward_filter(x, grad, where, channels)
    assert found.shape == (2, 3, 2, channels, outputs) and not found.any()


def test_small_planes_are_unfolded_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there are many outputs, a product for each plane and its sum would take longer."""
    monkeypatch.delattr(im2col, "_filter_by_lines")
    where = _window((4, 4), (3, 3), 1, 1, "SAME")
    x, grad = RNG.normal(size=(2, 4, 4, 3)), RNG.normal(size=(2, 4, 4, 5))
    assert im2col.conv_backward_filter(x, grad, where, 3).shape == (3, 3, 3, 5)
