"""Reversals: rows of cells backwards, for which NumPy has no copy that moves several at once."""

from __future__ import annotations

import functools
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from opdock_cpu.jit import llvm
from opdock_cpu.jit.compiled import Function, address, caller, ffi, request

__all__ = ["LEAST", "mirrored"]

LEAST: Final = 1 << 12
"""Bytes from which generated code pays."""
_WORDS: Final = (1, 2, 4, 8)
_MOST_WORDS: Final = 4
"""Words of a cell, a pixel for example; NumPy is as fast with longer ones."""
_SOURCE: Final = """
define void @NAME(ptr noalias %in, ptr noalias %out, ptr noalias %sizes, i64 %rows) nounwind {
entry:
  %cells = load i64, ptr %sizes
  %second = getelementptr i64, ptr %sizes, i64 1
  %step = load i64, ptr %second
  %last = sub i64 %cells, 1
  br label %row
row:
  %r = phi i64 [0, %entry], [%next_row, %done]
  %offset = mul i64 %r, %step
  %line = getelementptr i8, ptr %in, i64 %offset
  %begin = mul i64 %r, %cells
  br label %cell
cell:
  %i = phi i64 [0, %row], [%next, %cell]
  %j = sub i64 %last, %i
  %from = mul i64 %j, COUNT
  %source = getelementptr inbounds WORD, ptr %line, i64 %from
  %o = add i64 %begin, %i
  %to = mul i64 %o, COUNT
  %target = getelementptr inbounds WORD, ptr %out, i64 %to
MOVES
  %next = add nuw nsw i64 %i, 1
  %more = icmp slt i64 %next, %cells
  br i1 %more, label %cell, label %done
done:
  %next_row = add nuw nsw i64 %r, 1
  %again = icmp slt i64 %next_row, %rows
  br i1 %again, label %row, label %end
end:
  ret void
}
"""
_MOVE: Final = """  %pK = getelementptr inbounds WORD, ptr %source, i64 K
  %vK = load WORD, ptr %pK
  %qK = getelementptr inbounds WORD, ptr %target, i64 K
  store WORD %vK, ptr %qK"""


@functools.cache
def _function(word: int, count: int) -> Function:
    moves = "\n".join(_MOVE.replace("K", str(k)) for k in range(count))
    source = _SOURCE.replace("MOVES", moves).replace("COUNT", str(count))
    source = source.replace("WORD", f"i{8 * word}")
    return request(lambda name: source.replace("NAME", name))


def mirrored(tensor: npt.NDArray[Any], axis: int, out: npt.NDArray[Any]) -> bool:
    """Writes a tensor that is reversed along a dimension, by generated code if there is some.

    Args:
        tensor: of at least one element; dimensions before `axis` may be those of a part.
        axis: which dimension.
        out: for the result, in one piece.

    Returns:
        Whether it has been written.
    """
    word, count = tensor.itemsize, 1
    if word not in _WORDS:
        word, count = 8, word // 8
    for length in tensor.shape[axis + 1 :]:
        count *= length
    if not 1 <= count <= _MOST_WORDS or tensor.nbytes < LEAST or tensor.dtype.hasobject:
        return False
    rows = _rows(tensor, axis)
    if rows is None or not llvm.available():
        return False
    function = _function(word, count)
    if function.address is None:
        return False
    sizes = np.array([tensor.shape[axis], rows[1]], np.int64)
    pointer = ffi().cast("void *", address(tensor))
    target = ffi().cast("void *", address(out))
    caller(3)(function.address)(pointer, target, ffi().from_buffer(sizes), rows[0])
    return True


def _rows(tensor: npt.NDArray[Any], axis: int) -> tuple[int, int] | None:
    """How many rows there are, and how far apart; None where they are not in one piece or equally.

    A row is what `axis` and the dimensions after it hold.
    """
    if not tensor[(0,) * axis].flags.c_contiguous:
        return None
    count, step = 1, 0
    for length, stride in zip(tensor.shape[:axis][::-1], tensor.strides[:axis][::-1], strict=True):
        if length == 1:
            continue
        if count == 1:
            step = stride
        elif stride != step * count:
            return None
        count *= length
    return count, step
