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
from opdock.kernels.array_api import device_ints, dims, dtype_of, invalid, taken
from opdock.kernels.cells import Array
from opdock.kernels.portable import portable
from opdock.kernels.portable.segment import fold, wide
from opdock.kernels.select.signature import NodeSig

_PLACES = ("input_indices", "input_shape", "reduction_axes")


class Groups(NamedTuple):
    """Cells gathered by key.

    Attributes:
        first: a cell of each group, in ascending order of keys.
        of: the group of each cell.
    """

    first: Array
    of: Array


def groups_of(indices: Array) -> Groups:
    """Cells by their coordinates, wherever these are."""
    order, starts = cells.runs(cells.keys(indices))
    of = np.empty(len(order), np.int64)
    of[order] = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(order)))
    return Groups(order[starts], of)


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

    def __call__(self, indices: Array, values: Any, shape: Array, axes: Array) -> _Reduced:
        """Folds the values of cells that differ only along the axes."""
        xp = self._xp
        _check(shape, axes)
        cells.check_parts(indices, values, shape)
        cells.check_inside(indices, cells.sizes(shape))
        gone = {int(axis) % len(shape) for axis in axes.reshape(-1)}
        kept = [i for i in range(len(shape)) if i not in gone]
        left = indices[:, kept]
        if not len(left):
            return _Reduced(left, values, kept)
        groups = groups_of(left)
        # Halves are added in single precision; the larger of two is exact in any.
        rows = wide(xp, values, self._dtype) if self._is_sum else values
        combine = xp.add if self._is_sum else xp.maximum
        ids = device_ints(xp, groups.of, values)
        folded, _ = fold(xp, combine, xp.reshape(rows, (-1, 1)), ids, len(groups.first))
        folded = xp.astype(xp.reshape(folded, (-1,)), self._element, copy=False)
        return _Reduced(left[groups.first], folded, kept)


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
        found = reduced(indices, values, np.asarray(shape), np.asarray(axes))
        left = tuple(int(shape[i]) for i in found.kept)
        count = len(found.indices)
        source = np.full(math.prod(left), count)
        source[cells.flat(found.indices, left)] = np.arange(count)
        nothing = xp.zeros((1,), dtype=values.dtype, device=getattr(values, "device", None))
        out = taken(xp, xp.concat([found.values, nothing]), source)
        return xp.reshape(out, tuple(_whole(shape, found.kept)) if keep else left)

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
