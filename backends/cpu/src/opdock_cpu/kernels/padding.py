"""Constant margins into planned buffers; mirrored ones are portable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.plugin import KernelTable, NodeSig, as_dtype, checks

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
