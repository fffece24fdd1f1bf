"""Updates of variables, whole or in part, on NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opdock.plugin import INTS, NUMBERS, Kernel, KernelTable, checks, errors
from opdock_cpu.kernels.gather import check_indices

table = KernelTable()
Combine = Callable[[Any, Any, Any], None]


def _set(target: Any, at: Any, values: Any) -> None:
    target[at] = values


def _divide(target: Any, at: Any, values: Any) -> None:
    if target.dtype.kind in "iu":
        if np.any(np.asarray(values) == 0):
            raise checks.invalid("Integer division by zero")
        # Truncating division has no ufunc, and repeated indices must divide one after the other.
        values = np.broadcast_to(values, target[at].shape)
        for row in np.ndindex(np.shape(at)):
            where = at[row]
            signs = np.sign(target[where]) * np.sign(values[row])
            target[where] = signs * (np.abs(target[where]) // np.abs(values[row]))
        return
    np.divide.at(target, at, values)


_COMBINE: dict[str, Combine] = {
    "Update": _set,
    "Add": np.add.at,
    "Sub": np.subtract.at,
    "Mul": np.multiply.at,
    "Div": _divide,
    "Min": np.minimum.at,
    "Max": np.maximum.at,
}


def _scatter(combine: Combine) -> Callable[..., Any]:
    def kernel(ctx: Any, cell: Any, indices: Any, updates: Any) -> Any:
        with cell.lock:
            old = cell.read()
            indices = np.asarray(indices)
            checks.check_rows(cell, old, indices, np.asarray(updates))
            check_indices(indices, old.shape[0])
            fresh = old.copy()
            combine(fresh, indices, updates)
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
            flat = indices.reshape(-1, depth)
            if ((flat < 0) | (flat >= np.array(old.shape[:depth]))).any():
                raise checks.outside(indices, old.shape)
            fresh = old.copy()
            values = np.reshape(updates, (flat.shape[0], *old.shape[depth:]))
            combine(fresh, tuple(flat.T), values)
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
