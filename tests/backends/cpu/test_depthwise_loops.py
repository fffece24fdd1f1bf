"""Depthwise convolutions as loops give what NumPy gives window by window."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from opdock.graph.nodes import registry
from tests.backends.cpu.looped import given

RNG = np.random.default_rng(21)


@pytest.mark.parametrize("form", ["NHWC", "NCHW"])
@pytest.mark.parametrize(("depth", "fold"), [(1, 3), (6, 1), (3, 2)])
@pytest.mark.parametrize(("step", "rates"), [(1, (1, 1)), (2, (1, 1)), (1, (2, 3)), (3, (1, 1))])
@pytest.mark.parametrize(
    ("padding", "window"), [("SAME", (3, 2)), ("VALID", (2, 3)), ("SAME", (40, 2))]
)
def test_depthwise_in_double_precision(
    both: Any, padding: str, window: tuple[int, int], step: int, rates: Any, depth: int, fold: int,
    form: str,
) -> None:  # fmt: skip
    x, kernel = RNG.normal(size=(2, 9, 11, depth)), RNG.normal(size=(*window, depth, fold))
    first = form == "NCHW"
    if first:
        x = np.ascontiguousarray(np.moveaxis(x, -1, 1))
    steps, rates = ([1, 1, *n] if first else [1, *n, 1] for n in ((step, step), rates))
    how = {"strides": steps, "dilations": rates, "padding": padding, "data_format": form}
    ops: list[Any] = [
        registry.get(f"DepthwiseConv2dNative{part}")
        for part in ("", "BackpropInput", "BackpropFilter")
    ]

    def build() -> list[Any]:
        image, taps = given(x), given(kernel)
        y = ops[0](image, taps, **how)
        back = given(RNG.normal(size=y.shape.as_list()))
        to_input = ops[1](np.array(x.shape, np.int32), taps, back, **how)
        return [y, to_input, ops[2](image, np.array(kernel.shape, np.int32), back, **how)]

    names = ("_forward", "_backward_data", "_backward_filter")
    for found, wanted in zip(*both(build, *names), strict=True):
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)
