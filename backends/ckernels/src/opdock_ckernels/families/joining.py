"""Ops that make one tensor of several: a kernel moves some inputs to their places."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opdock.plugin import KernelTable, NodeSig, axes, checks
from opdock_ckernels.dialect import WORDS
from opdock_ckernels.families.array import HELD
from opdock_ckernels.made import once
from opdock_ckernels.protocols import Array

__all__ = ["join", "table"]

table = KernelTable()


_INT_MAX = 2**31 - 1
_AT_ONCE = 8
"""Inputs that one kernel takes."""
_LINE = 8
"""Neighbours from which on a work item of a CPU copies them one after the other."""
_STRETCH = 4096
"""The most that it copies."""
_LINES = 8
"""Such work items of a group: a group is what a thread takes."""


@once
def _kernel(device: Any, word: str, index: str, count: int, lined: bool) -> Any:
    """The kernel for a number of inputs, each of which has a part of every row of the result."""
    given = "".join(f", GLOBAL const {word}* x{i}, {index} w{i}" for i in range(count))
    if lined:
        lines = [f"{index} from = i % parts * stretch, to = from + stretch, at = first;"]
        lines += ["i /= parts;", f"int which = i % {count};", f"{index} o = i / {count};"]
        for i in range(count):
            lines.append(
                f"if (which == {i}) for ({index} j = from; j < (to < w{i} ? to : w{i}); ++j) "
                f"y[o * width + at + j] = x{i}[o * w{i} + j];"
            )
            lines.append(f"at += w{i};")
    else:
        lines = [f"{index} o = i / span, c = i % span, at = o * width + first + c;"]
        for i in range(count):
            lines.append(f"if (c < w{i}) {{ y[at] = x{i}[o * w{i} + c]; return; }}")
            lines.append(f"c -= w{i};")
    body = "\n  ".join([f"{index} i = GLOBAL_ID(0);", "if (i >= n) return;", *lines])
    return device.kernel(
        f"KERNEL void join(GLOBAL {word}* y, {index} n, {index} width, {index} first, "
        f"{index} span, {index} parts, {index} stretch{given}) {{\n  {body}\n}}\n",
        "join",
    )


def join(device: Any, values: Sequence[Array], axis: int, into: Array | None = None) -> Array:
    """The values one after the other along a non-negative axis, in `into` or a new array."""
    first = values[0]
    shape = list(first.shape)
    shape[axis] = sum(v.shape[axis] for v in values)
    out: Array = device.allocate(tuple(shape), first.dtype) if into is None else into
    inner, rows = math.prod(shape[axis + 1 :]), math.prod(shape[:axis])
    word = WORDS[out.dtype.itemsize]
    at, width = 0, shape[axis] * inner
    index, kind = ("i64", np.int64) if out.size > _INT_MAX else ("int", np.int32)
    some = [v for v in values if v.size]
    for start in range(0, len(some), _AT_ONCE):
        part = some[start : start + _AT_ONCE]
        widths = [v.shape[axis] * inner for v in part]
        span, longest = sum(widths), max(widths)
        lined = device.is_cpu and longest >= _LINE
        pieces = -(-longest // _STRETCH)
        items = rows * len(part) * pieces if lined else rows * span
        kernel = _kernel(device, word, index, len(part), lined)
        numbers = map(kind, (items, width, at, span, pieces, _STRETCH))
        given = (x for v, w in zip(part, widths, strict=True) for x in (v, kind(w)))
        device.launch(kernel, items, out, *numbers, *given, group=_LINES if lined else 0)
        at += span
    return out


@table.binder("ConcatV2", T=HELD, out=True, host_inputs=("axis",))
def concat_v2(sig: NodeSig) -> Callable[..., Array]:
    """The inputs one after the other."""
    device = sig.device

    def run(*args: Any) -> Array:
        *values, axis, out = args
        return join(device, values, axes.joined(values, axis), out)

    return run


@table.binder("Concat", T=HELD, out=True, host_inputs=("concat_dim",))
def concat(sig: NodeSig) -> Callable[..., Array]:
    """The inputs one after the other."""
    device = sig.device

    def run(axis: Any, *args: Any) -> Array:
        *values, out = args
        return join(device, values, axes.joined(values, axis), out)

    return run


@table.binder("Pack", T=HELD, out=True)
def pack(sig: NodeSig) -> Callable[..., Array]:
    """The inputs along a new dimension."""
    device, axis = sig.device, sig.attrs["axis"]

    def run(*args: Any) -> Array:
        *values, out = args
        checks.check_alike(values)
        shape = values[0].shape
        at = axis % (len(shape) + 1)
        wide = [v.reshape(*shape[:at], 1, *shape[at:]) for v in values]
        return join(device, wide, at, out)

    return run


@table.binder("ParallelConcat", T=HELD, out=True)
def parallel_concat(sig: NodeSig) -> Callable[..., Array]:
    """The inputs one after the other, along the first dimension."""
    device = sig.device
    return lambda *args: join(device, args[:-1], 0, args[-1])
