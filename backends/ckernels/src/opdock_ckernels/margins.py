"""Arrays within margins of one value, written in one pass."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from opdock_ckernels.dialect import WORDS
from opdock_ckernels.made import once
from opdock_ckernels.protocols import Array

__all__ = ["within_margins"]

_INT_MAX = 2**31 - 1
_LINE = 8
"""Neighbours from which on a work item of a CPU writes them one after the other."""
_LINES = 8
"""Such work items of a group: a group is what a thread takes."""


@once
def _nothing(device: Any, dtype: np.dtype[Any]) -> Array:
    """A zero."""
    zero: Array = device.upload(np.zeros((), dtype))
    return zero


@once
def _kernel(device: Any, word: str, index: str, rank: int, lined: bool) -> Any:
    """The kernel for a number of dimensions; where `lined`, a work item writes one line."""
    sizes = "".join(f", {index} n{d}, {index} m{d}, {index} b{d}" for d in range(rank))
    lines = [f"{index} i = GLOBAL_ID(0);", "if (i >= n) return;", f"{word} v = *value;"]
    lines += [f"{index} rest = i, p = 0, step = {f'm{rank - 1}' if lined else 1}, c;"]
    lines += ["int inside = 1;"]
    for d in range(rank - 1 - lined, -1, -1):
        lines.append(f"c = rest % n{d} - b{d}; rest /= n{d}; p += c * step; step *= m{d};")
        lines.append(f"inside &= c >= 0 && c < m{d};")
    if lined:
        n, m, b = (f"{letter}{rank - 1}" for letter in "nmb")
        lines.append(f"{index} from = inside ? {b} : {n}, to = inside ? {b} + {m} : {n};")
        lines.append(f"y += i * {n};")
        lines.append(f"for ({index} j = 0; j < from; ++j) y[j] = v;")
        lines.append(f"for ({index} j = from; j < to; ++j) y[j] = x[p + j - from];")
        lines.append(f"for ({index} j = to; j < {n}; ++j) y[j] = v;")
    else:
        lines.append("if (inside) v = x[p];")
        lines.append("y[i] = v;")
    body = "\n  ".join(lines)
    return device.kernel(
        f"KERNEL void margins(GLOBAL const {word}* x, GLOBAL const {word}* value, "
        f"GLOBAL {word}* y, {index} n{sizes}) {{\n  {body}\n}}\n",
        "margins",
    )


def within_margins(
    device: Any, x: Array, pairs: Sequence[tuple[int, int]], value: Array | None = None,
    into: Array | None = None,
) -> Array:  # fmt: skip
    """`x` with so many elements before and after it in each dimension, in `into` or a new array.

    Args:
        device: the open device.
        x: the array.
        pairs: how many for each dimension.
        value: of these elements; None: zero.
        into: where the result goes.
    """
    shape = tuple(n + a + b for n, (a, b) in zip(x.shape, pairs, strict=True))
    out: Array = device.allocate(shape, x.dtype) if into is None else into
    # A dimension without margins is a part of the one before.
    dims: list[tuple[int, int, int]] = []
    for n, m, (before, _) in zip(shape, x.shape, pairs, strict=True):
        if dims and n == m:
            dims[-1] = (dims[-1][0] * n, dims[-1][1] * n, dims[-1][2] * n)
        else:
            dims.append((n, m, before))
    dims = dims or [(1, 1, 0)]
    lined = device.is_cpu and dims[-1][0] >= _LINE
    items = math.prod(n for n, _, _ in dims[: len(dims) - lined])
    index, kind = ("i64", np.int64) if out.size > _INT_MAX else ("int", np.int32)
    kernel = _kernel(device, WORDS[x.dtype.itemsize], index, len(dims), lined)
    numbers = (kind(v) for v in (items, *(v for d in dims for v in d)))
    rest = _nothing(device, x.dtype) if value is None else value
    device.launch(kernel, items, x, rest, out, *numbers, group=_LINES if lined else 0)
    return out
