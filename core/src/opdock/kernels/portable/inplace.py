"""Portable kernels of rows that are replaced, raised or lowered, and of tensors nobody has set."""

from __future__ import annotations

import math
from typing import Any

from opdock.dtypes import NUMBERS
from opdock.kernels.array_api import copy, dims, dtype_of, full, home, index_type, invalid
from opdock.kernels.portable import portable
from opdock.kernels.portable.fill import filled_shape
from opdock.kernels.portable.partition import last_of_each
from opdock.kernels.portable.segment import sum_at
from opdock.kernels.select.signature import NodeSig


def check_changed(x: Any, i: Any, v: Any) -> None:
    """Raises InvalidArgumentError unless `v` has a row of `x` for each number in `i`."""
    if len(i.shape) != 1:
        raise invalid(f"i must be a vector. {dims(i.shape)}")
    shown = f"{dims(x.shape)} vs. {dims(v.shape)}"
    if len(x.shape) != len(v.shape):
        raise invalid(f"x and v shape doesn't match (ranks differ): {shown}")
    for axis in range(1, len(x.shape)):
        if x.shape[axis] != v.shape[axis]:
            raise invalid(f"x and v shape doesn't match at index {axis} : {shown}")
    if not x.shape or i.shape[0] != v.shape[0]:
        raise invalid(
            f"i and x shape doesn't match at index 0: {dims(i.shape)} vs. {dims(v.shape)}"
        )
    if i.shape[0] and not x.shape[0]:
        raise invalid(f"There is no row to change: x has shape {dims(x.shape)}")


def _rows(xp: Any, x: Any, i: Any) -> Any:
    """The rows that are meant: any number means one, as TF counts them round."""
    return xp.remainder(xp.astype(i, index_type(xp)), x.shape[0])


@portable("InplaceUpdate")
def inplace_update(xp: Any, sig: NodeSig) -> Any:
    """Rows replaced; of equal rows the last wins."""

    def run(x: Any, i: Any, v: Any) -> Any:
        check_changed(x, i, v)
        if not i.shape[0] or 0 in x.shape:
            return copy(xp, x)
        width = math.prod(x.shape[1:])
        place, present = last_of_each(xp, _rows(xp, x, i), x.shape[0])
        rows = xp.take(xp.reshape(v, (i.shape[0], width)), place, axis=0)
        old = xp.reshape(x, (x.shape[0], width))
        return xp.reshape(xp.where(xp.expand_dims(present, axis=1), rows, old), x.shape)

    return run


@portable("InplaceAdd", "InplaceSub", T=NUMBERS)
def inplace_change(xp: Any, sig: NodeSig) -> Any:
    """Rows raised or lowered, equal ones by all that is said of them."""
    change = xp.add if sig.op == "InplaceAdd" else xp.subtract

    def run(x: Any, i: Any, v: Any) -> Any:
        check_changed(x, i, v)
        if not i.shape[0] or 0 in x.shape:
            return copy(xp, x)
        rows = xp.reshape(v, (i.shape[0], math.prod(x.shape[1:])))
        by = sum_at(xp, rows, _rows(xp, x, i), x.shape[0])
        return change(x, xp.astype(xp.reshape(by, x.shape), x.dtype))

    return run


@portable("DeepCopy")
def deep_copy(xp: Any, sig: NodeSig) -> Any:
    """The same in memory of its own."""
    return lambda x: copy(xp, x)


def empty_shape(shape: Any) -> tuple[int, ...]:
    """The shape of an array that is asked for without values.

    Raises:
        InvalidArgumentError: it is no vector, or a dimension is negative.
    """
    if shape.ndim != 1:
        raise invalid(f"shape must be a vector of int32, got shape {dims(shape.shape)}")
    return filled_shape(shape)


@portable("Empty", host_inputs=("shape",))
def empty(xp: Any, sig: NodeSig) -> Any:
    """Zeros, asked for or not: what memory held before is nobody's to read."""
    dtype, device = sig.attrs["dtype"], home(sig)

    def run(shape: Any) -> Any:
        wanted = empty_shape(shape)
        if dtype in NUMBERS:
            return xp.zeros(wanted, dtype=dtype_of(xp, dtype), device=device)
        return full(xp, wanted, 0, dtype)

    return run
