"""Windows as integers: TF's padding rules, taps, and what does not fit."""

from __future__ import annotations

import numpy as np
import pytest

from opdock import errors
from opdock.windows import Format, Layout, Pool


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
    valid = layout(padding="VALID")
    text = "output size would be negative: -1 .input_size: 2, effective_filter_size: 7, stride: 2"
    with pytest.raises(errors.InvalidArgumentError, match=text):
        valid.window((2, 7), (7, 1))
    assert valid.window((2, 7), (5, 1)).out == (0, 3)  # too large by less than two steps
    with pytest.raises(errors.InvalidArgumentError, match="subtracting 5 from 2"):
        valid.output((2, None), (5, 1))


def test_what_is_not_known_of_a_shape_stays_unknown():
    assert layout().output((5, None), (None, 3)) == (3, None)
    assert layout(padding="VALID").output((5, 7), (None, 4)) == (None, 2)


@pytest.mark.parametrize("form", ["NDHWC", "NCDHW"])
def test_a_shape_is_taken_apart_and_put_together(form):
    where = Format(form, 5)
    batch, space, channels = where.parts([2, 3, 4, 5, 6])
    assert where.shape(batch, space, channels) == (2, 3, 4, 5, 6)
    assert (channels, space) == ((3, (4, 5, 6)) if form == "NCDHW" else (6, (3, 4, 5)))


def test_a_pool_goes_over_space_or_over_channels():
    attrs = {"padding": "VALID", "data_format": "NCHW", "strides": [1, 2, 1, 1]}
    deep = Pool(attrs | {"ksize": [1, 2, 1, 1]})
    assert (deep.deep, deep.result((5, 6, 7, 8))) == (True, (5, 3, 7, 8))
    with pytest.raises(errors.UnimplementedError, match="exactly one of pooling across depth"):
        Pool(attrs | {"ksize": [1, 2, 2, 1]})
    with pytest.raises(errors.UnimplementedError, match="batch dimension"):
        Pool(attrs | {"ksize": [2, 1, 1, 1]})


def test_padding_does_not_count_as_input():
    where = layout(dilations=[1, 1, 2, 1]).window((5, 7), (3, 2))
    taps = [padded_ones(where)[here] for _, here in where.taps()]
    np.testing.assert_array_equal(np.multiply.outer(*where.inside()), sum(taps))


def padded_ones(where):
    out = np.zeros(where.padded, int)
    out[where.inner] = 1
    return out
