"""Snappy's block format, decompression only: TF's V1 checkpoints may use it."""

from __future__ import annotations

from opdock import errors
from opdock.io.varint import read_varint


def _corrupt(why: str) -> errors.DataLossError:
    return errors.DataLossError(None, None, f"corrupted compressed block: {why}")


def decompress(data: bytes, limit: int = 1 << 30) -> bytes:
    """The original of a compressed block.

    Args:
        data: the compressed bytes.
        limit: the largest size to believe.

    Raises:
        DataLossError: the data is malformed or claims more than `limit` bytes.
    """
    size, at = read_varint(data, 0, "snappy length")
    if size > limit:
        raise _corrupt(f"{size} bytes claimed")
    out = bytearray()
    end = len(data)
    while at < end:
        tag = data[at]
        at += 1
        kind = tag & 3
        if kind == 0:
            length = tag >> 2
            if length >= 60:
                extra = length - 59
                length = int.from_bytes(data[at : at + extra], "little")
                at += extra
            length += 1
            if at + length > end:
                raise _corrupt("literal past the end")
            out += data[at : at + length]
            at += length
        else:
            if kind == 1:
                length, width = (tag >> 2 & 7) + 4, 1
            else:
                length, width = (tag >> 2) + 1, 2 if kind == 2 else 4
            if at + width > end:
                raise _corrupt("copy past the end")
            offset = int.from_bytes(data[at : at + width], "little")
            if kind == 1:
                offset |= (tag >> 5) << 8
            at += width
            if not 0 < offset <= len(out):
                raise _corrupt(f"copy from {offset} bytes back, {len(out)} written")
            start = len(out) - offset
            # A copy may overlap what it writes: it repeats the last `offset` bytes.
            piece = bytes(out[start : start + length])
            while len(piece) < length:
                piece += piece[: length - len(piece)]
            out += piece
        if len(out) > size:
            raise _corrupt("more bytes than claimed")
    if len(out) != size:
        raise _corrupt(f"{len(out)} bytes of {size}")
    return bytes(out)
