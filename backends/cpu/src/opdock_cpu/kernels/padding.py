"""Constant margins into planned buffers; mirrored ones are portable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.plugin import KernelTable, NodeSig, as_dtype, errors

__all__ = ["table"]

Array = npt.NDArray[Any]
Pairs = list[tuple[int, int]]

table = KernelTable()
_STRING = as_dtype("string")


def _margins(paddings: Any, rank: int) -> Pairs:
    values = np.asarray(paddings)
    if values.shape != (rank, 2):
        raise errors.InvalidArgumentError(
            None, None,
            f"The first dimension of paddings must be the rank of inputs: {list(values.shape)}, "
            f"rank {rank}",
        )  # fmt: skip
    pairs = [(int(a), int(b)) for a, b in values]
    if any(a < 0 or b < 0 for a, b in pairs):
        raise errors.InvalidArgumentError(
            None, None, f"Paddings must be non-negative: {values.tolist()}"
        )
    return pairs


def _surround(out: Array, tensor: Any, pairs: Pairs, value: Any) -> Array:
    """Writes the margins strip by strip, so that each element is written once."""
    where: list[slice] = [slice(None)] * out.ndim
    for axis, (before, after) in enumerate(pairs):
        size = out.shape[axis]
        if before:
            where[axis] = slice(0, before)
            out[tuple(where)] = value
        if after:
            where[axis] = slice(size - after, size)
            out[tuple(where)] = value
        where[axis] = slice(before, size - after)
    out[tuple(where)] = tensor
    return out


@table.binder("Pad", "PadV2", out=True, host_inputs=("paddings",))
def pad(sig: NodeSig) -> Callable[..., Array]:
    """The input within a margin of one value."""
    dtype = sig.out_dtypes[0]
    zero: Any = b"" if dtype is _STRING else np.zeros((), dtype.np)
    fixed = sig.const(1)
    known = None
    if fixed is not None and sig.in_shapes[0] is not None:
        known = _margins(fixed, len(sig.in_shapes[0]))

    def run(tensor: Any, paddings: Any, *rest: Any) -> Array:
        value, out = (zero, rest[0]) if len(rest) == 1 else rest
        pairs = _margins(paddings, np.ndim(tensor)) if known is None else known
        if out is None:
            shape = [d + a + b for d, (a, b) in zip(np.shape(tensor), pairs, strict=True)]
            out = np.empty(shape, dtype.np)
        return _surround(out, tensor, pairs, value)

    return run
