"""Sums of many tensors into one buffer, and the cross product."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opdock.plugin import NUMBERS, REALS, KernelTable, NodeSig, errors

__all__ = ["table"]

table = KernelTable()

Array = Any  # an ndarray, or the NumPy scalar that stands for a 0-d one


@table.binder("AddN", "AccumulateNV2", T=NUMBERS, out=True)
def _add_n(sig: NodeSig) -> Callable[..., Array]:
    count = len(sig.in_dtypes)
    if count == 1:
        return np.positive
    if count == 2 and sig.in_shapes[0] == sig.in_shapes[1] and _is_known(sig):
        return np.add

    def run(*args: Any) -> Array:
        first, second, *others = args[:-1]
        _check_shapes(args[:-1])
        total = np.add(first, second, args[-1])
        # A 0-d call returns a scalar, in whose place nothing can be written.
        place = total if isinstance(total, np.ndarray) else None
        for value in others:
            total = np.add(total, value, place)
        return total

    return run


def _is_known(sig: NodeSig) -> bool:
    shape = sig.in_shapes[0]
    return shape is not None and None not in shape


def _check_shapes(arrays: tuple[Array, ...]) -> None:
    first = arrays[0].shape
    for other in arrays:
        if other.shape != first:
            raise errors.InvalidArgumentError(
                None, None, "Inputs to operation of type AddN must have the same size and shape. "
                f"Input 0: {_text(first)} != input: {_text(other.shape)}",
            )  # fmt: skip


def _text(shape: tuple[int, ...]) -> str:
    return "[" + ",".join(str(d) for d in shape) + "]"


@table.binder("Cross", T=REALS)
def _cross(sig: NodeSig) -> Callable[..., Array]:
    dtype = sig.out_dtypes[0].np

    def run(a: Array, b: Array) -> Array:
        if a.shape != b.shape or a.shape[-1:] != (3,):
            raise errors.InvalidArgumentError(
                None, None, "Both inputs must be of same shape with last dimension 3: "
                f"{_text(a.shape)} vs. {_text(b.shape)}",
            )  # fmt: skip
        out = np.empty(a.shape, dtype)
        for i, (j, k) in enumerate(((1, 2), (2, 0), (0, 1))):
            out[..., i] = a[..., j] * b[..., k] - a[..., k] * b[..., j]
        return out

    return run
