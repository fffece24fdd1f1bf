"""PNG images, with what libpng makes of palettes, transparency and depths where TF asks it to.

Pillow undoes compression and filters; what becomes of the samples is decided here. The standard:
https://www.w3.org/TR/png.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from opdock.errors import InternalError, InvalidArgumentError

__all__ = ["decode_png", "encode_png"]

Image = npt.NDArray[Any]

_SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
_GRAY, _RGB, _PALETTE, _GRAY_ALPHA, _RGBA = 0, 2, 3, 4, 6
_SAMPLES: Final = {_GRAY: 1, _RGB: 3, _PALETTE: 1, _GRAY_ALPHA: 2, _RGBA: 4}
_DEPTHS: Final = {_GRAY: (1, 2, 4, 8, 16), _PALETTE: (1, 2, 4, 8)}
_MOST: Final = 1040
"""zlib makes at most so many bytes of one."""
_LUMA: Final = (9797, 19234, 3737)
"""Red, green and blue in grey, in 1 / 32768: 0.299, 0.587 and the rest, cut off as libpng does."""


@dataclass
class _File:
    """What the chunks of a file say."""

    width: int
    height: int
    depth: int
    color: int
    palette: bytes = b""
    transparent: bytes | None = None
    packed: list[bytes] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def channels(self) -> int:
        """Channels of the image, alpha from elsewhere than the samples not counted."""
        return 3 if self.color == _PALETTE else _SAMPLES[self.color]

    @property
    def has_alpha(self) -> bool:
        return bool(self.color & 4)


# ---------------------------------------------------------------- chunks
def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes, bool]]:
    """(kind, content, whether both are as they were written), up to the end of the file."""
    at = len(_SIGNATURE)
    while at + 8 <= len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        kind, content = data[at + 4 : at + 8], data[at + 8 : at + 8 + size]
        check = data[at + 8 + size : at + 12 + size]
        sound = len(check) == 4 and zlib.crc32(kind + content) == int.from_bytes(check, "big")
        yield kind, content, sound
        at += 12 + size


def _read(data: bytes) -> _File | None:
    """The file as its chunks describe it; None where the header is broken."""
    chunks = _chunks(data) if data[:8] == _SIGNATURE else iter(())
    kind, content, sound = next(chunks, (b"", b"", False))
    if kind != b"IHDR" or len(content) != 13 or not sound:
        return None
    width, height = (int.from_bytes(content[i : i + 4], "big") for i in (0, 4))
    depth, color, compression, filtering, interlace = content[8:]
    if depth not in _DEPTHS.get(color, (8, 16)) or color not in _SAMPLES:
        return None
    if not (width and height) or compression or filtering or interlace > 1:
        return None
    file = _File(width, height, depth, color)
    for kind, content, sound in chunks:
        if kind == b"IDAT":
            file.packed.append(content)
        elif kind == b"PLTE":
            file.palette = content
        elif kind == b"tRNS" and sound and not file.has_alpha:
            file.transparent = content
        if not sound and kind[:1].isupper():
            file.problems.append(f"chunk {kind!r}")
        if kind == b"IEND":
            break
    else:
        file.problems.append("no end")
    if color == _PALETTE:
        file.palette = file.palette[: 3 << depth]
        if not file.palette:
            return None
        if file.transparent is not None and len(file.transparent) > len(file.palette) // 3:
            file.transparent = None  # more entries than colours: libpng takes none
    return file


# ---------------------------------------------------------------- decoding
def decode_png(data: bytes, channels: int = 0, bits: int = 8) -> Image:
    """The pixels of an image.

    Args:
        data: the file.
        channels: 1, 3 or 4, or 0 for those of the file: a palette has 3, or 4 where it is
            transparent.
        bits: 8 or 16; deeper samples lose their lower half, others are stretched.

    Returns:
        uint8 or uint16 [height, width, channels].

    Raises:
        InvalidArgumentError: the file is no PNG image, broken, or too large.
    """
    size = len(data)
    file = _read(data)
    if file is None:
        raise InvalidArgumentError(None, None, f"Invalid PNG header, data size {size}")
    most = 1 << 27
    if file.width >= most or file.height >= most or file.width * file.height >= 1 << 29:
        raise InvalidArgumentError(
            None, None, f"PNG size too large for int: {file.width} by {file.height}"
        )
    row = (file.width * file.depth * _SAMPLES[file.color] + 7) // 8
    if file.problems or row * file.height > sum(map(len, file.packed)) * _MOST:
        raise InvalidArgumentError(None, None, f"Invalid PNG data, size {size}")
    # Only what the pixels need: Pillow is strict about chunks that say something else.
    parts = [(b"IHDR", data[16:29]), *((b"IDAT", part) for part in file.packed), (b"IEND", b"")]
    if file.color == _PALETTE:
        parts.insert(1, (b"PLTE", file.palette))
    try:
        samples = _samples(_SIGNATURE + b"".join(_chunk(*part) for part in parts), file)
    except Exception as e:  # Pillow raises what its parts raise
        raise InvalidArgumentError(None, None, f"Invalid PNG data, size {size}") from e
    if not channels:
        see_through = file.color == _PALETTE and file.transparent is not None
        channels = 4 if see_through else file.channels
    return _converted(samples, file, channels, bits)


def _samples(data: bytes, file: _File) -> Image:
    """The samples as the file has them, [height, width, samples]; below 8 bits as they count."""
    shape = (file.height, file.width, _SAMPLES[file.color])
    if file.depth == 16:
        # Bytes are unpacked as other modes have them, so that none is lost.
        if file.color in (_GRAY, _GRAY_ALPHA):
            mode = "LA" if file.color == _GRAY else "RGBA"
            pairs = _unpacked(data, mode, mode)
            return pairs.reshape(*shape, 2).view(">u2")[..., 0].astype(np.uint16)
        mode = "RGB" if file.color == _RGB else "RGBA"
        high, low = (_unpacked(data, mode, f"{mode};16{end}") for end in "BL")
        return (high.astype(np.uint16) << 8) | low
    image = _opened(data)
    if file.depth == 1 and file.color == _GRAY:
        return np.asarray(image).reshape(shape).astype(np.uint8)
    samples = np.asarray(image).reshape(shape).astype(np.uint8, copy=False)
    if file.color == _GRAY and file.depth < 8:
        samples = samples // (255 // ((1 << file.depth) - 1))  # Pillow has stretched them
    return samples


def _opened(data: bytes) -> Any:
    """Pillow's image, without its limit of pixels: the file's size has been checked."""
    from PIL.PngImagePlugin import PngImageFile

    return PngImageFile(io.BytesIO(data))


def _unpacked(data: bytes, mode: str, raw: str) -> Image:
    """The bytes of an image that Pillow reads as if it had another mode."""
    image = _opened(data)
    image._mode = mode
    # Plain tuples until Pillow 11.
    image.tile = [
        tile._replace(args=raw) if hasattr(tile, "_replace") else (*tile[:3], raw)
        for tile in image.tile
    ]
    return np.asarray(image, np.uint8)


def _converted(samples: Image, file: _File, channels: int, bits: int) -> Image:
    """Samples as pixels of other channels and another depth."""
    color, alpha = _color_and_alpha(samples, file)
    if channels < 3 and color.shape[2] == 3:
        color = _gray(color)
    elif channels >= 3 and color.shape[2] == 1:
        color = np.repeat(color, 3, axis=2)
    if file.depth == 16 and bits == 8:
        color = (color >> 8).astype(np.uint8)
        alpha = None if alpha is None else (alpha >> 8).astype(np.uint8)
    if channels % 2 == 0:
        if alpha is None:
            # The deepest value of the file, however deep it is now: that is what libpng is told.
            full = (1 << file.depth) - 1 & np.iinfo(color.dtype).max
            alpha = np.full((*color.shape[:2], 1), full, color.dtype)
        color = np.concatenate([color, alpha], axis=2)
    if bits == 16 and file.depth <= 8:
        color = color.astype(np.uint16) * np.uint16(257)
    return np.ascontiguousarray(color)


def _color_and_alpha(samples: Image, file: _File) -> tuple[Image, Image | None]:
    """Grey or colours of 8 or 16 bits, and how opaque they are where the file says so."""
    full = samples.dtype.type(np.iinfo(samples.dtype).max)
    if file.color == _PALETTE:
        return _looked_up(samples, file)
    if file.has_alpha:
        return samples[..., :-1], samples[..., -1:]
    alpha = None
    if file.transparent is not None and len(file.transparent) >= 2 * samples.shape[2]:
        key = np.frombuffer(file.transparent, ">u2", samples.shape[2])
        is_key = (samples == key).all(axis=2, keepdims=True)
        alpha = np.where(is_key, samples.dtype.type(0), full)
    if file.depth < 8:
        samples = samples * np.uint8(255 // ((1 << file.depth) - 1))
    return samples, alpha


def _looked_up(samples: Image, file: _File) -> tuple[Image, Image | None]:
    """Colours from the palette; numbers beyond its end are black."""
    table = np.zeros((256, 3), np.uint8)
    known = np.frombuffer(file.palette[: len(file.palette) // 3 * 3], np.uint8).reshape(-1, 3)
    table[: len(known[:256])] = known[:256]
    index = samples[..., 0]
    if file.transparent is None:
        return table[index], None
    opaque = np.full(256, 255, np.uint8)
    given = np.frombuffer(file.transparent[:256], np.uint8)
    opaque[: len(given)] = given
    return table[index], opaque[index][..., None]


def _gray(color: Image) -> Image:
    """Grey as libpng finds it: cut off for 8 bits, rounded for 16."""
    wide = color.astype(np.int64)
    total = wide @ np.array(_LUMA)
    if color.dtype == np.uint16:
        total += 1 << 14
    plain = (color[..., 0] == color[..., 1]) & (color[..., 0] == color[..., 2])
    return np.where(plain, wide[..., 0], total >> 15).astype(color.dtype)[..., None]


# ---------------------------------------------------------------- encoding
def encode_png(image: Image, compression: int = -1) -> bytes:
    """An image as a file.

    Args:
        image: uint8 or uint16 [height, width, 1 to 4].
        compression: 0 to 9, or -1 for zlib's own choice.

    Raises:
        InternalError: the image has no pixel.
    """
    height, width, channels = image.shape
    if height <= 0 or width <= 0:
        raise InternalError(None, None, "PNG encoding failed")
    color = (_GRAY, _GRAY_ALPHA, _RGB, _RGBA)[channels - 1]
    depth = 8 * image.dtype.itemsize
    header = width.to_bytes(4, "big") + height.to_bytes(4, "big") + bytes([depth, color, 0, 0, 0])
    raw = image.astype(">u2") if depth == 16 else image
    rows = np.ascontiguousarray(raw).view(np.uint8).reshape(height, -1)
    lines = _filtered(rows, channels * depth // 8)
    level = compression if -1 <= compression <= 9 else -1
    packed = zlib.compress(lines.tobytes(), level)
    parts = ((b"IHDR", header), (b"IDAT", packed), (b"IEND", b""))
    return _SIGNATURE + b"".join(_chunk(kind, content) for kind, content in parts)


def _chunk(kind: bytes, content: bytes) -> bytes:
    check = zlib.crc32(kind + content)
    return len(content).to_bytes(4, "big") + kind + content + check.to_bytes(4, "big")


def _filtered(rows: Image, step: int) -> Image:
    """Each row after the filter that leaves the smallest bytes, with the filter's number before."""
    left, above = np.zeros_like(rows), np.zeros_like(rows)
    left[:, step:], above[1:] = rows[:, :-step], rows[:-1]
    corner = np.zeros_like(rows)
    corner[1:, step:] = rows[:-1, :-step]
    mean = ((left.astype(np.uint16) + above) >> 1).astype(np.uint8)
    guesses = (np.zeros_like(rows), left, above, mean, _paeth(left, above, corner))
    best = np.full(rows.shape[0], np.iinfo(np.int64).max)
    out = np.empty((rows.shape[0], rows.shape[1] + 1), np.uint8)
    for number, guess in enumerate(guesses):
        line = rows - guess
        cost = np.abs(line.view(np.int8).astype(np.int16)).sum(axis=1, dtype=np.int64)
        better = cost < best
        best = np.where(better, cost, best)
        out[better, 0] = number
        out[better, 1:] = line[better]
    return out


def _paeth(left: Image, above: Image, corner: Image) -> Image:
    """Of the three neighbours the one that is nearest to left + above - corner."""
    a, b, c = (x.astype(np.int16) for x in (left, above, corner))
    to_left, to_above, to_corner = np.abs(b - c), np.abs(a - c), np.abs(a + b - 2 * c)
    return np.where(
        (to_left <= to_above) & (to_left <= to_corner),
        left,
        np.where(to_above <= to_corner, above, corner),
    )
