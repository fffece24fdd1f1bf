"""Encoded images of any format: which it is, and decoding as TF's ops do; BMP images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from opdock.errors import InvalidArgumentError
from opdock.io.gif_format import decode_gif
from opdock.io.jpeg_format import decode_jpeg, read_header
from opdock.io.png_format import decode_png

__all__ = ["JpegOptions", "decode_bmp", "decode_image", "jpeg_shape"]

Image = npt.NDArray[Any]

_MAGIC: Final = (
    (b"\xff\xd8\xff", "JPEG"),
    (b"\x89PNG\r\n\x1a\n", "PNG"),
    (b"GIF8", "GIF"),
)


@dataclass(frozen=True)
class JpegOptions:
    """How JPEG images are decoded; see `jpeg_format.decode_jpeg`."""

    ratio: int = 1
    fancy: bool = True
    recover: bool = False
    fast: bool = True


_DEFAULT: Final = JpegOptions()


def _invalid(message: str) -> InvalidArgumentError:
    return InvalidArgumentError(None, None, message)


def _escaped(data: bytes) -> str:
    """Bytes as C writes them in a string, octal where they cannot be printed."""
    plain = {10: "\\n", 13: "\\r", 9: "\\t", 34: '\\"', 39: "\\'", 92: "\\\\"}
    return "".join(plain.get(b) or (chr(b) if 32 <= b < 127 else f"\\{b:03o}") for b in data)


def _format(data: bytes) -> str | None:
    for magic, name in _MAGIC:
        if data.startswith(magic):
            return name
    return None


def decode_image(
    data: bytes, wanted: str, channels: int = 0, bits: int = 8,
    options: JpegOptions | None = None, window: tuple[int, int, int, int] | None = None,
) -> Image:  # fmt: skip
    """The pixels of a JPEG, PNG or GIF image, whichever it is, as an op for one of them gives them.

    Args:
        data: the file.
        wanted: the format of the op, "JPEG", "PNG" or "GIF".
        channels: 0, 1, 3 or 4.
        bits: 8, or 16 for PNG images.
        options: for JPEG images.
        window: the part that is wanted of a JPEG image.

    Returns:
        uint8 or uint16 [height, width, channels]; with frames in front where `wanted` is "GIF".

    Raises:
        InvalidArgumentError: it is none of these, is broken, or has not what is asked of it.
    """
    found = _format(data)
    if found is None:
        what = f"unknown format starting with '{_escaped(data[:16])}'" if data else "empty file"
        raise _invalid(f"Expected image (JPEG, PNG, or GIF), got {what}")
    if bits != 8 and found != "PNG":
        raise _invalid(f"{found} does not support uint16 output")
    channels = 3 if wanted == "GIF" else channels
    if found == "GIF":
        if channels not in (0, 3):
            raise _invalid(f"channels must be 0 or 3 for GIF, got {channels}")
        frames: Image = decode_gif(data)
        if wanted == "GIF":
            return frames
        if len(frames) != 1:
            raise _invalid(
                f"Got {len(frames)} frames, but animated gifs can only be decoded by "
                "tf.image.decode_gif or tf.image.decode_image"
            )
        pixels: Image = frames[0]
        return pixels
    if found == "PNG":
        pixels = decode_png(data, channels, bits)
    else:
        if channels not in (0, 1, 3):
            raise _invalid(f"channels must be 0, 1, or 3 for JPEG, got {channels}")
        how = options or _DEFAULT
        pixels = decode_jpeg(data, channels, how.ratio, how.fancy, how.recover, how.fast, window)
    return pixels[None] if wanted == "GIF" else pixels


def jpeg_shape(data: bytes) -> tuple[int, int, int]:
    """Height, width and channels of a JPEG image; InvalidArgumentError when it is none."""
    header = read_header(data)
    if header is None:
        raise _invalid(f"Invalid JPEG data, size {len(data)}")
    return header.height, header.width, header.components


# ---------------------------------------------------------------- BMP
_ORDER: Final = {1: [0], 3: [2, 1, 0], 4: [2, 1, 0, 3]}
"""Where red, green, blue and alpha are in a pixel."""


def decode_bmp(data: bytes, channels: int = 0) -> Image:
    """The pixels of a BMP image of 8, 24 or 32 bits a pixel; palettes are not looked at.

    Args:
        data: the file.
        channels: 1, 3 or 4, which must be those of the file, or 0.

    Returns:
        uint8 [height, width, channels].

    Raises:
        InvalidArgumentError: the file is too short for what its header says, or has other channels.
    """
    if len(data) < 32:
        raise _invalid(
            "Incomplete bmp content, requires at least 32 bytes to find the header size, width, "
            f"height, and bpp, got {len(data)} bytes"
        )
    header, width, height = (
        int.from_bytes(data[at : at + 4], "little", signed=True) for at in (10, 18, 22)
    )
    found = int.from_bytes(data[28:32], "little", signed=True) // 8
    if channels and channels != found:
        raise _invalid(
            f"channels attribute {channels} does not match bits per pixel from file {found}"
        )
    if found not in (1, 3, 4):
        raise _invalid(f"Number of channels must be 1, 3 or 4, was {found}")
    if width <= 0:
        raise _invalid("Width must be positive")
    if height == 0:
        raise _invalid("Height must be nonzero")
    if header < 0:
        raise _invalid("header size must be nonnegative")
    rows = abs(height)
    if width * rows >= (2**31 - 1) // 8:
        raise _invalid("Total possible pixel bytes must be less than 2^30")
    row = (found * width + 3) // 4 * 4
    needed = header + (rows - 1) * row + width * found
    if needed > len(data):
        raise _invalid(
            f"Incomplete bmp content, requires at least {needed} bytes, got {len(data)} bytes"
        )
    lines = np.lib.stride_tricks.as_strided(
        np.frombuffer(data, np.uint8, offset=header), (rows, width, found), (row, found, 1)
    )
    # From the bottom up, unless the height is negative; blue comes first.
    lines = lines if height < 0 else lines[::-1]
    return np.ascontiguousarray(lines[..., _ORDER[found]])
