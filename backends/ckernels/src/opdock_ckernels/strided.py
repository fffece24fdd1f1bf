"""Copies between strided layouts: what every op that only moves elements is made of.

Elements are moved as words of their size, whatever they mean.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from opdock_ckernels.dialect import WORDS
from opdock_ckernels.made import once
from opdock_ckernels.protocols import Array

__all__ = ["contiguous", "move", "place", "spread", "strides_of", "take", "transposed", "zeros"]

_INT_MAX = 2**31 - 1
_LINE = 8
"""Neighbours from which on a CPU copies them one after the other."""
_STRETCH = 4096
"""The most that one work item copies then."""
_LINES = 8
"""Work items of a group then: a group is what a thread takes."""


def strides_of(shape: Sequence[int]) -> list[int]:
    """Row-major strides in elements."""
    out, step = [], 1
    for n in reversed(shape):
        out.append(step)
        step *= n
    return out[::-1]


def _merged(
    shape: Sequence[int], source: Sequence[int], target: Sequence[int]
) -> list[tuple[int, int, int]]:
    """(size, source stride, target stride) with dimensions of size 1 and seams removed."""
    out: list[tuple[int, int, int]] = []
    for n, s, t in zip(shape, source, target, strict=True):
        if n == 1:
            continue
        if out and out[-1][1] == s * n and out[-1][2] == t * n:
            out[-1] = (out[-1][0] * n, s, t)
        else:
            out.append((n, s, t))
    return out or [(1, 1, 1)]


@once
def _kernel(
    device: Any, word: str, index: str, rank: int, known: tuple[int | None, ...], lined: bool
) -> Any:
    """The kernel for a number of dimensions; `known` are the last one's strides of 1, 0 or -1.

    Where `lined`, a work item copies a stretch of the last dimension.
    """
    last = rank - 1
    params = "".join(f", {index} n{d}, {index} s{d}, {index} t{d}" for d in range(last + 1))
    lines = [f"{index} i = GLOBAL_ID(0);", "if (i >= n) return;"]
    lines.append(f"{index} rest = i, p = s, q = t, c;")
    if lined:
        lines += ["c = rest % parts * stretch; rest /= parts;"]
        lines.append(f"{index} to = c + stretch < n{last} ? c + stretch : n{last}, from = c;")
    # The compiler makes vectors of neighbours that it knows to be such.
    steps = [f"{name}{last}" if step is None else str(step)
             for name, step in zip("st", known, strict=True)]  # fmt: skip
    for d in range(last - lined, -1, -1):
        lines.append(f"c = rest % n{d}; rest /= n{d};" if d else "c = rest;")
        lines.append(f"p += c * s{d}; q += c * t{d};")
    if lined:
        walk = f"for ({index} j = from; j < to; ++j)"
        lines.append(f"{walk} y[q + j * {steps[1]}] = x[p + j * {steps[0]}];")
    else:
        lines.append("y[q] = x[p];")
    body = "\n  ".join(lines)
    return device.kernel(
        f"KERNEL void move(GLOBAL const {word}* x, GLOBAL {word}* y, {index} s, {index} t, "
        f"{index} n, {index} parts, {index} stretch{params}) {{\n  {body}\n}}\n",
        "move",
    )


def move(
    device: Any, source: Array, target: Array, shape: Sequence[int],
    source_strides: Sequence[int], target_strides: Sequence[int],
    source_offset: int = 0, target_offset: int = 0,
) -> None:  # fmt: skip
    """Copies a block of elements from one layout to another.

    Args:
        device: the device of both arrays.
        source, target: arrays of elements of one size.
        shape: the block.
        source_strides, target_strides: in elements; 0 repeats, a negative one walks backwards.
        source_offset, target_offset: the block's first element.
    """
    count = math.prod(shape)
    if count == 0:
        return
    dims = _merged(shape, source_strides, target_strides)
    wide = max(source.size, target.size, count) > _INT_MAX
    index, kind = ("i64", np.int64) if wide else ("int", np.int32)
    length = dims[-1][0]
    lined = device.is_cpu and length >= _LINE
    parts = -(-length // _STRETCH) if lined else 1
    items = count // length * parts if lined else count
    known = tuple(step if abs(step) <= 1 else None for step in dims[-1][1:])
    kernel = _kernel(device, WORDS[source.dtype.itemsize], index, len(dims), known, lined)
    numbers = (source_offset, target_offset, items, parts, _STRETCH, *(v for d in dims for v in d))
    group = _LINES if lined else 0
    device.launch(kernel, items, source, target, *map(kind, numbers), group=group)


def take(
    device: Any, source: Array, shape: Sequence[int], strides: Sequence[int], offset: int = 0,
    out: Array | None = None,
) -> Array:  # fmt: skip
    """An array of `shape` whose elements lie in `source` at the given strides: `out` or a new one.

    `out` may have another shape of as many elements.
    """
    if out is None:
        out = device.allocate(tuple(shape), source.dtype)
    elif out.shape != tuple(shape):
        out = out.reshape(*shape)
    move(device, source, out, shape, strides, strides_of(shape), offset)
    return out


def place(
    device: Any, source: Array, target: Array, strides: Sequence[int], offset: int = 0
) -> None:
    """Writes all of `source` into `target` at the given strides."""
    move(device, source, target, source.shape, strides_of(source.shape), strides, 0, offset)


def contiguous(device: Any, source: Array, order: Sequence[int], out: Array | None = None) -> Array:
    """`source` with its dimensions permuted, in `out` or a new array."""
    steps, shape = strides_of(source.shape), [source.shape[a] for a in order]
    return take(device, source, shape, [steps[a] for a in order], 0, out)


def transposed(device: Any, matrices: Array) -> Array:
    """Transposed matrices."""
    last = matrices.ndim - 1
    return contiguous(device, matrices, (*range(last - 1), last, last - 1))


def zeros(device: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """A new array of zeros."""
    out: Array = device.allocate(shape, dtype)
    device.fill_zero(out)
    return out


def spread(device: Any, source: Array, shape: tuple[int, ...]) -> Array:
    """`source` broadcast to `shape`: itself where it has that shape already."""
    if source.shape == shape:
        return source
    wide = (1,) * (len(shape) - source.ndim) + source.shape
    steps = [0 if n == 1 else s for n, s in zip(wide, strides_of(wide), strict=True)]
    return take(device, source, shape, steps)
