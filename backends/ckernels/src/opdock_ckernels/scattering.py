"""Updates at positions: sorted by position, then each position's updates applied in their order.

One work item takes all updates of an element, first to last, so repeated positions behave as in a
loop and results repeat.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opdock.plugin import as_dtype, checks, codegen, dtypes
from opdock_ckernels.dialect import TYPES, WORDS
from opdock_ckernels.ordering import sort
from opdock_ckernels.protocols import Array

__all__ = ["STEPS", "copied", "positions", "scatter"]

STEPS = {
    "Add": "acc + v", "Sub": "acc - v", "Mul": "acc * v", "Div": "acc / v", "Or": "acc || v",
    "Min": "(v < acc || v != v ? v : acc)", "Max": "(v > acc || v != v ? v : acc)",
}  # fmt: skip
"""How an update `v` changes what is there, `acc`, in C; "Update" replaces it."""


def _position_source(depth: int) -> str:
    sizes = "".join(f", i64 n{d}" for d in range(depth))
    steps = "".join(
        f"  v = at[i * {depth} + {d}];\n"
        f"  if (v < 0 || v >= n{d}) {{ *flag = 1; v = 0; }}\n"
        f"  p = p * n{d} + v;\n"
        for d in range(depth)
    )
    return (
        "KERNEL void place(GLOBAL const I* at, GLOBAL K* y, GLOBAL int* flag, i64 n"
        f"{sizes}) {{\n  i64 i = GLOBAL_ID(0), p = 0, v;\n  if (i >= n) return;\n"
        f"{steps}  y[i] = (K)p;\n}}\n"
    )


def positions(
    device: Any, indices: Array, limits: Sequence[int],
    error: Callable[[np.ndarray[Any, Any]], Exception],
) -> Array:  # fmt: skip
    """Coordinates as flat positions in an array of size `limits`.

    Args:
        device: the open device.
        indices: int32 or int64 [..., depth], `depth` being the number of limits.
        limits: the sizes of the dimensions that are indexed.
        error: what to raise where a coordinate is out of range, given the indices on the host.

    Returns:
        A vector of int32, or of int64 where the array is too large for that.
    """
    depth = len(limits)
    count = math.prod(indices.shape[:-1])
    kind = np.dtype(np.int32 if math.prod(limits) < 2**31 else np.int64)
    out: Array = device.allocate((count,), kind)
    if not count:
        return out
    types = {"I": TYPES[as_dtype(indices.dtype).name], "K": TYPES[as_dtype(kind).name]}
    kernel = device.kernel(_position_source(depth), "place", **types)
    flag = device.flag()
    device.launch(
        kernel, count, indices, out, flag, np.int64(count), *(np.int64(n) for n in limits)
    )
    if device.read_int(flag):
        raise error(device.download(indices))
    return out


def copied(device: Any, x: Array) -> Array:
    """The same elements in memory of their own."""
    out: Array = device.allocate(x.shape, x.dtype)
    device.copy_into(x, out, 0)
    return out


# The first of the equal positions starts from what is there; the last of them replaces it.
_FOLD = """
KERNEL void apply(GLOBAL const K* at, GLOBAL const int* from, GLOBAL const T* x, GLOBAL T* y,
                  FLAG i64 n, i64 width, i64 step) {
  i64 i = GLOBAL_ID(0);
  if (i >= n * width) return;
  i64 c = i % width, j = i / width;
  K here = at[j];
  if (j > 0 && at[j - 1] == here) return;
  i64 q = (i64)here * width + c;
  A acc = LOAD_Y(q);
  for (; j < n && at[j] == here; ++j) {
    A v = LOAD_X(from[j] * step + (step ? c : 0));
    acc = STEP;
  }
  STORE(q, acc)
}
"""
_LAST = """
KERNEL void replace(GLOBAL const K* at, GLOBAL const int* from, GLOBAL const W* x, GLOBAL W* y,
                    i64 n, i64 width, i64 step) {
  i64 i = GLOBAL_ID(0);
  if (i >= n * width) return;
  i64 c = i % width, j = i / width;
  if (j + 1 < n && at[j + 1] == at[j]) return;
  y[(i64)at[j] * width + c] = x[from[j] * step + (step ? c : 0)];
}
"""


def scatter(device: Any, how: str, out: Array, places: Array, updates: Array, width: int) -> None:
    """Changes the rows of `out` at `places`.

    Args:
        device: the open device.
        how: a name of `STEPS`, or "Update".
        out: rows of `width` elements; written.
        places: a vector of row numbers, repeated or not.
        updates: a row for each place, or one element for all.
        width: the number of elements of a row.

    Raises:
        InvalidArgumentError: an integer is divided by zero.
    """
    n = places.size
    if not n * width:
        return
    keys, order = sort(device, places)
    dtype = as_dtype(out.dtype)
    place = TYPES[as_dtype(places.dtype).name]
    step = 0 if updates.ndim == 0 else width
    sizes = [np.int64(v) for v in (n, width, step)]
    if how == "Update":
        kernel = device.kernel(_LAST, "replace", K=place, W=WORDS[out.dtype.itemsize])
        device.launch(kernel, n * width, keys, order, updates, out, *sizes)
        return
    dialect: codegen.Dialect = device.dialect
    checked = how == "Div" and dtype.is_integer
    text = f"od_div_{dtype.name}(acc, v, flag)" if checked else STEPS[how]
    if dtype is dtypes.bool:
        text = STEPS["Or"]
    macros = [
        f"#define K {place}",
        f"#define T {TYPES[dtype.name]}",
        f"#define A {dialect.computed(dtype)}",
        f"#define LOAD_X(p) {dialect.load(dtype, 'x', '(p)')}",
        f"#define LOAD_Y(p) {dialect.load(dtype, 'y', '(p)')}",
        f"#define STORE(p, v) {dialect.store(dtype, 'y', '(p)', '(v)')}",
        f"#define FLAG {'GLOBAL int* flag,' if checked else ''}",
        f"#define STEP {text}",
    ]
    source = "\n".join([codegen.helpers(dialect, "\n".join(macros)), *macros, _FOLD])
    flags = [device.flag()] if checked else []
    device.launch(
        device.kernel(source, "apply"), n * width, keys, order, updates, out, *flags, *sizes
    )
    if checked and (code := device.read_int(flags[0])):
        raise checks.invalid(codegen.ERRORS[code])
