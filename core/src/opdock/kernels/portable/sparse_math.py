"""Portable kernels of sparse tensors combined with dense ones or one another, cell by cell.

Where the cells of two go is worked out on the host; the values stay on the device.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opdock.dtypes import COMPLEX, NUMBERS, REALS, float32, float64
from opdock.kernels import cells
from opdock.kernels.array_api import (
    device_ints,
    dims,
    fails,
    index_type,
    ints,
    invalid,
    taken,
)
from opdock.kernels.cells import Array
from opdock.kernels.expr.functions import FUNCTIONS
from opdock.kernels.portable import portable
from opdock.kernels.portable.segment import fold_runs, wide
from opdock.kernels.portable.sparse_reduce import runs_of
from opdock.kernels.select.signature import NodeSig


@portable(
    "SparseDenseCwiseAdd", "SparseDenseCwiseMul", "SparseDenseCwiseDiv",
    T=NUMBERS, host_inputs=("sp_shape",),
)  # fmt: skip
def sparse_dense(xp: Any, sig: NodeSig) -> Callable[[Any, Any, Any, Any], Any]:
    """The values combined with what the dense tensor has, broadcast, at their cells."""
    combine = FUNCTIONS[sig.op.removeprefix("SparseDenseCwise").lower()].evaluate
    dtype = sig.in_dtypes[1].base_dtype

    def run(indices: Any, values: Any, shape: Any, dense: Any) -> Any:
        wanted = tuple(ints(shape))
        if len(values.shape) != 1 or tuple(indices.shape) != (values.shape[0], len(wanted)):
            raise invalid(
                "Input sp_indices should have a row for each value and a column for each "
                f"dimension: {dims(indices.shape)} vs. values {dims(values.shape)} and rank "
                f"{len(wanted)}"
            )
        place = _places(xp, indices, wanted, tuple(dense.shape))
        _check_bounds(xp, indices, wanted)
        cells = xp.take(xp.reshape(dense, (-1,)), place, axis=0)
        out = combine(xp, wide(xp, values, dtype), wide(xp, cells, dtype))
        return xp.astype(out, values.dtype, copy=False)

    return run


def leading_of_sparse(sparse: tuple[int, ...], dense: tuple[int, ...]) -> int:
    """How many dimensions a sparse tensor has before those of the dense one that goes with it.

    Raises:
        InvalidArgumentError: the dense one does not broadcast to the sparse one.
    """
    lead = len(sparse) - len(dense)
    if lead < 0 or any(n not in (1, m) for n, m in zip(dense, sparse[lead:], strict=True)):
        raise invalid(
            "SparseDenseBinaryOpShared broadcasts dense to sparse only; got incompatible shapes: "
            f"{dims(sparse)} vs. {dims(dense)}"
        )
    return lead


def _places(xp: Any, indices: Any, wanted: tuple[int, ...], shape: tuple[int, ...]) -> Any:
    """Where in the flat dense tensor each cell is: broadcasting it would cost the whole shape."""
    lead = leading_of_sparse(wanted, shape)
    place = xp.zeros(
        (indices.shape[0],), dtype=index_type(xp), device=getattr(indices, "device", None)
    )
    for axis, n in enumerate(shape):
        if n != 1:
            place = place * n + indices[:, lead + axis]
    return place


def _check_bounds(xp: Any, indices: Any, wanted: tuple[int, ...]) -> None:
    limits = device_ints(xp, np.asarray(wanted, np.int64), indices)
    bad = (indices < 0) | (indices >= limits)
    if fails(xp, xp.any(bad)):
        row = int(xp.argmax(xp.astype(xp.any(bad, axis=1), xp.int32)))
        raise outside_dense(row, [int(v) for v in indices[row, :]], wanted)


def outside_dense(row: int, cell: list[int], shape: tuple[int, ...]) -> Exception:
    """The error of the place in a row of indices that is outside of the tensor's shape."""
    return invalid(f"indices[{row}] = {cell} is out of bounds for {dims(shape)}")


# ---------------------------------------------------------------- two sparse tensors
_PLACES = ("a_indices", "a_shape", "b_indices", "b_shape")
Sparse = tuple[Array, Any, Array]
"""The indices, the values and the shape of a sparse tensor; the values are the device's."""


def _check_both(a: Sparse, b: Sparse) -> None:
    for at, rank, what, kind in ((0, 2, "indices", "matrices"), (1, 1, "values", "vectors")):
        shapes = tuple(a[at].shape), tuple(b[at].shape)
        if any(len(shape) != rank for shape in shapes):
            raise invalid(
                f"Input {what} should be {kind} but received shapes: {dims(shapes[0])} and "
                f"{dims(shapes[1])}"
            )
    if len(a[0]) != a[1].shape[0] or len(b[0]) != b[1].shape[0]:
        raise invalid(
            f"Expected {len(a[0])} and {len(b[0])} non-empty input values, got {a[1].shape[0]} and "
            f"{b[1].shape[0]}"
        )
    if a[2].ndim != 1 or b[2].ndim != 1:
        raise invalid(
            f"Input shapes should be a vector but received shapes {dims(a[2].shape)} and "
            f"{dims(b[2].shape)}"
        )
    if len(a[2]) != len(b[2]):
        raise invalid(
            f"Operands do not have the same ranks; got shapes: {dims(a[2])} and {dims(b[2])}"
        )
    for i, (m, n) in enumerate(zip(a[2], b[2], strict=True)):
        if m != n:
            raise invalid(f"Operands' shapes do not match: got {m} and {n} for dimension {i}")
    cells.check_parts(*a)
    cells.check_parts(*b)


