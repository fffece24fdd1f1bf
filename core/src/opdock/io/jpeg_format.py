"""JPEG images: their headers, decoding with TF's settings, encoding.

Decoding goes through simplejpeg where it is installed: it is libjpeg-turbo with all that TF sets,
and leaves other Python threads running. Pillow, the same library with fewer settings, stands in.
"""

from __future__ import annotations

import importlib
import io
import re
import struct
import threading
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from opdock.errors import InternalError, InvalidArgumentError
from opdock.io.recycling import Recycled

__all__ = ["Header", "decode_jpeg", "encode_jpeg", "read_header"]

Image = npt.NDArray[np.uint8]

_ALONE: Final = {0x01, *range(0xD0, 0xD8)}
"""Markers without a segment."""
_PLANES: Final = {"GRAY": 1, "RGB": 3, "CMYK": 4}
_FRAMES: Final = set(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_SCAN, _END, _ADOBE = 0xDA, 0xD9, 0xEE
_LIMIT: Final = 1 << 29
"""TF decodes and encodes no image of so many samples."""
_NEXT_MARKER: Final = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]")
"""In coded data 0xFF stands before zero, the number of a restart, or more of itself."""


_SIZE: Final = struct.Struct(">H")
_END_MARK: Final = b"\xff\xd9"
_SEQUENTIAL: Final = (0xC0, 0xC1)


class _Scratch(threading.local):
    """Memory for the pixels of each thread's images, which most programs cut and cast at once."""

    def __init__(self) -> None:
        self.memory = Recycled(2, 1 << 16, 1 << 22)


_scratch: Final = _Scratch()


@dataclass(frozen=True)
class Header:
    """What a file says of itself before its pixels.

    Attributes:
        height, width: in pixels.
        components: 1 for grey, 3 for colours, 4 for inks.
        adobe: whether Adobe's marker is there, which turns inks round.
        whole: whether the file ends as it should; else it has been cut off.
    """

    height: int
    width: int
    components: int
    adobe: bool
    whole: bool


# ---------------------------------------------------------------- headers
def read_header(data: bytes) -> Header | None:
    """The header of a file; None where there is none."""
    if data[:2] != b"\xff\xd8":
        return None
    at, end = 2, len(data)
    frame, adobe, whole, sequential = None, False, False, False
    while at + 2 <= end:
        if data[at] != 0xFF or data[at + 1] == 0xFF:
            at += 1  # fill bytes, and what libraries skip in search of a marker
            continue
        kind = data[at + 1]
        at += 2
        if kind == _END:
            whole = True
            break
        if kind in _ALONE or kind == 0:
            continue
        if at + 2 > end:
            break
        (size,) = _SIZE.unpack_from(data, at)
        begin, at = at + 2, at + size
        if size < 2 or at > end:
            break
        if kind in _FRAMES and frame is None and size >= 8:
            frame, sequential = data[begin:at], kind in _SEQUENTIAL
        adobe |= kind == _ADOBE and data.startswith(b"Adobe", begin, at)
        if kind == _SCAN:
            if sequential and frame and data[begin:at][:1] == frame[5:6]:
                # All components are in this scan: nothing but the end comes after it.
                whole = data.endswith(_END_MARK, at) or data.find(_END_MARK, at) >= 0
                break
            found = _NEXT_MARKER.search(data, at)
            at = end if found is None else found.start()
    if frame is None:
        return None
    height, width = (int.from_bytes(frame[i : i + 2], "big") for i in (1, 3))
    return Header(height, width, frame[5], adobe, whole) if height and width else None


