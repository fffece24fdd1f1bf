"""16-bit WAV files: a header, and the samples of all channels, frame after frame."""

from __future__ import annotations

import struct
from typing import Any, NoReturn

import numpy as np

from opdock import errors

Array = np.ndarray[Any, Any]

__all__ = ["decode_wav", "encode_wav"]

_PCM, _BITS, _FORMAT = 1, 16, 16
_SCALE = float(1 << 15)


def _invalid(message: str) -> NoReturn:
    raise errors.InvalidArgumentError(None, None, message)


def encode_wav(audio: Array, sample_rate: int) -> bytes:
    """A file of float samples in -1..1, [frames, channels]; what is beyond is cut off.

    Raises:
        InvalidArgumentError: there are no samples, or more than a file holds.
    """
    frames, channels = audio.shape
    if not 0 < sample_rate < 1 << 32:
        _invalid(f"sample_rate must be in (0, 2^32), got: {sample_rate}")
    if not 0 < channels < 1 << 16:
        _invalid(f"num_channels must be in (0, 2^16), got: {channels}")
    if not frames:
        _invalid("num_frames must be positive.")
    size = 2 * audio.size
    if size + 44 >= 1 << 32:
        _invalid("Provided channels and frames cannot be encoded as a WAV.")
    scaled = audio.astype(np.float32) * np.float32(_SCALE)
    # Halves go away from zero, as C rounds them.
    rounded = np.trunc(scaled + np.copysign(np.float32(0.5), scaled))
    samples = np.clip(rounded, -_SCALE, _SCALE - 1).astype("<i2")
    frame = 2 * channels
    head = struct.pack(
        "<4sI4s4sIHHIIHH4sI", b"RIFF", size + 36, b"WAVE", b"fmt ", _FORMAT, _PCM, channels,
        sample_rate, (sample_rate * frame) & 0xFFFFFFFF, frame & 0xFFFF, _BITS, b"data", size,
    )  # fmt: skip
    return bytes(head + samples.tobytes())


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, count: int) -> bytes:
        if self.at > len(self.data):
            _invalid(f"Initial offset is outside data range: {self.at}")
        if self.at + count > len(self.data):
            _invalid("Data too short when trying to read string")
        self.at += count
        return self.data[self.at - count : self.at]

    def expect(self, text: bytes) -> None:
        found = self.take(len(text))
        if found != text:
            _invalid(
                f"Header mismatch: Expected {text.decode()} but found "
                f"{found.decode('ascii', 'backslashreplace')}"
            )

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "little")


def decode_wav(data: bytes) -> tuple[Array, int]:
    """The samples, float32 [frames, channels] in -1..1, and the sample rate.

    Raises:
        InvalidArgumentError: the file is no 16-bit PCM WAV, or broken.
    """
    reader = _Reader(data)
    reader.expect(b"RIFF")
    reader.number(4)
    reader.expect(b"WAVE")
    channels, rate, frame = _format(reader)
    samples = None
    while reader.at < len(data):
        name, size = reader.take(4), reader.number(4)
        if size > (1 << 31) - 1:
            _invalid(
                f"WAV data chunk '{name.decode('ascii', 'backslashreplace')}' is too large: {size} "
                f"bytes, but the limit is {(1 << 31) - 1}"
            )
        if name != b"data":
            reader.at += size
        elif samples is not None:
            _invalid("More than one data chunk found in WAV")
        else:
            samples = np.frombuffer(reader.take(size // frame * frame), "<i2")
    if samples is None:
        _invalid("No data chunk found in WAV")
    return samples.reshape(-1, channels).astype(np.float32) / np.float32(_SCALE), rate


def _format(reader: _Reader) -> tuple[int, int, int]:
    """(channels, sample rate, bytes of a frame)."""
    reader.expect(b"fmt ")
    size = reader.number(4)
    if size not in (16, 18):
        _invalid(f"Bad file size for WAV: Expected 16 or 18, but got {size}")
    coding = reader.number(2)
    if coding != _PCM:
        _invalid(f"Bad audio format for WAV: Expected 1 (PCM), but got {coding}")
    channels = reader.number(2)
    if channels < 1:
        _invalid(f"Bad number of channels for WAV: Expected at least 1, but got {channels}")
    rate, per_second, frame, bits = (reader.number(n) for n in (4, 4, 2, 2))
    if bits != _BITS:
        _invalid(f"Can only read 16-bit WAV files, but received {bits}")
    if frame != 2 * channels:
        _invalid(f"Bad bytes per sample in WAV header: Expected {2 * channels} but got {frame}")
    if per_second != (frame * rate) & 0xFFFFFFFF:
        _invalid(
            f"Bad bytes per second in WAV header: Expected {frame * rate} but got {per_second} "
            f"(sample_rate={rate}, bytes_per_sample={frame})"
        )
    if size == 18:
        reader.take(2)
    return channels, rate, frame
