"""Streams of zlib and gzip over files, as record files use them."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import IO, Final, Self

from opdock import errors

__all__ = ["DeflateOptions", "DeflateReader", "DeflateWriter"]

_CHUNK: Final = 1 << 20
GZIP_BITS: Final = zlib.MAX_WBITS + 16
"""zlib's number for a window of full size in gzip's wrapping."""


@dataclass(frozen=True, slots=True)
class DeflateOptions:
    """How a stream is compressed, in zlib's own numbers.

    Attributes:
        window_bits: the window's size and the wrapping: 8 to 15 for zlib, 16 more for gzip.
        level: 0 to 9, or -1 for zlib's choice.
        method: zlib has one, 8.
        mem_level: 1 to 9.
        strategy: one of zlib's.
        flush_mode: how the stream is flushed whenever `buffer_size` bytes have been taken in.
        buffer_size: in bytes.
    """

    window_bits: int = zlib.MAX_WBITS
    level: int = zlib.Z_DEFAULT_COMPRESSION
    method: int = zlib.DEFLATED
    mem_level: int = 9
    strategy: int = zlib.Z_DEFAULT_STRATEGY
    flush_mode: int = zlib.Z_NO_FLUSH
    buffer_size: int = 256 << 10


class _Stream:
    """What both directions share: the file below, which the stream owns."""

    def __init__(self, raw: IO[bytes]) -> None:
        self._raw = raw

    def close(self) -> None:
        """Closes the file."""
        self._raw.close()

    @property
    def closed(self) -> bool:
        """Whether the file is closed."""
        return self._raw.closed

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class DeflateWriter(_Stream):
    """Compresses what is written.

    Args:
        raw: the file.
        options: how.

    Raises:
        InvalidArgumentError: zlib does not know such options.
    """

    def __init__(self, raw: IO[bytes], options: DeflateOptions) -> None:
        super().__init__(raw)
        self._options = options
        self._taken = 0
        try:
            self._out = zlib.compressobj(
                options.level, options.method, options.window_bits, options.mem_level,
                options.strategy,
            )  # fmt: skip
        except (ValueError, zlib.error) as e:
            raw.close()
            raise errors.InvalidArgumentError(
                None, None, f"deflateInit failed with {options}: {e}"
            ) from None

    def write(self, data: bytes) -> int:
        """Compresses bytes."""
        self._raw.write(self._out.compress(data))
        self._taken += len(data)
        mode = self._options.flush_mode
        if mode != zlib.Z_NO_FLUSH and self._taken >= self._options.buffer_size:
            self._taken = 0
            self._raw.write(self._out.flush(mode))
        return len(data)

    def flush(self) -> None:
        """Hands all that was written to the operating system, so that it can be read."""
        self._raw.write(self._out.flush(zlib.Z_SYNC_FLUSH))
        self._raw.flush()

    def finish(self) -> None:
        """Ends the stream; the file stays open."""
        self._raw.write(self._out.flush())

    def close(self) -> None:
        """Ends the stream and closes the file."""
        if not self.closed:
            self.finish()
        super().close()


class DeflateReader(_Stream):
    """Unpacks a stream, or several that follow each other.

    Args:
        raw: the file.
        window_bits: as in `DeflateOptions`.
    """

    def __init__(self, raw: IO[bytes], window_bits: int) -> None:
        super().__init__(raw)
        self._bits = window_bits
        self._in = zlib.decompressobj(window_bits)
        self._pending = bytearray()
        self._begun = False

    @property
    def whole(self) -> bool:
        """Whether the last stream that was begun has come to its end, and so to its checksum."""
        return self._in.eof or not self._begun

    def read(self, size: int) -> bytes:
        """The next bytes; fewer at the end.

        Raises:
            DataLossError: the file holds no such stream.
        """
        try:
            while len(self._pending) < size and self._unpack():
                pass
        except zlib.error as e:
            raise errors.DataLossError(None, None, f"inflate() failed: {e}") from e
        out = bytes(self._pending[:size])
        del self._pending[:size]
        return out

    def _unpack(self) -> bool:
        """Unpacks a little more; whether there was more."""
        data = self._in.unused_data if self._in.eof else self._in.unconsumed_tail
        data = data or self._raw.read(_CHUNK)
        if not data:
            self._pending += self._in.flush()
            return False
        if self._in.eof:
            self._in = zlib.decompressobj(self._bits)
        self._begun = True
        # Bounded steps keep a hostile stream from expanding beyond what is asked for.
        self._pending += self._in.decompress(data, _CHUNK)
        return True
