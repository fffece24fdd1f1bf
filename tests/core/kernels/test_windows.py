"""Windows as integers: TF's padding rules, taps, and what does not fit."""

from __future__ import annotations

import numpy as np
import pytest

from opdock import errors
from opdock.kernels.windows import Layout


def layout(**attrs):
    return Layout({"strides": [1, 2, 3, 1], "padding": "SAME"} | attrs)


def test_same_pads_the_end_first():
    where = layout().window((5, 7), (3, 4))
    assert where.out == (3, 3)
    assert where.pads == ((1, 1), (1, 2))
    assert where.padded == (7, 10)
    assert where.inner == (slice(1, 6), slice(1, 8))


def test_valid_and_explicit_padding():
    assert layout(padding="VALID").window((5, 7), (3, 4)).out == (2, 2)
    explicit = layout(padding="EXPLICIT", explicit_paddings=[0, 0, 2, 0, 0, 1, 0, 0])
    where = explicit.window((5, 7), (3, 4))
    assert (where.out, where.pads) == ((3, 2), ((2, 0), (0, 1)))


def test_taps_visit_every_element_of_every_window():
    where = layout(padding="VALID", dilations=[1, 2, 1, 1]).window((6, 7), (2, 2))
    image = np.arange(42).reshape(6, 7)
    for offset, here in where.taps():
        row, column = offset
        expected = [[image[2 * i + 2 * row, 3 * j + column] for j in range(2)] for i in range(2)]
        np.testing.assert_array_equal(image[here], expected)
    assert len(list(where.taps())) == 4


@pytest.mark.parametrize(("form", "channel", "space"), [("NHWC", 3, (1, 2)), ("NCHW", 1, (2, 3))])
def test_the_data_format_says_which_dimensions_are_spatial(form, channel, space):
    found = layout(data_format=form)
    assert (found.channel, found.space) == (channel, space)
    assert found.spatial([10, 11, 12, 13]) == tuple(10 + a for a in space)


def test_a_window_that_does_not_fit_is_an_error():
    with pytest.raises(errors.InvalidArgumentError, match="output size would be negative"):
        layout(padding="VALID").window((2, 7), (5, 1))
