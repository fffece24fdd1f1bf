"""Files of any format, and BMP images."""

from __future__ import annotations

import io
import struct

import numpy as np
import pytest
from PIL import Image

from opdock.errors import InvalidArgumentError
from opdock.io.image_format import decode_bmp, decode_image, jpeg_shape
from opdock.io.jpeg_format import encode_jpeg
from opdock.io.png_format import encode_png

IMAGE = np.arange(5 * 3 * 3, dtype=np.uint8).reshape(5, 3, 3) * 5


def saved(kind, **options):
    out = io.BytesIO()
    Image.fromarray(IMAGE).save(out, kind, **options)
    return out.getvalue()


def test_each_op_takes_each_format():
    png, jpeg = encode_png(IMAGE), encode_jpeg(IMAGE, 100, downsample=False)
    assert np.array_equal(decode_image(png, "JPEG"), IMAGE)
    assert decode_image(jpeg, "PNG").shape == IMAGE.shape
    assert decode_image(png, "GIF").shape == (1, *IMAGE.shape)
    assert decode_image(encode_png(IMAGE[..., :1]), "GIF").shape == (1, *IMAGE.shape)
    assert decode_image(saved("GIF"), "PNG").shape == IMAGE.shape


@pytest.mark.parametrize(
    ("data", "attrs", "problem"),
    [
        (b"", {}, r"Expected image \(JPEG, PNG, or GIF\), got empty file"),
        (b"ab\xff\n", {}, r"got unknown format starting with 'ab\\377\\n'"),
        (saved("GIF"), {"channels": 1}, "channels must be 0 or 3 for GIF, got 1"),
        (saved("JPEG"), {"channels": 4}, "channels must be 0, 1, or 3 for JPEG, got 4"),
        (saved("JPEG"), {"bits": 16}, "JPEG does not support uint16 output"),
    ],
)
def test_what_does_not_fit_says_so(data, attrs, problem):
    with pytest.raises(InvalidArgumentError, match=problem):
        decode_image(data, "PNG", **attrs)


def test_animations_are_for_gifs_only():
    frames = [Image.fromarray(IMAGE + i) for i in range(2)]
    out = io.BytesIO()
    frames[0].save(out, "GIF", save_all=True, append_images=frames[1:])
    assert decode_image(out.getvalue(), "GIF").shape == (2, 5, 3, 3)
    with pytest.raises(InvalidArgumentError, match="Got 2 frames, but animated gifs can only be"):
        decode_image(out.getvalue(), "JPEG")


def test_shapes_without_decoding():
    assert jpeg_shape(saved("JPEG")) == (5, 3, 3)
    with pytest.raises(InvalidArgumentError, match="Invalid JPEG data, size 3"):
        jpeg_shape(b"abc")


# ---------------------------------------------------------------- BMP
def bmp(pixels, height):
    """A file of rows as they are given."""
    _, width, channels = pixels.shape
    header = struct.pack("<2sIHHI", b"BM", 0, 0, 0, 54)
    header += struct.pack("<IiiHHIIiiII", 40, width, height, 1, channels * 8, 0, 0, 0, 0, 0, 0)
    padding = bytes(-width * channels % 4)
    return header + b"".join(row.tobytes() + padding for row in pixels)


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_rows_go_up_and_blue_comes_first(channels):
    pixels = np.arange(2 * 3 * channels, dtype=np.uint8).reshape(2, 3, channels)
    order = {1: [0], 3: [2, 1, 0], 4: [2, 1, 0, 3]}[channels]
    assert np.array_equal(decode_bmp(bmp(pixels, 2)), pixels[::-1][..., order])
    assert np.array_equal(decode_bmp(bmp(pixels, -2), channels), pixels[..., order])
    if channels == 3:
        assert np.array_equal(decode_bmp(saved("BMP")), IMAGE)


@pytest.mark.parametrize(
    ("at", "value", "problem"),
    [
        (18, 0, "Width must be positive"),
        (22, 0, "Height must be nonzero"),
        (10, -1, "header size must be nonnegative"),
        (18, 1 << 30, "Total possible pixel bytes"),
        (22, 3, "Incomplete bmp content, requires at least 87 bytes, got 78 bytes"),
        (28, 16, "Number of channels must be 1, 3 or 4, was 2"),
    ],
)
def test_headers_are_not_believed(at, value, problem):
    data = bmp(np.zeros((2, 3, 3), np.uint8), 2)
    bad = data[:at] + struct.pack("<i", value) + data[at + 4 :]
    with pytest.raises(InvalidArgumentError, match=problem):
        decode_bmp(bad)


def test_what_is_too_short_or_has_other_channels():
    with pytest.raises(InvalidArgumentError, match="at least 32 bytes"):
        decode_bmp(b"BM")
    with pytest.raises(InvalidArgumentError, match="channels attribute 1 does not match"):
        decode_bmp(bmp(np.zeros((2, 3, 3), np.uint8), 2), 1)
