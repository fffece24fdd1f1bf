"""Portable kernels of two sparse tensors combined cell by cell.

Where the cells go is worked out on the host; the values stay on the device.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opdock.dtypes import COMPLEX, NUMBERS, REALS
from opdock.kernels import cells
from opdock.kernels.array_api import device_ints, dims, invalid, taken
from opdock.kernels.cells import Array
from opdock.kernels.portable import portable
from opdock.kernels.select.signature import NodeSig

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
