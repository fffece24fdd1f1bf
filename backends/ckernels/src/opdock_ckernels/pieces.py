"""An array and the pieces that it consists of along a dimension: all are copied by one kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opdock_ckernels.dialect import WORDS
from opdock_ckernels.made import once
from opdock_ckernels.protocols import Array

__all__ = ["move_pieces"]

_INT_MAX = 2**31 - 1
_AT_ONCE = 8
"""Pieces that one kernel takes."""
_LINE = 8
"""Neighbours from which on a work item of a CPU copies them one after the other."""
_STRETCH = 4096
"""The most that it copies."""
_LINES = 8
"""Such work items of a group: a group is what a thread takes."""


@once
def _kernel(device: Any, word: str, index: str, count: int, lined: bool, cuts: bool) -> Any:
    """The kernel for a number of pieces, each of which has a part of every row of the whole."""
    piece, whole = ("", "const ") if cuts else ("const ", "")
    given = "".join(f", GLOBAL {piece}{word}* x{i}, {index} w{i}" for i in range(count))

    def move(i: int, at: str, place: str) -> str:
        there, here = f"y[{at}]", f"x{i}[o * w{i} + {place}]"
        return f"{here} = {there};" if cuts else f"{there} = {here};"

    if lined:
        lines = [f"{index} from = i % parts * stretch, to = from + stretch, at = first;"]
        lines += ["i /= parts;", f"int which = i % {count};", f"{index} o = i / {count};"]
        for i in range(count):
            lines.append(
                f"if (which == {i}) for ({index} j = from; j < (to < w{i} ? to : w{i}); ++j) "
                f"{move(i, 'o * width + at + j', 'j')}"
            )
            lines.append(f"at += w{i};")
    else:
        lines = [f"{index} o = i / span, c = i % span, at = o * width + first + c;"]
        for i in range(count):
            lines.append(f"if (c < w{i}) {{ {move(i, 'at', 'c')} return; }}")
            lines.append(f"c -= w{i};")
    body = "\n  ".join([f"{index} i = GLOBAL_ID(0);", "if (i >= n) return;", *lines])
    return device.kernel(
        f"KERNEL void pieces(GLOBAL {whole}{word}* y, {index} n, {index} width, {index} first, "
        f"{index} span, {index} parts, {index} stretch{given}) {{\n  {body}\n}}\n",
        "pieces",
    )


def move_pieces(
    device: Any, whole: Array, pieces: Sequence[Array], widths: Sequence[int], rows: int,
    cuts: bool = False,
) -> None:  # fmt: skip
    """Copies pieces into a whole, or where it `cuts`, a whole into pieces.

    Args:
        device: the open device.
        whole: an array of `rows` rows, whatever its shape is.
        pieces: arrays of as many rows.
        widths: the elements of a row of each, which make those of the whole.
        rows: how many.
        cuts: which way.
    """
    at, width, word = 0, sum(widths), WORDS[whole.dtype.itemsize]
    index, kind = ("i64", np.int64) if whole.size > _INT_MAX else ("int", np.int32)
    some = [(x, w) for x, w in zip(pieces, widths, strict=True) if x.size]
    for start in range(0, len(some), _AT_ONCE):
        part = some[start : start + _AT_ONCE]
        span, longest = sum(w for _, w in part), max(w for _, w in part)
        lined = device.is_cpu and longest >= _LINE
        stretches = -(-longest // _STRETCH)
        items = rows * len(part) * stretches if lined else rows * span
        kernel = _kernel(device, word, index, len(part), lined, cuts)
        numbers = map(kind, (items, width, at, span, stretches, _STRETCH))
        given = (v for x, w in part for v in (x, kind(w)))
        device.launch(kernel, items, whole, *numbers, *given, group=_LINES if lined else 0)
        at += span
