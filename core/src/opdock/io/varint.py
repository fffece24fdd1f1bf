"""Variable-length integers and the order-preserving key code of checkpoint slices."""

from __future__ import annotations

from opdock import errors


def write_varint(out: bytearray, value: int) -> None:
    """Appends an unsigned integer in base 128, low digits first."""
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def read_varint(data: bytes | memoryview, offset: int, what: str = "varint") -> tuple[int, int]:
    """(value, offset behind it); DataLossError when the bytes end or the number is too long."""
    value = shift = 0
    for _ in range(10):
        if offset >= len(data):
            break
        byte = data[offset]
        offset += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, offset
        shift += 7
    raise errors.DataLossError(None, None, f"corrupted {what} at byte {offset}")


def ordered_unsigned(out: bytearray, value: int) -> None:
    """Appends an unsigned integer so that the bytes sort as the numbers do: length, then digits."""
    digits = value.to_bytes((value.bit_length() + 7) // 8, "big")
    out.append(len(digits))
    out += digits


def ordered_string(out: bytearray, value: bytes) -> None:
    """Appends a string so that it sorts before its own extensions (0 and 255 are escaped)."""
    for byte in value:
        out.append(byte)
        if byte in (0x00, 0xFF):
            out.append(byte ^ 0xFF)
    out += b"\x00\x01"


def ordered_signed(out: bytearray, value: int) -> None:
    """Appends a signed integer so that the bytes sort as the numbers do.

    n bytes start with n one bits and a zero, which leaves 7n - 1 bits for the number; a negative
    number is the complement of the code of its complement.
    """
    magnitude = ~value if value < 0 else value
    size = magnitude.bit_length() // 7 + 1
    code = ((1 << size) - 1) << (7 * size) | magnitude
    if value < 0:
        code ^= (1 << 8 * size) - 1
    out += code.to_bytes(size, "big")
