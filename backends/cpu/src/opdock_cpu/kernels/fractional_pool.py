"""Pools over windows of different sizes as one loop over windows."""

from __future__ import annotations

from collections.abc import Callable
from math import isnan
from typing import Any, Final

import numpy as np

from opdock.plugin import KernelTable, NodeSig, checks, dtypes
from opdock_cpu.jit import llvm
from opdock_cpu.jit.looped import Array, Looped, larger
from opdock_cpu.jit.swaps import swapped
from opdock_cpu.portable import portable_kernel

__all__ = ["table"]

table = KernelTable()
_FLOATS: Final = frozenset({dtypes.float32, dtypes.float64})
_LOOPED: Final = _FLOATS | {dtypes.int32, dtypes.int64}
_SEQUENCES: Final = ("row_pooling_sequence", "col_pooling_sequence")


def _largest(
    begin: int, end: int, out: Array, x: Array, row: Array, column: Array,
    height: int, width: int, depth: int, out_rows: int, out_columns: int, shared: int,
) -> None:  # fmt: skip
    """A turn is a row of the result; windows have `shared` rows and columns in common."""
    for t in range(begin, end):
        image, oy = t // out_rows * height, t % out_rows
        for ox in range(out_columns):
            o = (t * out_columns + ox) * depth
            first = ((image + row[oy]) * width + column[ox]) * depth
            for c in range(depth):
                out[o + c] = x[first + c]
            for y in range(row[oy], min(row[oy + 1] + shared, height)):
                for at in range(column[ox], min(column[ox + 1] + shared, width)):
                    i = ((image + y) * width + at) * depth
                    for c in range(depth):
                        out[o + c] = larger(out[o + c], x[i + c])


def _means(
    begin: int, end: int, out: Array, x: Array, row: Array, column: Array,
    height: int, width: int, depth: int, out_rows: int, out_columns: int, shared: int,
) -> None:  # fmt: skip
    """The same for means."""
    for t in range(begin, end):
        image, oy = t // out_rows * height, t % out_rows
        bottom = min(row[oy + 1] + shared, height)
        for ox in range(out_columns):
            o, right = (t * out_columns + ox) * depth, min(column[ox + 1] + shared, width)
            for c in range(depth):
                out[o + c] = 0
            for y in range(row[oy], bottom):
                for at in range(column[ox], right):
                    i = ((image + y) * width + at) * depth
                    for c in range(depth):
                        out[o + c] += x[i + c]
            count = (bottom - row[oy]) * (right - column[ox])
            for c in range(depth):
                out[o + c] = out[o + c] / count


def _whole_means(
    begin: int, end: int, out: Array, x: Array, row: Array, column: Array,
    height: int, width: int, depth: int, out_rows: int, out_columns: int, shared: int,
) -> None:  # fmt: skip
    """The same for whole numbers: quotients are cut off."""
    for t in range(begin, end):
        image, oy = t // out_rows * height, t % out_rows
        bottom = min(row[oy + 1] + shared, height)
        for ox in range(out_columns):
            o, right = (t * out_columns + ox) * depth, min(column[ox + 1] + shared, width)
            count = (bottom - row[oy]) * (right - column[ox])
            for c in range(depth):
                out[o + c] = 0
            for y in range(row[oy], bottom):
                for at in range(column[ox], right):
                    i = ((image + y) * width + at) * depth
                    for c in range(depth):
                        out[o + c] = out[o + c] + x[i + c]
            for c in range(depth):
                total = out[o + c]
                size = abs(total) // count
                opposite = -size
                out[o + c] = opposite if total < 0 else size


def _shares(
    begin: int, end: int, out: Array, grad: Array, row: Array, column: Array,
    height: int, width: int, depth: int, out_rows: int, out_columns: int, shared: int,
) -> None:  # fmt: skip
    """A turn is an image; each place gets its share of the gradients of its windows."""
    for b in range(begin, end):
        for oy in range(out_rows):
            bottom = min(row[oy + 1] + shared, height)
            for ox in range(out_columns):
                o = ((b * out_rows + oy) * out_columns + ox) * depth
                right = min(column[ox + 1] + shared, width)
                count = (bottom - row[oy]) * (right - column[ox])
                for y in range(row[oy], bottom):
                    for at in range(column[ox], right):
                        i = ((b * height + y) * width + at) * depth
                        for c in range(depth):
                            out[i + c] += grad[o + c] / count


