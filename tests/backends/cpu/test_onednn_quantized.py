"""Products of 8-bit integers are exact."""

from __future__ import annotations

import numpy as np
import pytest

from opdock.plugin import errors
from opdock_cpu.im2col import conv_forward
from opdock_cpu.onednn.conv import ConvShape
from opdock_cpu.onednn.declarations import Type
from opdock_cpu.onednn.quantized import ConvolutionS32, ProductS32
from opdock_cpu.windows import Window
from tests.backends.cpu.onednn import needs_onednn

pytestmark = needs_onednn


def factors(a, b):
    rng = np.random.RandomState(0)
    return rng.randint(0, 256, a).astype(np.uint8), rng.randint(-128, 128, b).astype(np.int8)


@pytest.mark.parametrize("zero_point", [0, 9])
@pytest.mark.parametrize("transpose_b", [False, True])
def test_product(zero_point, transpose_b):
    a, b = factors((50, 700), (700, 33))
    product = ProductS32(50, 700, 33, zero_point, transpose_b)
    found = product(a, np.ascontiguousarray(b.T) if transpose_b else b)
    expected = (a.astype(np.int64) - zero_point) @ b.astype(np.int64)
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("zero_point", [0, 9])
@pytest.mark.parametrize(("stride", "padding"), [(1, "SAME"), (2, "VALID")])
def test_convolution(zero_point, stride, padding):
    where = Window.make((9, 10), (3, 3), (stride, stride), (1, 1), padding)
    x, w = factors((2, 9, 10, 16), (3, 3, 16, 20))
    convolve = ConvolutionS32(ConvShape(2, 16, 20, 1, where, False, Type.U8), zero_point)
    expected = conv_forward(x.astype(np.float64) - zero_point, w.astype(np.float64), where)
    np.testing.assert_array_equal(convolve(x, w), expected)


def test_other_shapes_and_types_are_refused():
    product = ProductS32(4, 5, 6)
    a, b = factors((4, 5), (5, 6))
    with pytest.raises(errors.InvalidArgumentError, match="expected shapes"):
        product(a[:3], b)
    with pytest.raises(errors.InvalidArgumentError, match="expected uint8 and int8"):
        product(a.astype(np.int8), b)
