"""JPEG images: headers, settings, what is cut off, what is written along."""

from __future__ import annotations

import io
import sys

import numpy as np
import pytest
from PIL import Image

from opdock.errors import InternalError, InvalidArgumentError
from opdock.io.jpeg_format import decode_jpeg, encode_jpeg, read_header

Y, X = np.mgrid[:48, :64]
SMOOTH = np.stack([Y * 4, X * 3, 128 + Y - X], axis=-1).astype(np.uint8)


@pytest.fixture(params=["simplejpeg", "pillow"])
def codec(request, monkeypatch):
    """Each library that may decode."""
    if request.param == "pillow":
        monkeypatch.setitem(sys.modules, "simplejpeg", None)
    else:
        pytest.importorskip("simplejpeg")


@pytest.fixture(scope="module")
def data():
    return encode_jpeg(SMOOTH)


def test_pixels_come_back(codec, data):
    assert np.abs(decode_jpeg(data).astype(int) - SMOOTH).max() <= 8
    gray = decode_jpeg(data, channels=1)
    assert gray.shape == (48, 64, 1)
    luma = SMOOTH @ np.array([0.299, 0.587, 0.114])
    assert np.abs(gray[..., 0] - luma).max() <= 6
    of_gray = encode_jpeg(SMOOTH[..., :1])
    assert decode_jpeg(of_gray).shape == (48, 64, 1)
    assert decode_jpeg(of_gray, channels=3).shape == (48, 64, 3)


@pytest.mark.parametrize("ratio", [2, 4, 8])
def test_smaller_images(codec, data, ratio):
    small = decode_jpeg(data, ratio=ratio)
    assert small.shape == (48 // ratio, 64 // ratio, 3)
    mean = SMOOTH.reshape(48 // ratio, ratio, 64 // ratio, ratio, 3).mean(axis=(1, 3))
    assert np.abs(small - mean).max() <= 8


def test_a_part_is_that_of_the_whole(codec, data):
    part = decode_jpeg(data, window=(5, 7, 11, 13))
    assert np.array_equal(part, decode_jpeg(data)[5:16, 7:20])
    for window in ((-1, 0, 2, 2), (0, 0, 49, 1), (0, 60, 1, 5), (0, 0, 0, 1)):
        with pytest.raises(InvalidArgumentError, match="Invalid JPEG data or crop window"):
            decode_jpeg(data, window=window)


def test_inks_become_colors(codec):
    out = io.BytesIO()
    inks = np.broadcast_to(np.array([255, 0, 128, 64], np.uint8), (16, 16, 4))
    Image.fromarray(np.ascontiguousarray(inks), "CMYK").save(out, "JPEG", quality=100)
    color = decode_jpeg(out.getvalue())
    # (255 - k) * (255 - ink) / 255, whichever way round the file has them.
    assert np.abs(color[8, 8].astype(int) - [0, 191, 95]).max() <= 3
    assert read_header(out.getvalue()).components == 4


def test_pillow_stands_in_where_the_first_library_gives_up(monkeypatch, data):
    def refuses(*args, **options):
        raise ValueError("Could not determine subsampling level of JPEG image")

    library = pytest.importorskip("simplejpeg")
    monkeypatch.setattr(library, "decode_jpeg", refuses)
    assert np.abs(decode_jpeg(data).astype(int) - SMOOTH).max() <= 8


def test_what_is_cut_off_is_decoded_on_request(codec, data):
    start = data.index(b"\xff\xda")
    half = data[: (start + len(data)) // 2]
    with pytest.raises(InvalidArgumentError, match=f"data size {len(half)}"):
        decode_jpeg(half)
    part = decode_jpeg(half, recover=True)
    assert np.abs(part[:4].astype(int) - SMOOTH[:4]).max() <= 8
    with pytest.raises(InvalidArgumentError):
        decode_jpeg(data[:30], recover=True)


def test_the_end_of_a_thumbnail_is_not_the_end(data):
    inner = b"\xff\xe1\x00\x08thumb\xff\xd9"[:2] + (2 + 7).to_bytes(2, "big") + b"thumb\xff\xd9"
    with_thumbnail = data[:2] + inner + data[2:]
    assert read_header(with_thumbnail).whole
    assert not read_header(with_thumbnail[:-2]).whole


@pytest.mark.parametrize("bad", [b"", b"\xff\xd8", b"\xff\xd8\xff\xd9", b"nothing", b"\xff" * 99])
def test_what_is_no_image_is_none(bad):
    assert read_header(bad) is None
    with pytest.raises(InvalidArgumentError, match="Invalid JPEG data"):
        decode_jpeg(bad, recover=True)


def test_sizes_are_checked_before_memory_is_taken(data):
    at = data.index(b"\xff\xc0") + 5
    huge = data[:at] + b"\xff\xff\xff\xff" + data[at + 4 :]
    assert read_header(huge).width == 65535
    with pytest.raises(InvalidArgumentError, match="Invalid JPEG data"):
        decode_jpeg(huge)


def test_what_is_written_along():
    data = encode_jpeg(SMOOTH, unit=2, density=(72, 100), xmp=b"<x/>")
    assert data[13] == 2
    assert data[14:18] == b"\0\x48\0\x64"
    assert b"http://ns.adobe.com/xap/1.0/\0<x/>" in data
    assert np.abs(decode_jpeg(data).astype(int) - SMOOTH).max() <= 8
    assert Image.open(io.BytesIO(encode_jpeg(SMOOTH, progressive=True))).info["progressive"]
    assert len(encode_jpeg(SMOOTH, optimize=True)) < len(encode_jpeg(SMOOTH))
    assert len(encode_jpeg(SMOOTH, 5)) < len(encode_jpeg(SMOOTH, 90))
    assert encode_jpeg(SMOOTH, 0) == encode_jpeg(SMOOTH, 1)
    with pytest.raises(InternalError, match="JPEG encoding failed"):
        encode_jpeg(SMOOTH, xmp=b"x" * 70000)
    with pytest.raises(InternalError, match="JPEG encoding failed"):
        encode_jpeg(SMOOTH[:0])
