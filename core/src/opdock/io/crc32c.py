"""CRC32C, plain and in TF's masked form.

A CRC stored next to the data it covers is masked, because the CRC of bytes that hold their own CRC
is degenerate. The mask rotates and adds a constant.
"""

from __future__ import annotations

from typing import Any

import google_crc32c

_value = google_crc32c.value
_MASK_DELTA = 0xA282EAD8
_U32 = 0xFFFFFFFF


def extend(crc: int, data: Any) -> int:
    """The CRC of everything so far, whose CRC is `crc`, followed by `data` (bytes or an array)."""
    if isinstance(data, (memoryview, bytearray)):
        data = bytes(data)
    return int(google_crc32c.extend(crc, data))


def value(data: Any) -> int:
    """The unmasked CRC32C of `data`."""
    return extend(0, data)


def mask(crc: int) -> int:
    """The masked form of a CRC."""
    return ((crc >> 15 | crc << 17) + _MASK_DELTA) & _U32


def unmask(masked: int) -> int:
    """The inverse of `mask`."""
    rotated = (masked - _MASK_DELTA) & _U32
    return (rotated >> 17 | rotated << 15) & _U32


def masked(data: Any) -> int:
    """The masked CRC32C of `data`, as stored in records, tables and bundles."""
    crc = _value(data) if type(data) is bytes else value(data)
    return ((crc >> 15 | crc << 17) + _MASK_DELTA) & _U32
