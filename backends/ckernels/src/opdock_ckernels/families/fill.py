"""Tensors of one value, and of evenly spaced ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opdock.plugin import REALS, DType, KernelTable, NodeSig, checks, codegen, dtypes
from opdock_ckernels.dialect import TYPES
from opdock_ckernels.families.array import HELD
from opdock_ckernels.pointwise import formula
from opdock_ckernels.protocols import Array
from opdock_ckernels.strided import take, zeros

__all__ = ["table"]

table = KernelTable()


@table.binder("ZerosLike", T=HELD)
def zeros_like(sig: NodeSig) -> Callable[[Array], Array]:
    """Zeros in the input's shape."""
    return lambda x: zeros(sig.device, x.shape, x.dtype)


@table.binder("OnesLike", T=codegen.RENDERED)
def ones_like(sig: NodeSig) -> Callable[[Array], Any]:
    """Ones in the input's shape."""
    dtype = sig.out_dtypes[0]
    return formula(sig.device, "where(True, 1, x)", {"x": dtype}, dtype)


@table.binder("Fill", T=HELD, host_inputs=("dims",))
def fill(sig: NodeSig) -> Callable[[Any, Array], Array]:
    """One value everywhere."""
    device = sig.device

    def run(dims: Any, value: Array) -> Array:
        if getattr(dims, "ndim", 1) != 1:
            raise checks.invalid(f"dims must be a vector, got shape {checks.dims(dims.shape)}")
        if value.ndim:
            raise checks.invalid(f"value must be a scalar, got shape {checks.dims(value.shape)}")
        shape = checks.filled_shape(dims)
        return take(device, value, shape, [0] * len(shape))

    return run


# ---------------------------------------------------------------- evenly spaced
_SPACED = """
KERNEL void spaced(GLOBAL T* y, i64 n, A first, A step, A last, int ends) {
  i64 i = GLOBAL_ID(0);
  if (i >= n) return;
  A v = ends && i == n - 1 && i ? last : first + step * (A)i;
  STORE
}
"""


def _spaced(sig: NodeSig) -> Callable[..., Array]:
    """Fills with `first + step * i`, computed as wide as the type or the device allows."""
    device, dtype = sig.device, sig.out_dtypes[0].base_dtype
    dialect: codegen.Dialect = device.dialect
    wide: DType = dtypes.int64
    if dtype.is_floating:
        wide = dtypes.float64 if device.has_double else dtypes.float32
    value = f"({dialect.computed(dtype)})v"
    text = _SPACED.replace("STORE", dialect.store(dtype, "y", "i", value))
    source = codegen.helpers(dialect, text) + text
    kernel = device.kernel(source, "spaced", T=TYPES[dtype.name], A=TYPES[wide.name])
    number = wide.np.type

    def fill(count: int, first: Any, step: Any, last: Any = 0, ends: bool = False) -> Array:
        out: Array = device.allocate((count,), dtype.np)
        numbers = (number(first), number(step), number(last), np.int32(ends))
        device.launch(kernel, count, out, np.int64(count), *numbers)
        return out

    return fill


def _ends(start: Any, limit: Any, delta: Any) -> tuple[int, Any, Any]:
    """The number of elements, the first, and the step of a range."""
    first, last, step = (np.asarray(v).reshape(-1)[0] for v in (start, limit, delta))
    return checks.range_steps(first, last, step), first, step


@table.binder("Range", Tidx=REALS - {dtypes.int32}, host_inputs=("start", "limit", "delta"))
def range_(sig: NodeSig) -> Callable[[Any, Any, Any], Array]:
    """Evenly spaced numbers up to a limit."""
    fill = _spaced(sig)
    return lambda start, limit, delta: fill(*_ends(start, limit, delta))


@table.binder(
    "Range", Tidx=frozenset({dtypes.int32}), host_inputs=("start", "limit", "delta"),
    host_outputs=("output",),
)  # fmt: skip
def host_range(sig: NodeSig) -> Callable[[Any, Any, Any], Any]:
    """Ranges of int32 are axes and sizes as a rule: the host needs them."""

    def run(start: Any, limit: Any, delta: Any) -> Any:
        count, first, step = _ends(start, limit, delta)
        return (int(first) + int(step) * np.arange(count, dtype=np.int64)).astype(np.int32)

    return run


@table.binder("LinSpace", T=REALS, host_inputs=("start", "stop", "num"))
def lin_space(sig: NodeSig) -> Callable[[Any, Any, Any], Array]:
    """Evenly spaced numbers between two ends."""
    fill = _spaced(sig)

    def run(start: Any, stop: Any, num: Any) -> Array:
        first, last = (float(np.asarray(v).reshape(-1)[0]) for v in (start, stop))
        (count,) = checks.ints(num)
        if count <= 0:
            raise checks.invalid(f"Requires num > 0: {count}")
        step = (last - first) / max(count - 1, 1)
        return fill(count, first, step, last, ends=True)

    return run
