"""Constant margins into planned buffers, and narrow rows folded; mirrored margins are portable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from opdock.plugin import NUMBERS, KernelTable, NodeSig, as_dtype, checks
from opdock_cpu.jit.looped import Looped
from opdock_cpu.portable import portable_kernel

__all__ = ["table"]

Array = npt.NDArray[Any]
Pairs = list[tuple[int, int]]

table = KernelTable()
_STRING = as_dtype("string")


def _strips(shape: Any, pairs: Pairs) -> tuple[list[Any], Any]:
    """(the margins, the inside) as subscripts that together cover each element once."""
    where: list[slice] = [slice(None)] * len(pairs)
    strips = []
    for axis, (before, after) in enumerate(pairs):
        size = shape[axis] + before + after
        if before:
            where[axis] = slice(0, before)
            strips.append(tuple(where))
        if after:
            where[axis] = slice(size - after, size)
            strips.append(tuple(where))
        where[axis] = slice(before, size - after)
    return strips, tuple(where)


@table.binder("Pad", "PadV2", out=True, host_inputs=("paddings",))
def pad(sig: NodeSig) -> Callable[..., Array]:
    """The input within a margin of one value."""
    dtype = sig.out_dtypes[0]
    zero: Any = b"" if dtype is _STRING else np.zeros((), dtype.np)
    const, source = sig.const(1), sig.in_shapes[0]
    plan: Any = None
    if const is not None and source is not None and None not in source:
        plan = _plan(source, const)

    def run(tensor: Any, paddings: Any, *rest: Any) -> Array:
        value, out = (zero, rest[0]) if len(rest) == 1 else rest
        shape, strips, inside = _plan(np.shape(tensor), paddings) if plan is None else plan
        if out is None:
            out = np.empty(shape, dtype.np)
        for strip in strips:
            out[strip] = value
        out[inside] = tensor
        return np.asarray(out)

    return run


def _plan(source: Any, paddings: Any) -> tuple[list[int], list[Any], Any]:
    pairs = checks.margins(paddings, len(source))
    shape = [d + a + b for d, (a, b) in zip(source, pairs, strict=True)]
    return (shape, *_strips(source, pairs))


# ---------------------------------------------------------------- mirrored margins
_NARROW: Final = 64
"""Elements of a row for which NumPy's loops over them cost more than the sums."""


def _fold(
    begin: int, end: int, out: Array, rows: Array, before: int, size: int, after: int, skip: int
) -> None:
    """A turn is a row, whose margins are folded back onto what they mirror."""
    width = before + size + after
    for r in range(begin, end):
        to, first = r * size, r * width + before
        for c in range(size):
            out[to + c] = rows[first + c]
        for c in range(before):
            at = to + skip + c
            out[at] = out[at] + rows[first - 1 - c]
        for c in range(after):
            at = to + size - skip - 1 - c
            out[at] = out[at] + rows[first + size + c]


_FOLD: Final = Looped(_fold, fixed=("before", "size", "after", "skip"))


@table.binder("MirrorPadGrad", T=NUMBERS, host_inputs=("paddings",))
def mirror_pad_grad(sig: NodeSig) -> Callable[..., Array]:
    """The inner part, with the mirrored margins folded back onto it."""
    plain: Callable[..., Array] = portable_kernel(sig)
    skip = int(sig.attrs["mode"] != "SYMMETRIC")

    def run(grad: Array, paddings: Any) -> Array:
        if not grad.size or not 0 < grad.shape[-1] <= _NARROW:
            return plain(grad, paddings)
        pairs = checks.margins(paddings, grad.ndim)
        before, after = pairs[-1]
        size = grad.shape[-1] - before - after
        if before + after == 0 or max(before, after) + skip > size:
            return plain(grad, paddings)  # which says what is wrong with them
        folded = np.empty((*grad.shape[:-1], size), grad.dtype)
        numbers = before, size, after, skip
        if not _FOLD(grad.size // grad.shape[-1], 2 * grad.size, folded, grad, *numbers):
            return plain(grad, paddings)
        return plain(folded, np.array([*pairs[:-1], (0, 0)], np.int64))

    return run
