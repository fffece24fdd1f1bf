"""Swaps one after the other, as a shuffle makes them: no array function does that."""

from __future__ import annotations

import functools
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from opdock.plugin import philox
from opdock_cpu.jit import llvm
from opdock_cpu.jit.compiled import Function, caller, ffi, request
from opdock_cpu.jit.draws import drawn

__all__ = ["MANY", "swapped"]

MANY: Final = 1 << 12
"""Rows from which generated code pays."""
_WORTH: Final = 1 << 17
"""Rows for which Python takes longer than the compiler."""
_WORDS: Final = (1 << 32) - 1
"""Rows of which a word can tell one."""
_SOURCE: Final = """
define void @NAME(ptr noalias %order, ptr noalias %targets, i64 %n) nounwind {
entry:
  %any = icmp sgt i64 %n, 0
  br i1 %any, label %loop, label %end
loop:
  %i = phi i64 [0, %entry], [%next, %loop]
  %t = getelementptr i64, ptr %targets, i64 %i
  %offset = load i64, ptr %t
  %j = add i64 %i, %offset
  %p = getelementptr i64, ptr %order, i64 %i
  %q = getelementptr i64, ptr %order, i64 %j
  %a = load i64, ptr %p
  %b = load i64, ptr %q
  store i64 %b, ptr %p
  store i64 %a, ptr %q
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}
"""


@functools.cache
def _function() -> Function:
    return request(lambda name: _SOURCE.replace("NAME", name))


def _targets(place: philox.Place, length: int) -> npt.NDArray[np.int64]:
    """What `philox.shuffle_targets` gives."""
    words = drawn("words", *place, -(-(length - 1) // 4))
    if words is None or length > _WORDS:
        return np.ascontiguousarray(philox.shuffle_targets(place, length))
    tails = np.arange(length, 1, -1, dtype=np.uint32)
    return (words.reshape(-1)[: length - 1] % tails).astype(np.int64)


def swapped(place: Any, length: int) -> npt.NDArray[np.int64]:
    """What `philox.shuffled` gives, by generated code as soon as there is some.

    Args:
        place: of the random stream.
        length: how many rows are shuffled.
    """
    if not llvm.available():
        return philox.shuffled(place, length)
    function = _function()
    if function.address is None and length >= _WORTH and not function.failure:
        function.compile()
    if function.address is None:
        return philox.shuffled(place, length)
    order = np.arange(length, dtype=np.int64)
    targets = _targets(place, length)
    pointers = [ffi().from_buffer(a) for a in (order, targets)]
    caller(2)(function.address)(*pointers, length - 1)
    return order