# ---------------------------------------------------------------- decoding
def decode_jpeg(
    data: bytes, channels: int = 0, ratio: int = 1, fancy: bool = True, recover: bool = False,
    fast: bool = True, window: tuple[int, int, int, int] | None = None,
) -> Image:  # fmt: skip
    """The pixels of an image.

    Args:
        data: the file.
        channels: 1, 3, or 0 for those of the file; inks become colours.
        ratio: 1, 2, 4 or 8, by which the image is made smaller.
        fancy: whether colours are interpolated where they have fewer pixels.
        recover: whether a file that has been cut off is decoded as far as it goes.
        fast: whether the less accurate transform will do, which is TF's default.
        window: y, x, height and width of the part that is wanted.

    Returns:
        uint8 [height, width, channels].

    Raises:
        InvalidArgumentError: the file is no JPEG image, broken, or too large, or the part is not
            in it.
    """
    header = read_header(data)
    if header is None or not (header.whole or recover):
        raise _bad(data)
    channels = channels or min(header.components, 3)
    height, width = -(-header.height // ratio), -(-header.width // ratio)
    # libjpeg makes no grey of inks.
    possible = channels == 3 or (channels == 1 and header.components != 4)
    if not possible or height * width * header.components >= _LIMIT:
        raise _bad(data)
    if window is not None:
        y, x, rows, columns = window
        if rows <= 0 or columns <= 0 or y < 0 or x < 0 or y + rows > height or x + columns > width:
            raise _bad(data)
    inks = channels == 3 and header.components == 4
    space = "GRAY" if channels == 1 else "CMYK" if inks else "RGB"
    try:
        pixels = _pixels(data, space, (height, width), ratio, fancy, fast, header)
    except Exception as e:  # libraries raise what they like for broken files
        raise _bad(data) from e
    if pixels.shape[:2] != (height, width):
        raise _bad(data)
    if inks:
        pixels = _colors(pixels, header.adobe)
    pixels = pixels.reshape(height, width, channels)
    if window is None:
        return pixels
    return np.ascontiguousarray(pixels[y : y + rows, x : x + columns])


def _bad(data: bytes) -> InvalidArgumentError:
    return InvalidArgumentError(
        None, None, f"Invalid JPEG data or crop window, data size {len(data)}"
    )


def _pixels(
    data: bytes, space: str, size: tuple[int, int], ratio: int, fancy: bool, fast: bool,
    header: Header,
) -> Image:  # fmt: skip
    try:
        library: Any = importlib.import_module("simplejpeg")
        buffer = _scratch.memory.empty((*size, _PLANES[space]), np.uint8)
        pixels: Image = library.decode_jpeg(
            data, colorspace=space, fastdct=fast, fastupsample=not fancy, min_height=size[0],
            min_width=size[1], min_factor=ratio, strict=False, buffer=buffer,
        )  # fmt: skip
    except (ImportError, ValueError):
        # It is not there, or does not know how this file thins its colours out.
        return _pixels_by_pillow(data, space, size, ratio, header)
    return pixels


def _pixels_by_pillow(
    data: bytes, space: str, size: tuple[int, int], ratio: int, header: Header
) -> Image:
    """With the transform and the interpolation that Pillow chooses."""
    from PIL.JpegImagePlugin import JpegImageFile

    # A file that was cut off gets an end: Pillow's own way to read one is a global setting.
    image = JpegImageFile(io.BytesIO(data if header.whole else data + b"\xff\xd9"))
    mode = {"GRAY": "L", "RGB": "RGB", "CMYK": "CMYK"}[space]
    if ratio > 1:
        image.draft(None, (size[1], size[0]))
    elif mode == "L" and image.mode == "RGB":
        image.draft("L", None)
    pixels = np.asarray(image if image.mode == mode else image.convert(mode), np.uint8)
    return 255 - pixels if mode == "CMYK" else pixels  # Pillow takes all inks as Adobe's


def _colors(inks: Image, adobe: bool) -> Image:
    """Inks as colours; Adobe's files have them the other way round."""
    values = inks.astype(np.int32)
    if not adobe:
        values = 255 - values
    return (values[..., 3:] * values[..., :3] // 255).astype(np.uint8)


# ---------------------------------------------------------------- encoding
def encode_jpeg(
    image: Image, quality: int = 95, progressive: bool = False, optimize: bool = False,
    downsample: bool = True, unit: int = 1, density: tuple[int, int] = (300, 300),
    xmp: bytes = b"",
) -> bytes:  # fmt: skip
    """An image as a file.

    Args:
        image: uint8 [height, width, 1 or 3].
        quality: 1 to 100; what is outside is taken as the nearest.
        progressive: whether the file shows the whole image early.
        optimize: whether to look for a smaller file of the same pixels.
        downsample: whether colours get half as many pixels each way.
        unit: 1 for inches, 2 for centimetres, to which densities refer.
        density: pixels by unit, across and down.
        xmp: metadata.

    Raises:
        InternalError: the image has no pixel or too many, or the metadata is too long.
    """
    from PIL import Image as Pillow

    height, width, channels = image.shape
    if height <= 0 or width <= 0 or height * width >= _LIMIT or max(height, width) > 65500:
        raise InternalError(None, None, "JPEG encoding failed")
    out = io.BytesIO()
    flat = np.ascontiguousarray(image[:, :, 0] if channels == 1 else image)
    Pillow.fromarray(flat).save(
        out, format="JPEG", quality=min(max(quality, 1), 100), progressive=progressive,
        optimize=optimize, subsampling=2 if downsample and channels == 3 else 0,
    )  # fmt: skip
    return _described(out.getvalue(), unit, density, xmp)


def _described(data: bytes, unit: int, density: tuple[int, int], xmp: bytes) -> bytes:
    """The file with other densities in its first segment, and metadata in the second."""
    end = 4 + int.from_bytes(data[4:6], "big")
    first = bytearray(data[:end])
    # FF D8 FF E0, length, "JFIF\0", version, unit, densities.
    first[13] = unit
    for i, value in enumerate(density):
        first[14 + 2 * i : 16 + 2 * i] = (value & 0xFFFF).to_bytes(2, "big")
    packet = b"http://ns.adobe.com/xap/1.0/\0" + xmp if xmp else b""
    if len(packet) > 65533:
        raise InternalError(None, None, "JPEG encoding failed")
    if packet:
        first += b"\xff\xe1" + (len(packet) + 2).to_bytes(2, "big") + packet
    return bytes(first) + data[end:]