def _to_largest(
    begin: int, end: int, out: Array, x: Array, grad: Array, row: Array, column: Array,
    height: int, width: int, depth: int, out_rows: int, out_columns: int, shared: int,
) -> None:  # fmt: skip
    """A turn is an image; the first of the largest of a window, or of its NaNs, gets it all."""
    for b in range(begin, end):
        for oy in range(out_rows):
            for ox in range(out_columns):
                o = ((b * out_rows + oy) * out_columns + ox) * depth
                for c in range(depth):
                    place = ((b * height + row[oy]) * width + column[ox]) * depth + c
                    best = x[place]
                    for y in range(row[oy], min(row[oy + 1] + shared, height)):
                        for at in range(column[ox], min(column[ox + 1] + shared, width)):
                            i = ((b * height + y) * width + at) * depth + c
                            value = x[i]
                            if (value > best) | (isnan(value) & (not isnan(best))):
                                best = value
                                place = i
                    out[place] += grad[o + c]


_LARGEST, _MEANS = Looped(_largest, ("depth",)), Looped(_means, ("depth",))
_WHOLE_MEANS: Final = Looped(_whole_means, ("depth",))
_SHARES, _TO_LARGEST = Looped(_shares, ("depth",)), Looped(_to_largest, ("depth",))


def _when(sig: NodeSig) -> bool | str:
    return llvm.available() or llvm.why_not()


@table.binder("FractionalMaxPool", "FractionalAvgPool", T=_LOOPED, when=_when)
def fractional_pool(sig: NodeSig) -> Callable[[Array], Any]:
    """The pooled values and where windows begin."""
    draw, shared = checks.drawn_windows(sig, swapped), int(bool(sig.attrs["overlapping"]))
    means = _WHOLE_MEANS if sig.in_dtypes[0].is_integer else _MEANS
    loop = _LARGEST if sig.op == "FractionalMaxPool" else means
    plain: Callable[[Array], Any] = portable_kernel(sig)

    def run(x: Array) -> Any:
        if x.ndim != 4 or not x.size:
            return plain(x)
        starts = draw(x.shape)
        counts = [len(found) - 1 for found in starts]
        out = np.empty((x.shape[0], *counts, x.shape[3]), x.dtype)
        numbers = (*x.shape[1:], *counts, shared)
        done = loop(x.shape[0] * counts[0], x.size, out, x, *starts, *numbers)
        return (out, *starts) if done else plain(x)

    return run


def _are_windows(starts: Array, count: int, length: int) -> bool:
    """Whether places are where `count` windows begin and end that have something in them."""
    return (
        starts.ndim == 1
        and len(starts) == count + 1
        and bool((np.diff(starts) > 0).all())
        and bool(starts[0] >= 0 and starts[-1] <= length)
    )


@table.binder("FractionalAvgPoolGrad", T=_FLOATS, when=_when,
              host_inputs=("orig_input_tensor_shape", *_SEQUENCES))  # fmt: skip
def fractional_avg_pool_grad(sig: NodeSig) -> Callable[..., Array]:
    """Each place gets its share of the gradients of all windows that it is in."""
    shared = int(bool(sig.attrs["overlapping"]))
    plain: Callable[..., Array] = portable_kernel(sig)

    def run(shape: Any, grad: Array, rows: Array, columns: Array) -> Array:
        full = tuple(checks.ints(shape))
        fits = (
            len(full) == 4 and grad.ndim == 4 and min(full) > 0
            and (full[0], full[3]) == (grad.shape[0], grad.shape[3])
            and _are_windows(rows, grad.shape[1], full[1])
            and _are_windows(columns, grad.shape[2], full[2])
        )  # fmt: skip
        if fits:
            out = np.zeros(full, grad.dtype)
            numbers = (*full[1:], *grad.shape[1:3], shared)
            if _SHARES(full[0], out.size, out, grad, rows, columns, *numbers):
                return out
        return plain(shape, grad, rows, columns)

    return run


@table.binder("FractionalMaxPoolGrad", T=_LOOPED, when=_when, host_inputs=_SEQUENCES)
def fractional_max_pool_grad(sig: NodeSig) -> Callable[..., Array]:
    """The first of the largest values of a window gets its gradient."""
    shared = int(bool(sig.attrs["overlapping"]))
    plain: Callable[..., Array] = portable_kernel(sig)

    def run(x: Array, pooled: Array, grad: Array, rows: Array, columns: Array) -> Array:
        fits = (
            x.ndim == 4 and grad.shape == pooled.shape and grad.ndim == 4 and x.size > 0
            and (x.shape[0], x.shape[3]) == (grad.shape[0], grad.shape[3])
            and _are_windows(rows, grad.shape[1], x.shape[1])
            and _are_windows(columns, grad.shape[2], x.shape[2])
        )  # fmt: skip
        if fits:
            out = np.zeros(x.shape, grad.dtype)
            numbers = (*x.shape[1:], *grad.shape[1:3], shared)
            if _TO_LARGEST(len(x), x.size, out, x, grad, rows, columns, *numbers):
                return out
        return plain(x, pooled, grad, rows, columns)

    return run
