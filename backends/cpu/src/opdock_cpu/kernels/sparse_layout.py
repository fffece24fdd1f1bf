"""Sparse tensors made dense and parted, their cells by generated loops where they are in order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from opdock.plugin import NUMBERS, KernelTable, NodeSig, cells, checks, dtypes
from opdock_cpu import merging, picking
from opdock_cpu.portable import portable_kernel

__all__ = ["table"]

table = KernelTable()
_HALVES: Final = frozenset({dtypes.float16, dtypes.bfloat16})


@table.binder("SparseToDense", host_inputs=("output_shape",))
def sparse_to_dense(sig: NodeSig) -> Callable[..., npt.NDArray[Any]]:
    """One value everywhere but at given places."""
    validate = bool(sig.attrs["validate_indices"])

    def run(indices: Any, output_shape: Any, values: Any, default: Any) -> npt.NDArray[Any]:
        values, default = np.asarray(values), np.asarray(default)
        place, wanted = None, tuple(checks.ints(output_shape))
        if np.ndim(indices) == 2 and np.shape(output_shape) == indices.shape[1:]:
            place = picking.places(indices, wanted, validate)
        # What does not fit is for the checks.
        if place is None or values.shape not in ((), place.shape) or default.ndim:
            wanted, place = checks.dense_places(indices, output_shape, values, default, validate)
        out = np.full(wanted, default[()], values.dtype)
        merging.put(out, place, values)
        return out

    return run


@table.binder("SparseSplit", host_inputs=("split_dim", "indices", "shape"))
def sparse_split(sig: NodeSig) -> Callable[..., tuple[npt.NDArray[Any], ...]]:
    """Parts along a dimension; the first ones are longer by one where it does not divide."""
    count, plain = int(sig.attrs["num_split"]), portable_kernel(sig)

    def run(split_dim: Any, indices: Any, values: Any, shape: Any) -> Any:
        axis, fits = int(split_dim), indices.ndim == 2 and shape.ndim == 1
        fits = fits and indices.shape == (values.size, shape.size) and 0 <= axis < shape.size
        if not fits or values.ndim != 1 or not 1 <= count <= shape[axis]:
            return plain(split_dim, indices, values, shape)
        each, longer = divmod(int(shape[axis]), count)
        lengths = np.full(count, each, np.int64)
        lengths[:longer] += 1
        found = merging.divided(indices, cells.sizes(shape), axis, lengths)
        if found is None:
            return plain(split_dim, indices, values, shape)
        moved, source, counts = found
        ends = np.cumsum(counts)[:-1]
        own = np.tile(shape, (count, 1))
        own[:, axis] = lengths
        return (*np.split(moved, ends), *np.split(values.take(source), ends), *own)

    return run


@table.binder("SparseFillEmptyRows", host_inputs=("indices", "dense_shape"))
def sparse_fill_empty_rows(sig: NodeSig) -> Callable[..., tuple[npt.NDArray[Any], ...]]:
    """A cell in the first column of each row that has none."""
    plain = portable_kernel(sig)

    def run(indices: Any, values: Any, shape: Any, default: Any) -> Any:
        given = indices, values, shape, default
        fits = indices.ndim == 2 and indices.shape == (values.size, shape.size)
        if not fits or values.ndim != 1 or shape.ndim != 1 or np.ndim(default) or not indices.size:
            return plain(*given)
        counts = merging.row_counts(indices, max(int(shape[0]), 0))
        if counts is None:
            return plain(*given)
        missing = counts == 0
        counts += missing
        ends = np.cumsum(counts)
        first = ends - counts
        found = merging.by_row(indices, first, int(ends[-1]))
        if found is None:
            return plain(*given)
        filled, place = found
        gaps = np.flatnonzero(missing)
        filled[first[gaps], 0] = gaps
        out = np.full(len(filled), np.asarray(default)[()], values.dtype)
        merging.put(out, place, values)
        return filled, out, missing, place

    return run


@table.binder("SparseFillEmptyRowsGrad", T=NUMBERS - _HALVES)
def sparse_fill_empty_rows_grad(sig: NodeSig) -> Callable[..., tuple[npt.NDArray[Any], ...]]:
    """Gradients of the values, and the sum of those of the cells that were added."""
    plain = portable_kernel(sig)

    def run(place: Any, grad: Any) -> Any:
        vectors = place.ndim == grad.ndim == 1
        found = picking.taken(grad, place, 0) if vectors else None
        if found is None:
            return plain(place, grad)
        added = np.ones(grad.size, np.bool_)
        added[place] = False
        return found, np.asarray(np.sum(grad[added], dtype=grad.dtype))

    return run
