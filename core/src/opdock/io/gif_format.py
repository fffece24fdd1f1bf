"""GIF images: all frames, drawn one over the other as TF does, transparency left out.

Pillow undoes the compression of each frame. The format: https://www.w3.org/Graphics/GIF/.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from opdock.errors import InvalidArgumentError

__all__ = ["decode_gif"]

Image = npt.NDArray[np.uint8]

_MOST: Final = 4096
"""No code of the compression stands for more pixels."""
_IMAGE, _EXTENSION, _END = 0x2C, 0x21, 0x3B
_RAMP: Final = bytes(i for i in range(256) for _ in range(3))
"""A palette in which each colour is its number."""


@dataclass(frozen=True)
class _Frame:
    left: int
    top: int
    width: int
    height: int
    interlaced: bool
    palette: Image | None
    bits: int
    packed: bytes


class _Reader:
    """A file from its beginning; EOFError at its end."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, size: int) -> bytes:
        found = self.data[self.at : self.at + size]
        if len(found) < size:
            raise EOFError("Image EOF detected before image complete")
        self.at += size
        return found

    def byte(self) -> int:
        return self.take(1)[0]

    def short(self) -> int:
        return int.from_bytes(self.take(2), "little")

    def palette(self, flags: int) -> Image | None:
        """The table of colours that the flags announce."""
        if not flags & 0x80:
            return None
        size = 3 << (flags & 7) + 1
        return np.frombuffer(self.take(size), np.uint8).reshape(-1, 3)

    def blocks(self) -> bytes:
        """Pieces up to an empty one, with their lengths as they stand."""
        start = self.at
        while size := self.byte():
            self.take(size)
        return self.data[start : self.at]

    def frame(self, shared: Image | None) -> _Frame:
        left, top, width, height = (self.short() for _ in range(4))
        flags = self.byte()
        own = self.palette(flags)
        bits = self.byte()
        packed = self.blocks()
        palette = shared if own is None else own
        return _Frame(left, top, width, height, bool(flags & 0x40), palette, bits, packed)


def _frames(data: bytes) -> list[_Frame]:
    """All frames; EOFError or ValueError when the file is not as it should be."""
    reader = _Reader(data)
    if reader.take(6) not in (b"GIF87a", b"GIF89a"):
        raise ValueError("Data is not in GIF format")
    reader.take(4)
    flags = reader.byte()
    reader.take(2)
    shared = reader.palette(flags)
    frames = []
    while (kind := reader.byte()) != _END:
        if kind == _IMAGE:
            frames.append(reader.frame(shared))
        elif kind == _EXTENSION:
            reader.take(1)
            reader.blocks()
        else:
            raise ValueError("Wrong record type detected")
    return frames


def _numbers(frame: _Frame) -> Image:
    """The numbers of a frame's colours: Pillow reads it as a file of its own."""
    from PIL.GifImagePlugin import GifImageFile

    if frame.width * frame.height > len(frame.packed) * 8 * _MOST:
        raise EOFError("Image EOF detected before image complete")
    size = frame.width.to_bytes(2, "little") + frame.height.to_bytes(2, "little")
    screen = size + b"\xf7\0\0" + _RAMP
    image = b"\0\0\0\0" + size + (b"\x40" if frame.interlaced else b"\0")
    file = b"GIF89a" + screen + b"\x2c" + image + bytes([frame.bits]) + frame.packed + b"\x3b"
    return np.asarray(GifImageFile(io.BytesIO(file)), np.uint8)


def decode_gif(data: bytes) -> Image:
    """The frames of an image, as large as the largest of them.

    Args:
        data: the file.

    Returns:
        uint8 [frames, height, width, 3].

    Raises:
        InvalidArgumentError: the file is no GIF image or broken, or its first frame does not fill
            it.
    """
    try:
        frames = _frames(data)
        parts = [(frame, _numbers(frame)) for frame in frames]
    except Exception as e:  # Pillow raises what its parts raise
        problem = e if type(e) in (EOFError, ValueError) else "Image is defective, decoding aborted"
        raise _bad(data, f"failed to slurp gif file: {problem}") from e
    if not frames:
        raise _bad(data, "gif file does not contain any image")
    height = max(frame.height for frame in frames)
    width = max(frame.width for frame in frames)
    out = np.empty((len(frames), height, width, 3), np.uint8)
    for k, (frame, numbers) in enumerate(parts):
        _draw(data, out, k, frame, numbers)
    return out


def _bad(data: bytes, problem: str) -> InvalidArgumentError:
    return InvalidArgumentError(None, None, f"Invalid GIF data (size {len(data)}), {problem}")


def _draw(data: bytes, out: Image, k: int, frame: _Frame, numbers: Image) -> None:
    """Draws a frame over the one before it."""
    _, height, width, _ = out.shape
    if (frame.left, frame.top, frame.width, frame.height) != (0, 0, width, height):
        if k == 0:
            raise _bad(data, "the first frame does not fill the canvas")
        out[k] = out[k - 1]
    if frame.palette is None:
        raise _bad(data, f"missing color map for frame {k}")
    seen = numbers[: max(height - frame.top, 0), : max(width - frame.left, 0)]
    if seen.size and int(seen.max()) >= len(frame.palette):
        raise _bad(
            data,
            f"found color index {int(seen.max())} outside of color map range {len(frame.palette)}",
        )
    bottom, right = frame.top + seen.shape[0], frame.left + seen.shape[1]
    out[k, frame.top : bottom, frame.left : right] = frame.palette[seen]
