"""Updates of variables, whole or in part, on NumPy arrays."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from opdock.plugin import INTS, NUMBERS, Kernel, KernelTable, checks, errors
from opdock_cpu.kernels.gather import check_indices
from opdock_cpu.kernels.scatter import combine, flat_positions

table = KernelTable()
Combine = Callable[[Any, Any, Any], None]


def _set(target: Any, at: Any, rows: Any) -> None:
    target[at] = rows


def _divide(target: Any, at: Any, rows: Any) -> None:
    if target.dtype.kind in "iu":
        if np.any(rows == 0):
            raise checks.invalid("Integer division by zero")
        # Truncating division has no ufunc, and repeated indices must divide one after the other.
        for where, row in zip(at, rows, strict=True):
            signs = np.sign(target[where]) * np.sign(row)
            target[where] = signs * (np.abs(target[where]) // np.abs(row))
        return
    np.divide.at(target, at, rows)


_COMBINE: dict[str, Combine] = {
    "Update": _set,
    "Add": functools.partial(combine, np.add),
    "Sub": functools.partial(combine, np.subtract),
    "Mul": functools.partial(combine, np.multiply),
    "Div": _divide,
    "Min": functools.partial(combine, np.minimum),
    "Max": functools.partial(combine, np.maximum),
}
"""How rows meet those of a matrix, at numbers of them that may repeat."""


def _scatter(combine: Combine) -> Callable[..., Any]:
    def kernel(ctx: Any, cell: Any, indices: Any, updates: Any) -> Any:
        with cell.lock:
            old = cell.read()
            indices = np.asarray(indices)
            shape = checks.check_rows(cell, old, indices, np.asarray(updates))
            check_indices(indices, old.shape[0])
            width = math.prod(old.shape[1:])
            # One number may stand for all rows.
            rows = np.broadcast_to(updates, shape).reshape(indices.size, width)
            fresh = old.copy()
            combine(fresh.reshape(old.shape[0], width), indices.reshape(-1), rows)
            cell.write(fresh)
        return _handed_on(ctx, cell)

    return kernel


def _scatter_nd(combine: Combine) -> Callable[..., Any]:
    def kernel(ctx: Any, cell: Any, indices: Any, updates: Any) -> Any:
        with cell.lock:
            old = cell.read()
            indices = np.asarray(indices)
            checks.check_updates(indices, np.asarray(updates), old.shape)
            depth = indices.shape[-1]
            flat = flat_positions(indices, old.shape)
            width = math.prod(old.shape[depth:])
            fresh = old.copy()
            matrix = fresh.reshape(math.prod(old.shape[:depth]), width)
            combine(matrix, flat, np.reshape(updates, (flat.size, width)))
            cell.write(fresh)
        return _handed_on(ctx, cell)

    return kernel


def _in_place(ufunc: Any) -> Callable[..., Any]:
    def kernel(ctx: Any, cell: Any, value: Any) -> Any:
        with cell.lock:
            old = cell.read()
            checks.check_assigned(old, value)
            cell.write(np.asarray(ufunc(old, value)))
        return _handed_on(ctx, cell)

    return kernel


def _handed_on(ctx: Any, cell: Any) -> Any:
    """The reference to the variable, for ops that have one as their result."""
    return cell if ctx.sig.out_dtypes else None


def _add(op: str, attr: str, fn: Any, of_any_type: bool = False) -> None:
    types = {} if of_any_type else {attr: NUMBERS}
    # No input's buffer outlives the call: a variable gets a fresh one.
    table.add(Kernel(op=op, fn=fn, dtypes=types, keeps=frozenset()))


for _kind, _combine in _COMBINE.items():
    _add(f"Scatter{_kind}", "T", _scatter(_combine), _kind == "Update")
    _add(f"ResourceScatter{_kind}", "dtype", _scatter(_combine), _kind == "Update")
for _kind in ("Update", "Add", "Sub"):
    for _op in (f"ScatterNd{_kind}", f"ResourceScatterNd{_kind}"):
        _add(_op, "T", _scatter_nd(_COMBINE[_kind]), _kind == "Update")
for _op, _ufunc in (("AssignAdd", np.add), ("AssignSub", np.subtract)):
    _add(_op, "T", _in_place(_ufunc))
    _add(f"{_op}VariableOp", "dtype", _in_place(_ufunc))


@table.kernel("CountUpTo", T=INTS)
def count_up_to(ctx: Any, cell: Any) -> Any:
    """The value before it is incremented; OutOfRangeError at the limit."""
    with cell.lock:
        value = cell.read()
        if value >= ctx.attrs["limit"]:
            raise errors.OutOfRangeError(None, None, f"Reached limit of {ctx.attrs['limit']}")
        cell.write(np.asarray(value + 1, value.dtype))
        return value


@table.kernel("ResourceGather", keeps=())
def resource_gather(ctx: Any, cell: Any, indices: Any) -> Any:
    """Rows of a variable."""
    params = cell.read()
    batch = ctx.attrs["batch_dims"]
    indices = np.asarray(indices)
    check_indices(indices, params.shape[batch])
    if batch == 0:
        return np.take(params, indices, axis=0)
    lead = np.ix_(*[np.arange(d) for d in indices.shape[:batch]])
    lead = tuple(x.reshape(x.shape + (1,) * (indices.ndim - batch)) for x in lead)
    return params[(*lead, indices)]