def _picked(xp: Any, values: Any, at: Array) -> Any:
    """The values at some places, zero for -1."""
    nothing = xp.zeros((1,), dtype=values.dtype, device=getattr(values, "device", None))
    return taken(xp, xp.concat([values, nothing]), np.where(at < 0, values.shape[0], at))


@portable("SparseAdd", T=NUMBERS, host_inputs=_PLACES, host_outputs=("sum_shape",))
def sparse_add(xp: Any, sig: NodeSig) -> Callable[..., tuple[Any, Any, Array]]:
    """The cells of both; sums below the threshold are left out."""

    def run(*inputs: Any) -> tuple[Any, Any, Array]:
        a, b, threshold = inputs[:3], inputs[3:6], inputs[6]
        if len(threshold.shape):
            raise invalid(
                "The magnitude threshold must be a scalar: got shape " + dims(threshold.shape)
            )
        _check_both(a, b)
        found = cells.union(a[0], b[0])
        values = _picked(xp, a[1], found.a) + _picked(xp, b[1], found.b)
        # Only where cells meet may they cancel out.
        alone = xp.asarray((found.a < 0) | (found.b < 0), device=getattr(values, "device", None))
        kept = xp.nonzero(alone | (xp.abs(values) >= threshold))[0]
        every = device_ints(xp, np.concatenate([a[0], b[0]])[found.source], values)
        return xp.take(every, kept, axis=0), xp.take(values, kept, axis=0), a[2].copy()

    return run


@portable(
    "SparseAddGrad", T=NUMBERS, host_inputs=("a_indices", "b_indices", "sum_indices")
)  # fmt: skip
def sparse_add_grad(xp: Any, sig: NodeSig) -> Callable[..., tuple[Any, Any]]:
    """What the cells of either side contributed to the sum; zero for those left out."""

    def run(grad: Any, a: Array, b: Array, total: Array) -> tuple[Any, Any]:
        for name, array in (("a_indices", a), ("b_indices", b), ("sum_indices", total)):
            if array.ndim != 2 or array.shape[1] != a.shape[-1]:
                raise invalid(
                    f"Input {name} should be a matrix with a column for each dimension but "
                    f"received shape: {dims(array.shape)}"
                )
        if tuple(grad.shape) != (len(total),):
            raise invalid(
                "# elements of backprop_val_grad and # rows of sum_indices should match (#nnz of "
                f"sum): got {int(np.prod(grad.shape))} and {len(total)}"
            )
        key = cells.keys(np.concatenate([a, b, total]))
        of_a, of_b, wanted = np.split(key, np.cumsum([len(a), len(b)]))
        if len(np.unique(wanted)) < len(wanted):
            of_a, of_b, wanted = cells.distinct(of_a, of_b, wanted)
        return _picked(xp, grad, _found(of_a, wanted)), _picked(xp, grad, _found(of_b, wanted))

    return run


def _found(key: Array, among: Array) -> Array:
    """Where each key stands among others, or -1."""
    if not len(among):
        return np.full(len(key), -1)
    order = np.argsort(among, kind="stable")
    at = order[np.minimum(np.searchsorted(among[order], key), len(among) - 1)]
    return np.where(among[at] == key, at, -1)


@portable(
    "SparseSparseMaximum", T=REALS, host_inputs=_PLACES, host_outputs=("output_indices",)
)  # fmt: skip
@portable(
    "SparseSparseMinimum",
    T=NUMBERS - COMPLEX, host_inputs=_PLACES, host_outputs=("output_indices",),
)  # fmt: skip
def sparse_extreme(xp: Any, sig: NodeSig) -> Callable[..., tuple[Array, Any]]:
    """The larger or smaller of both at each cell; an absent one counts as zero."""
    choose = xp.maximum if sig.op == "SparseSparseMaximum" else xp.minimum

    def run(*inputs: Any) -> tuple[Array, Any]:
        a, b = inputs[:3], inputs[3:]
        _check_both(a, b)
        found = cells.union(a[0], b[0])
        values = choose(_picked(xp, a[1], found.a), _picked(xp, b[1], found.b))
        return np.concatenate([a[0], b[0]])[found.source], values

    return run


# ---------------------------------------------------------------- softmax
@portable("SparseSoftmax", T={float32, float64}, host_inputs=("sp_indices", "sp_shape"))
def sparse_softmax(xp: Any, sig: NodeSig) -> Callable[..., Any]:
    """Softmax over the cells of each innermost row."""

    def run(indices: Array, values: Any, shape: Array) -> Any:
        cells.check_parts(indices, values, shape)
        if len(shape) < 2:
            raise invalid(f"Input should have rank >= 2, but got: {dims(shape)}")
        if not len(indices):
            return xp.zeros_like(values)
        runs = runs_of(cells.keys(indices[:, :-1]))
        of = device_ints(xp, np.repeat(np.arange(len(runs.starts)), runs.counts), values)
        rows = runs.gathered(xp, values)
        largest = fold_runs(xp, xp.maximum, rows, runs.starts)
        powers = xp.exp(rows - xp.take(largest, of, axis=0))
        out = powers / xp.take(fold_runs(xp, xp.add, powers, runs.starts), of, axis=0)
        return out if runs.order is None else taken(xp, out, np.argsort(runs.order))

    return run
