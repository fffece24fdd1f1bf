"""Portable kernels of reductions of sparse tensors.

What is left of the cells' coordinates is worked out on the host; the values stay on the device.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from opdock.dtypes import NUMBERS, REALS
from opdock.kernels import cells
from opdock.kernels.array_api import copy, dims, dtype_of, invalid, taken
from opdock.kernels.cells import Array
from opdock.kernels.portable import portable
from opdock.kernels.portable.segment import fold_runs, wide
from opdock.kernels.select.signature import NodeSig

_PLACES = ("input_indices", "input_shape", "reduction_axes")


class Runs(NamedTuple):
    """Cells gathered by key, in ascending order of keys.

    Attributes:
        order: the cells such that those of a key stand together; None where they do as they are.
        starts: where each key begins in that order.
        counts: how many cells it has.
    """

    order: Array | None
    starts: Array
    counts: Array

    def first(self) -> Array:
        """A cell of each key."""
        return self.starts if self.order is None else self.order[self.starts]

    def gathered(self, xp: Any, values: Any) -> Any:
        """The cells' values in order."""
        return values if self.order is None else taken(xp, values, self.order)


def runs_of(key: Array) -> Runs:
    """Cells by key, at least one; mostly they are in order already."""
    step = key[1:] != key[:-1]
    if (key[1:] >= key[:-1]).all():
        order = None
    else:
        order = np.argsort(key, kind="stable")
        found = key[order]
        step = found[1:] != found[:-1]
    ends = np.flatnonzero(np.concatenate(([True], step, [True])))
    return Runs(order, ends[:-1], ends[1:] - ends[:-1])


# ---------------------------------------------------------------- reductions
class _Reduced(NamedTuple):
    """Folded cells.

    Attributes:
        indices: their coordinates along the dimensions that are left [n, kept].
        values: one value each.
        kept: the dimensions that are left.
    """

    indices: Array
    values: Any
    kept: list[int]


class _Reduction:
    """What reductions to dense and to sparse tensors have in common."""

    def __init__(self, xp: Any, sig: NodeSig) -> None:
        self._xp, self._dtype = xp, sig.in_dtypes[1].base_dtype
        self._element = dtype_of(xp, self._dtype)
        self._is_sum = "Sum" in sig.op
        self._combine = xp.add if self._is_sum else xp.maximum

    def __call__(self, indices: Array, values: Any, shape: Array, axes: Array) -> _Reduced:
        """Folds the values of cells that differ only along the axes."""
        xp = self._xp
        _check(shape, axes)
        cells.check_parts(indices, values, shape)
        sizes = cells.sizes(shape)
        gone = {axis % len(sizes) for axis in axes.reshape(-1).tolist()}
        kept = [i for i in range(len(sizes)) if i not in gone]
        left = indices[:, kept]
        if not len(left):
            return _Reduced(left, values, kept)
        runs = runs_of(cells.keys(left))
        first = runs.first()
        rows = runs.gathered(xp, values)
        if not self._is_sum:
            return _Reduced(left[first], self._fold(rows, runs.starts), kept)
        # Halves are added in single precision; the larger of two is exact in any.
        folded = self._fold(wide(xp, rows, self._dtype), runs.starts)
        folded = xp.astype(folded, self._element, copy=False)
        return _Reduced(left[first], folded, kept)

    def _fold(self, rows: Any, starts: Array) -> Any:
        return fold_runs(self._xp, self._combine, rows, starts)


def _check(shape: Array, axes: Array) -> None:
    if shape.ndim != 1:
        raise invalid(f"Expected input_shape to be a vector; got shape: {dims(shape.shape)}")
    if axes.ndim > 1:
        raise invalid(
            f"Expected reduction_axes to be a scalar or a vector; got shape: {dims(axes.shape)}"
        )
    for axis in axes.reshape(-1):
        if not -len(shape) <= axis < len(shape):
            raise invalid(
                f"Invalid reduction dimension {axis}, for input with {len(shape)} dimensions."
            )


@portable("SparseReduceSum", T=NUMBERS, host_inputs=_PLACES)
@portable("SparseReduceMax", T=REALS, host_inputs=_PLACES)
def sparse_reduce(xp: Any, sig: NodeSig) -> Callable[..., Any]:
    """The fold as a dense tensor, zero where there is no cell."""
    reduced, keep = _Reduction(xp, sig), bool(sig.attrs["keep_dims"])

    def run(indices: Array, values: Any, shape: Array, axes: Array) -> Any:
        shape = np.asarray(shape)
        found = reduced(indices, values, shape, np.asarray(axes))
        left = tuple(int(shape[i]) for i in found.kept)
        size = tuple(_whole(shape, found.kept)) if keep else left
        # Along the dimensions that are gone, a cell may be anywhere.
        cells.check_inside(found.indices, left)
        places = cells.flat(found.indices, left)
        count = len(places)
        if count == math.prod(left):
            # In ascending order, and everywhere; without a cell they are the input still.
            return xp.reshape(found.values if count else copy(xp, found.values), size)
        source = np.full(math.prod(left), count)
        source[places] = np.arange(count)
        nothing = xp.zeros((1,), dtype=values.dtype, device=getattr(values, "device", None))
        return xp.reshape(taken(xp, xp.concat([found.values, nothing]), source), size)

    return run


def _whole(shape: Array, kept: list[int]) -> list[int]:
    return [int(n) if i in kept else 1 for i, n in enumerate(shape)]


@portable(
    "SparseReduceSumSparse",
    T=NUMBERS, host_inputs=_PLACES, host_outputs=("output_indices", "output_shape"),
)  # fmt: skip
@portable(
    "SparseReduceMaxSparse",
    T=REALS, host_inputs=_PLACES, host_outputs=("output_indices", "output_shape"),
)  # fmt: skip
def sparse_reduce_sparse(xp: Any, sig: NodeSig) -> Callable[..., tuple[Array, Any, Array]]:
    """The fold as a sparse tensor."""
    reduced, keep = _Reduction(xp, sig), bool(sig.attrs["keep_dims"])

    def run(indices: Array, values: Any, shape: Array, axes: Array) -> tuple[Array, Any, Array]:
        shape = np.asarray(shape)
        found = reduced(indices, values, shape, np.asarray(axes))
        # Without a cell there was nothing to fold, and a result is no input.
        folded = xp.asarray(found.values, copy=True) if found.values is values else found.values
        if not keep:
            return found.indices, folded, shape[found.kept]
        whole = np.zeros((len(found.indices), len(shape)), np.int64)
        whole[:, found.kept] = found.indices
        return whole, folded, np.array(_whole(shape, found.kept), np.int64)

    return run
