"""Updates of variables, whole or in part, on NumPy arrays."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from opdock.plugin import INTS, NUMBERS, Kernel, KernelTable, checks, errors
from opdock_cpu import halves
from opdock_cpu.changes import Combine, change_rows, replace
from opdock_cpu.jit.looped import Array, Looped
from opdock_cpu.kernels.gather import check_indices
from opdock_cpu.kernels.scatter import combine, flat_positions
from opdock_cpu.quotients import divide_rows

table = KernelTable()


_BLOCK: Final = 64
"""Columns of a turn, which goes through all rows: several may be the same."""


def _divided(
    begin: int, end: int, target: Array, at: Array, rows: Array, count: int, width: int
) -> None:
    for block in range(begin, end):
        for k in range(count):
            for c in range(block * _BLOCK, min((block + 1) * _BLOCK, width)):
                i = at[k] * width + c
                target[i] = target[i] / rows[k * width + c]


_DIVIDED: Final = Looped(_divided)


def _divide(target: Any, at: Any, rows: Any) -> None:
    width = target.shape[1]
    numbers, blocks = (len(at), width), -(-width // _BLOCK)
    if target.dtype.kind in "iu":
        if np.any(rows == 0):
            raise checks.invalid("Integer division by zero")
        if divide_rows(target, at, rows):
            return
        # Truncating division has no ufunc, and repeated indices must divide one after the other.
        for where, row in zip(at, rows, strict=True):
            signs = np.sign(target[where]) * np.sign(row)
            target[where] = signs * (np.abs(target[where]) // np.abs(row))
        return
    if not (rows.size and _DIVIDED(blocks, rows.size, target, at, rows, *numbers)):
        np.divide.at(target, at, rows)


_COMBINE: dict[str, Combine] = {
    "Update": replace,
    "Add": functools.partial(combine, np.add),
    "Sub": functools.partial(combine, np.subtract),
    "Mul": functools.partial(combine, np.multiply),
    "Div": _divide,
    "Min": functools.partial(combine, np.minimum),
    "Max": functools.partial(combine, np.maximum),
}
"""How rows meet those of a matrix, at numbers of them that may repeat."""


def _rows(cell: Any, indices: Any, updates: Any) -> tuple[tuple[int, int], Any, Any]:
    """A variable's shape as a matrix, numbers of rows of it, and an update for each."""
    old = cell.read()
    shape = checks.check_rows(cell, old, indices, np.asarray(updates))
    check_indices(indices, old.shape[0])
    matrix = old.shape[0], math.prod(old.shape[1:])
    # One number may stand for all rows.
    rows = np.broadcast_to(updates, shape).reshape(indices.size, matrix[1])
    return matrix, indices.reshape(-1), rows


def _slices(cell: Any, indices: Any, updates: Any) -> tuple[tuple[int, int], Any, Any]:
    """The same for slices at coordinates."""
    shape, depth = cell.read().shape, indices.shape[-1]
    checks.check_updates(indices, np.asarray(updates), shape)
    at, width = flat_positions(indices, shape), math.prod(shape[depth:])
    return (math.prod(shape[:depth]), width), at, np.reshape(updates, (at.size, width))


def _scatter(combine: Combine, find: Callable[..., Any]) -> Callable[..., Any]:
    def kernel(ctx: Any, cell: Any, indices: Any, updates: Any) -> Any:
        with cell.lock:
            matrix, at, rows = find(cell, np.asarray(indices), updates)
            change_rows(cell, matrix, combine, at, rows)
        return _handed_on(ctx, cell)

    return kernel


def _in_place(ufunc: Any) -> Callable[..., Any]:
    def kernel(ctx: Any, cell: Any, value: Any) -> Any:
        with cell.lock:
            old = cell.read()
            checks.check_assigned(old, value)
            cell.write(np.asarray(halves.applied(ufunc, old, value)))
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
    _add(f"Scatter{_kind}", "T", _scatter(_combine, _rows), _kind == "Update")
    _add(f"ResourceScatter{_kind}", "dtype", _scatter(_combine, _rows), _kind == "Update")
for _kind in ("Update", "Add", "Sub"):
    for _op in (f"ScatterNd{_kind}", f"ResourceScatterNd{_kind}"):
        _add(_op, "T", _scatter(_COMBINE[_kind], _slices), _kind == "Update")
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
