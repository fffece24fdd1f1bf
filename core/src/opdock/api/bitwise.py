"""`tf.bitwise`: operations on the bits of integer tensors."""

from __future__ import annotations

from opdock.ops.bitwise import bitwise_and, bitwise_or, bitwise_xor, invert, left_shift, right_shift

__all__ = ["bitwise_and", "bitwise_or", "bitwise_xor", "invert", "left_shift", "right_shift"]
