"""Portable kernels of updates to parts of variables."""

from __future__ import annotations

import math
from typing import Any

from opdock import errors
from opdock.dtypes import COMPLEX, FLOATS, INTS, NUMBERS, REALS
from opdock.kernels.array_api import (
    dims,
    fails,
    index_type,
    invalid,
)
from opdock.kernels.portable import portable
from opdock.kernels.portable.gather import check_indices, flat_positions
from opdock.kernels.portable.partition import last_of_each
from opdock.kernels.portable.scatter import check_updates
from opdock.kernels.portable.segment import fold, wide
from opdock.kernels.select.signature import NodeSig

_RULES = {
    "Add": ("add", "add"),
    "Sub": ("add", "subtract"),
    "Mul": ("multiply", "multiply"),
    "Div": ("multiply", "divide"),
    "Min": ("minimum", "minimum"),
    "Max": ("maximum", "maximum"),
}
"""How updates of one row are put together, and how the result meets the old row."""


def _merged(xp: Any, sig: NodeSig, kind: str, old: Any, place: Any, rows: Any) -> Any:
    """Rows [count, m] with updates [n, m] at the places [n], none of them empty."""
    if kind == "Update":
        last, present = last_of_each(xp, place, old.shape[0])
        fresh = xp.take(rows, last, axis=0)
    else:
        dtype = sig.in_dtypes[2].base_dtype
        together, onto = (getattr(xp, name) for name in _RULES[kind])
        folded, present = fold(xp, together, wide(xp, rows, dtype), place, old.shape[0])
        fresh = xp.astype(onto(wide(xp, old, dtype), folded), old.dtype)
        if present is None:  # what nothing is added to stays as it is, -0 as well
            return xp.where(folded == 0, old, fresh)
    return xp.where(xp.expand_dims(present, axis=1), fresh, old)


def check_rows(cell: Any, old: Any, indices: Any, updates: Any) -> tuple[int, ...]:
    """The shape of the updates of a variable's rows, which one number may stand for.

    Raises:
        InvalidArgumentError: they have another shape.
    """
    if len(old.shape) == 0:
        raise invalid(f"Scatter into variable {cell.name} needs at least 1 dimension.")
    expected = (*indices.shape, *old.shape[1:])
    if tuple(updates.shape) not in (expected, ()):
        if tuple(updates.shape[: len(indices.shape)]) != tuple(indices.shape):
            raise invalid(
                f"The shape of indices ({dims(indices.shape)}) must be a prefix of the shape of "
                f"updates ({dims(updates.shape)})"
            )
        raise invalid(
            "Must have updates.shape = indices.shape + params.shape[1:], got updates.shape "
            f"{dims(updates.shape)}, indices.shape {dims(indices.shape)}, params.shape "
            f"{dims(old.shape)}"
        )
    return expected


def check_assigned(old: Any, value: Any) -> None:
    """Raises InvalidArgumentError unless a variable and what changes it have one shape."""
    if tuple(old.shape) != tuple(value.shape):
        raise invalid(
            f"Cannot update variable with shape {dims(old.shape)} using a Tensor with shape "
            f"{dims(value.shape)}, shapes must be equal."
        )


def _kind(op: str) -> str:
    return op.removeprefix("Resource").removeprefix("Scatter").removeprefix("Nd")


@portable("ScatterUpdate", "ResourceScatterUpdate", keeps=())
@portable("ScatterAdd", "ScatterSub", "ScatterMul", T=NUMBERS, keeps=())
@portable("ResourceScatterAdd", "ResourceScatterSub", "ResourceScatterMul", dtype=NUMBERS, keeps=())
@portable(
    "ScatterDiv", T=FLOATS | COMPLEX, keeps=()
)  # whole numbers would have to be divided in order
@portable("ResourceScatterDiv", dtype=FLOATS | COMPLEX, keeps=())
@portable("ScatterMin", "ScatterMax", T=REALS, keeps=())
@portable("ResourceScatterMin", "ResourceScatterMax", dtype=REALS, keeps=())
def scatter(xp: Any, sig: NodeSig) -> Any:
    """Rows of a variable replaced, or changed by the updates."""
    kind, resource = _kind(sig.op), sig.op.startswith("Resource")

    def run(cell: Any, indices: Any, updates: Any) -> Any:
        with cell.lock:
            old = cell.read()
            expected = check_rows(cell, old, indices, updates)
            check_indices(xp, indices, old.shape[0])
            if math.prod(expected):
                width = math.prod(old.shape[1:])
                rows = xp.reshape(xp.broadcast_to(updates, expected), (-1, width))
                place = xp.astype(xp.reshape(indices, (-1,)), index_type(xp))
                table = xp.reshape(old, (old.shape[0], width))
                fresh = _merged(xp, sig, kind, table, place, rows)
                cell.write(xp.reshape(fresh, old.shape))
        return None if resource else cell

    return run


@portable("ScatterNdUpdate", "ResourceScatterNdUpdate", keeps=())
@portable("ScatterNdAdd", "ScatterNdSub", T=NUMBERS, keeps=())
@portable("ResourceScatterNdAdd", "ResourceScatterNdSub", T=NUMBERS, keeps=())
def scatter_nd(xp: Any, sig: NodeSig) -> Any:
    """Slices of a variable at coordinates replaced, or changed by the updates."""
    kind, resource = _kind(sig.op), sig.op.startswith("Resource")

    def run(cell: Any, indices: Any, updates: Any) -> Any:
        with cell.lock:
            old = cell.read()
            check_updates(indices, updates, old.shape)
            place, count = flat_positions(xp, indices, old.shape)
            width = math.prod(old.shape[indices.shape[-1] :])
            if math.prod(updates.shape) and count:
                rows = xp.reshape(updates, (place.shape[0], width))
                fresh = _merged(xp, sig, kind, xp.reshape(old, (count, width)), place, rows)
                cell.write(xp.reshape(fresh, old.shape))
        return None if resource else cell

    return run


@portable("AssignAdd", "AssignSub", T=NUMBERS, keeps=())
@portable("AssignAddVariableOp", "AssignSubVariableOp", dtype=NUMBERS, keeps=())
def assign_sum(xp: Any, sig: NodeSig) -> Any:
    """A variable with the value added or taken away; no other update comes in between."""
    change = xp.add if "Add" in sig.op else xp.subtract
    resource = sig.op.endswith("VariableOp")

    def run(cell: Any, value: Any) -> Any:
        with cell.lock:
            old = cell.read()
            check_assigned(old, value)
            cell.write(xp.asarray(change(old, value)))
        return None if resource else cell

    return run


@portable("CountUpTo", "ResourceCountUpTo", T=INTS)
def count_up_to(xp: Any, sig: NodeSig) -> Any:
    """The value before it is incremented; OutOfRangeError at the limit."""
    limit = sig.attrs["limit"]

    def run(cell: Any) -> Any:
        with cell.lock:
            value = cell.read()
            if fails(xp, value >= limit):
                raise errors.OutOfRangeError(None, None, f"Reached limit of {limit}")
            cell.write(xp.asarray(value + xp.ones_like(value)))
            return value

    return run
