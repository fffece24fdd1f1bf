"""PNG images: every depth and colour type, transparency, damage."""

from __future__ import annotations

import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from opdock.errors import InternalError, InvalidArgumentError
from opdock.io.png_format import decode_png, encode_png

SAMPLES = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}


def chunk(kind, content):
    check = zlib.crc32(kind + content)
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", check)


def file(width, height, depth, color, rows, extra=b"", interlace=0):
    """A file of unfiltered rows."""
    header = struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, interlace)
    packed = zlib.compress(b"".join(b"\0" + row for row in rows))
    parts = chunk(b"IHDR", header) + extra + chunk(b"IDAT", packed) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_what_was_encoded_is_decoded(channels, dtype):
    rng = np.random.default_rng(channels)
    image = rng.integers(0, np.iinfo(dtype).max, (7, 5, channels), dtype)
    data = encode_png(image)
    assert np.array_equal(decode_png(data, bits=8 * image.itemsize), image)
    if dtype == np.uint16:
        assert np.array_equal(decode_png(data), image >> 8)
    else:
        assert np.array_equal(decode_png(data, bits=16), image.astype(np.uint16) * 257)


def test_filters_make_smooth_images_small():
    image = np.add.outer(np.arange(64), np.arange(64))[..., None].astype(np.uint8)
    assert len(encode_png(image)) < 300
    assert np.array_equal(decode_png(encode_png(image, 9)), image)
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(encode_png(image, 0)))), image[..., 0])


@pytest.mark.parametrize("depth", [1, 2, 4])
def test_few_bits_are_stretched(depth):
    values = np.arange(8) % (1 << depth)
    bits = "".join(f"{v:0{depth}b}" for v in values)
    row = int(bits, 2).to_bytes(depth, "big")
    data = file(8, 1, depth, 0, [row])
    assert decode_png(data)[0, :, 0].tolist() == (values * 255 // ((1 << depth) - 1)).tolist()
    key = file(8, 1, depth, 0, [row], chunk(b"tRNS", b"\0\1"))
    assert decode_png(key).shape == (1, 8, 1)
    alpha = decode_png(key, channels=4)[0, :, 3]
    assert alpha.tolist() == np.where(values == 1, 0, 255).tolist()


def test_palettes_are_colors_and_may_be_transparent():
    table = chunk(b"PLTE", bytes([10, 20, 30, 40, 50, 60]))
    plain = file(2, 1, 8, 3, [b"\0\1"], table)
    assert decode_png(plain).tolist() == [[[10, 20, 30], [40, 50, 60]]]
    see_through = file(2, 1, 8, 3, [b"\0\1"], table + chunk(b"tRNS", b"\7"))
    assert decode_png(see_through).tolist() == [[[10, 20, 30, 7], [40, 50, 60, 255]]]
    assert decode_png(see_through, channels=3).shape == (1, 2, 3)


def test_channels_are_added_and_taken_away():
    rgb = np.array([[[200, 100, 50], [9, 9, 9]]], np.uint8)
    data = encode_png(rgb)
    # (9798 * 200 + 19235 * 100 + 3735 * 50) >> 15; equal colours stay as they are.
    assert decode_png(data, channels=1).reshape(-1).tolist() == [124, 9]
    assert decode_png(data, channels=4)[..., 3].tolist() == [[255, 255]]
    gray = encode_png(rgb[..., :1])
    assert np.array_equal(decode_png(gray, channels=3), np.repeat(rgb[..., :1], 3, axis=2))


def test_interlaced_images_of_16_bits():
    image = np.array([[[0x1234, 0x5678, 0x9ABC]]], np.uint16)
    data = file(1, 1, 16, 2, [image.astype(">u2").tobytes()], interlace=1)
    assert np.array_equal(decode_png(data, bits=16), image)


def test_what_is_broken_says_so():
    data = encode_png(np.zeros((9, 9, 3), np.uint8))
    for bad in (data[:20], b"\x89PNG\r\n\x1a\n", data[:24] + b"\7" + data[25:]):
        with pytest.raises(InvalidArgumentError, match="Invalid PNG header, data size"):
            decode_png(bad)
    for bad in (data[:-20], data[:45] + b"?" + data[46:], data[:-12]):
        with pytest.raises(InvalidArgumentError, match="Invalid PNG data, size"):
            decode_png(bad)


def test_sizes_are_checked_before_memory_is_taken():
    with pytest.raises(InvalidArgumentError, match="PNG size too large for int: 134217728 by 1"):
        decode_png(file(1 << 27, 1, 8, 0, [b"\0"]))
    # 2**28 pixels in a few bytes of data, which cannot be.
    with pytest.raises(InvalidArgumentError, match="Invalid PNG data"):
        decode_png(file(1 << 14, 1 << 14, 8, 6, [b"\0"]))
    with pytest.raises(InternalError, match="PNG encoding failed"):
        encode_png(np.zeros((0, 3, 1), np.uint8))
