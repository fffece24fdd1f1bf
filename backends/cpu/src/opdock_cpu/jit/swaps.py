"""Swaps one after the other, as a shuffle makes them: no array function does that."""

from __future__ import annotations

import functools
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from opdock.plugin import philox
from opdock_cpu.jit import llvm
from opdock_cpu.jit.compiled import Function, caller, ffi, request
from opdock_cpu.philox import Philox

__all__ = ["MANY", "swapped"]

MANY: Final = 1 << 12
"""Rows from which generated code pays."""
_WORTH: Final = 1 << 17
"""Rows for which Python takes longer than the compiler."""
_WORDS: Final = (1 << 32) - 1
"""Rows of which a word can tell one."""
_SHORT: Final = 1 << 31
"""Rows whose numbers have four bytes: half of the memory that is jumped about in."""
_SOURCE: Final = """
define void @NAME(ptr noalias %order, ptr noalias %words, i64 %n) nounwind {
entry:
  %many = trunc i64 %n to i32
  %any = icmp ugt i64 %n, 1
  br i1 %any, label %loop, label %end
loop:
  %i = phi i64 [0, %entry], [%next, %loop]
  %left = phi i32 [%many, %entry], [%fewer, %loop]
  %w = getelementptr i32, ptr %words, i64 %i
  %word = load i32, ptr %w
  %offset = urem i32 %word, %left
  %far = zext i32 %offset to i64
  %j = add i64 %i, %far
  %p = getelementptr KIND, ptr %order, i64 %i
  %q = getelementptr KIND, ptr %order, i64 %j
  %a = load KIND, ptr %p
  %b = load KIND, ptr %q
  store KIND %b, ptr %p
  store KIND %a, ptr %q
  %next = add i64 %i, 1
  %fewer = sub i32 %left, 1
  %more = icmp ugt i32 %fewer, 1
  br i1 %more, label %loop, label %end
end:
  ret void
}
"""
"""Row i changes places with one of itself and the `left` - 1 behind it."""


@functools.cache
def _function(kind: str) -> Function:
    text = _SOURCE.replace("KIND", kind)
    return request(lambda name: text.replace("NAME", name))


def swapped(place: philox.Place, length: int) -> npt.NDArray[Any]:
    """What `philox.shuffled` gives, by generated code as soon as there is some.

    Args:
        place: of the random stream.
        length: how many rows are shuffled.

    Returns:
        Whole numbers, of four bytes where those suffice.
    """
    if not llvm.available() or length > _WORDS:
        return philox.shuffled(place, length)
    short = length < _SHORT
    function = _function("i32" if short else "i64")
    if function.address is None and length >= _WORTH and not function.failure:
        function.compile()
    if function.address is None:
        return philox.shuffled(place, length)
    order = np.arange(length, dtype=np.int32 if short else np.int64)
    words = Philox(*place).blocks(-(-(length - 1) // 4))
    pointers = [ffi().from_buffer(a) for a in (order, words)]
    caller(2)(function.address)(*pointers, length)
    return order
