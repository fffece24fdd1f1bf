"""Portable kernels of a sparse tensor combined with a dense one at the sparse one's cells."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opdock.dtypes import NUMBERS
from opdock.kernels.array_api import (
    device_ints,
    dims,
    fails,
    index_type,
    ints,
    invalid,
)
from opdock.kernels.expr.functions import FUNCTIONS
from opdock.kernels.portable import portable
from opdock.kernels.portable.segment import wide
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


def _places(xp: Any, indices: Any, wanted: tuple[int, ...], shape: tuple[int, ...]) -> Any:
    """Where in the flat dense tensor each cell is: broadcasting it would cost the whole shape."""
    lead = len(wanted) - len(shape)
    if lead < 0 or any(n not in (1, m) for n, m in zip(shape, wanted[lead:], strict=True)):
        raise invalid(
            "SparseDenseBinaryOpShared broadcasts dense to sparse only; got incompatible shapes: "
            f"{dims(wanted)} vs. {dims(shape)}"
        )
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
        cell = [int(v) for v in indices[row, :]]
        raise invalid(f"indices[{row}] = {cell} is out of bounds for {wanted}")
