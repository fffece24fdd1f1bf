"""Dimensions in another order: pieces that move as one element keep their bits."""

from __future__ import annotations

import numpy as np
import pytest

from opdock_cpu.namespace import namespace
from opdock_cpu.turning import turned

ORDER = (2, 0, 1, 3)


@pytest.mark.parametrize("channels", [1, 2, 3, 4, 8, 16])
@pytest.mark.parametrize(
    "dtype", ["uint8", "float16", "float32", "int64", "complex64", "bool", "O"]
)
def test_as_a_view_and_its_copy(channels: int, dtype: str) -> None:
    x = np.arange(2 * 3 * 5 * channels).reshape(2, 3, 5, channels).astype(dtype)
    for array in (x, x[:, ::-1], x[..., ::2] if channels > 2 else x[:, 1:]):
        found, expected = turned(array, ORDER), array.transpose(ORDER)
        assert found.dtype == array.dtype
        assert found.shape == expected.shape
        np.testing.assert_array_equal(found, expected)


def test_another_last_dimension_is_no_piece() -> None:
    x = np.arange(24.0).reshape(2, 3, 4)
    np.testing.assert_array_equal(turned(x, (2, 1, 0)), x.transpose(2, 1, 0))


def test_bits_stay_as_they_are() -> None:
    bits = np.array([0x7FC00123, 0xFFC00001, 0x7F800001, 0x80000000] * 6, np.uint32)
    x = bits.view(np.float32).reshape(2, 3, 1, 4)
    assert (turned(x, ORDER).view(np.uint32) == bits.reshape(x.shape).transpose(ORDER)).all()


def test_small_pieces_are_no_view_of_what_came() -> None:
    x = np.zeros((3, 4, 2), np.float32)
    assert namespace.turned is turned
    assert turned(x, (1, 0, 2)).flags.c_contiguous
    assert not np.shares_memory(turned(x, (1, 0, 2)), x)
