"""Portable kernels that make tensors: fills, zeros, ones and ranges."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from opdock import dtypes
from opdock.kernels.array_api import copy, dtype_of, full, home, ints, invalid
from opdock.kernels.portable import portable
from opdock.kernels.select.signature import NodeSig


def filled_shape(dims: Any) -> tuple[int, ...]:
    """The shape that is asked for; InvalidArgumentError where a dimension is negative."""
    shape = tuple(ints(dims))
    for d in shape:
        if d < 0:
            raise invalid(f"Dimension {d} must be >= 0")
    return shape


@portable("Fill", host_inputs=("dims",))
def fill(xp: Any, sig: NodeSig) -> Any:
    """One value everywhere."""

    def run(dims: Any, value: Any) -> Any:
        return copy(xp, xp.broadcast_to(xp.asarray(value), filled_shape(dims)))

    return run


@portable("ZerosLike")
def zeros_like(xp: Any, sig: NodeSig) -> Any:
    """Zeros in the input's shape."""
    dtype = sig.out_dtypes[0]
    if dtype.base_dtype in dtypes.NUMBERS or dtype.base_dtype is dtypes.bool:
        return xp.zeros_like
    return lambda x: full(xp, x.shape, 0, dtype, x)


@portable("OnesLike", T=dtypes.NUMBERS | {dtypes.bool})
def ones_like(xp: Any, sig: NodeSig) -> Any:
    """Ones in the input's shape."""
    return xp.ones_like


def steps(start: Any, limit: Any, delta: Any) -> int:
    """The number of elements of a range.

    Raises:
        InvalidArgumentError: the step is zero, leads away from the limit or never gets there.
    """
    if delta == 0:
        raise invalid(f"Requires delta != 0: {delta}")
    if (delta > 0 and start > limit) or (delta < 0 and start < limit):
        sign = "<= limit when delta > 0" if delta > 0 else ">= limit when delta < 0"
        raise invalid(f"Requires start {sign}: {start}/{limit}")
    if isinstance(start, (int, np.integer)):
        distance, step = abs(int(limit) - int(start)), abs(int(delta))
        return (distance + step - 1) // step
    size = abs((float(limit) - float(start)) / float(delta))
    if not size < 2.0**63:
        raise invalid(f"Requires ((limit - start) / delta) <= {2**63 - 1}: {size}")
    return math.ceil(size)


@portable("Range", host_inputs=("start", "limit", "delta"))
def range_(xp: Any, sig: NodeSig) -> Any:
    """Evenly spaced numbers up to a limit."""
    dtype = sig.out_dtypes[0].base_dtype
    element = dtype_of(xp, dtype)

    def run(start: Any, limit: Any, delta: Any) -> Any:
        first, last, step = (np.asarray(v).reshape(-1)[0] for v in (start, limit, delta))
        count = steps(first, last, step)
        values: Any
        if dtype.is_integer:
            values = int(first) + int(step) * np.arange(count, dtype=np.int64)
        else:
            values = float(first) + float(step) * np.arange(count, dtype=np.float64)
        return xp.asarray(values.astype(dtype.np), dtype=element, device=home(sig))

    return run


@portable("LinSpace", host_inputs=("start", "stop", "num"))
def lin_space(xp: Any, sig: NodeSig) -> Any:
    """Evenly spaced numbers between two ends."""
    dtype = sig.out_dtypes[0].base_dtype
    element = dtype_of(xp, dtype)

    def run(start: Any, stop: Any, num: Any) -> Any:
        first, last = (np.asarray(v).reshape(-1)[0] for v in (start, stop))
        (count,) = ints(num)
        if count <= 0:
            raise invalid(f"Requires num > 0: {count}")
        values = np.linspace(float(first), float(last), count).astype(dtype.np)
        return xp.asarray(values, dtype=element, device=home(sig))

    return run
