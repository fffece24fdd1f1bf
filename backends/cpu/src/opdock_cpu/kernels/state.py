"""Updates of variables, whole or in part, on NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opdock.plugin import INTS, NUMBERS, Kernel, KernelTable, codegen, errors

table = KernelTable()
Combine = Callable[[Any, Any, Any], None]
_NONE: frozenset[str] = frozenset()
"""No input's buffer outlives the call: a variable gets a fresh one."""


def _check(rows: int, indices: Any) -> None:
    bad = np.flatnonzero((indices.reshape(-1) < 0) | (indices.reshape(-1) >= rows))
    if bad.size:
        where, value = int(bad[0]), indices.reshape(-1)[bad[0]]
        raise errors.InvalidArgumentError(
            None, None, f"indices[{where}] = {value} is not in [0, {rows})"
        )


def _set(target: Any, at: Any, values: Any) -> None:
    target[at] = values


def _divide(target: Any, at: Any, values: Any) -> None:
    if target.dtype.kind in "iu":
        if np.any(np.asarray(values) == 0):
            raise errors.InvalidArgumentError(None, None, "Integer division by zero")
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


def _scatter(combine: Combine, resource: bool) -> Callable[..., Any]:
    def kernel(ctx: Any, cell: Any, indices: Any, updates: Any) -> Any:
        with cell.lock:
            old = cell.read()
            indices = np.asarray(indices)
            if old.ndim == 0:
                raise errors.InvalidArgumentError(
                    None, None, f"Scatter into variable {cell.name} needs at least 1 dimension."
                )
            expected = indices.shape + old.shape[1:]
            if np.ndim(updates) and np.shape(updates) != expected:
                raise errors.InvalidArgumentError(
                    None, None,
                    "Must have updates.shape = indices.shape + params.shape[1:], got "
                    "updates.shape "
                    f"{list(np.shape(updates))}, indices.shape {list(indices.shape)}, params.shape "
                    f"{list(old.shape)}",
                )  # fmt: skip
            _check(old.shape[0], indices)
            fresh = old.copy()
            combine(fresh, indices, updates)
            cell.write(fresh)
        return None if resource else cell

    return kernel


def _scatter_nd(combine: Combine, resource: bool) -> Callable[..., Any]:
    def kernel(ctx: Any, cell: Any, indices: Any, updates: Any) -> Any:
        with cell.lock:
            old = cell.read()
            indices = np.asarray(indices)
            depth = indices.shape[-1]
            flat = indices.reshape(-1, depth)
            limits = np.array(old.shape[:depth])
            bad = np.flatnonzero(((flat < 0) | (flat >= limits)).any(axis=1))
            if bad.size:
                raise codegen.outside(indices, old.shape)
            fresh = old.copy()
            values = np.reshape(updates, (flat.shape[0], *old.shape[depth:]))
            combine(fresh, tuple(flat.T), values)
            cell.write(fresh)
        return None if resource else cell

    return kernel


for _name, _combine in _COMBINE.items():
    _types = {} if _name == "Update" else {"T": NUMBERS}
    table.add(
        Kernel(op=f"Scatter{_name}", fn=_scatter(_combine, False), dtypes=_types, keeps=_NONE)
    )
    _types = {} if _name == "Update" else {"dtype": NUMBERS}
    table.add(
        Kernel(
            op=f"ResourceScatter{_name}", fn=_scatter(_combine, True), dtypes=_types, keeps=_NONE
        )
    )
for _name in ("Update", "Add", "Sub"):
    _types = {} if _name == "Update" else {"T": NUMBERS}
    table.add(
        Kernel(
            op=f"ScatterNd{_name}",
            fn=_scatter_nd(_COMBINE[_name], False),
            dtypes=_types,
            keeps=_NONE,
        )
    )
    table.add(
        Kernel(
            op=f"ResourceScatterNd{_name}",
            fn=_scatter_nd(_COMBINE[_name], True),
            dtypes=_types,
            keeps=_NONE,
        )
    )


def _in_place(ufunc: Any, resource: bool) -> Callable[..., Any]:
    def kernel(ctx: Any, cell: Any, value: Any) -> Any:
        with cell.lock:
            old = cell.read()
            if np.shape(old) != np.shape(value):
                raise errors.InvalidArgumentError(
                    None, None,
                    f"Cannot update variable with shape {list(np.shape(old))} using a Tensor with "
                    f"shape {list(np.shape(value))}, shapes must be equal.",
                )  # fmt: skip
            cell.write(np.asarray(ufunc(old, value)))
        return None if resource else cell

    return kernel


table.add(Kernel(op="AssignAdd", fn=_in_place(np.add, False), dtypes={"T": NUMBERS}, keeps=_NONE))
table.add(
    Kernel(op="AssignSub", fn=_in_place(np.subtract, False), dtypes={"T": NUMBERS}, keeps=_NONE)
)
table.add(
    Kernel(
        op="AssignAddVariableOp", fn=_in_place(np.add, True), dtypes={"dtype": NUMBERS}, keeps=_NONE
    )
)
table.add(
    Kernel(
        op="AssignSubVariableOp",
        fn=_in_place(np.subtract, True),
        dtypes={"dtype": NUMBERS},
        keeps=_NONE,
    )
)


@table.kernel("CountUpTo", T=INTS)
def count_up_to(ctx: Any, cell: Any) -> Any:
    """The value before it is incremented; OutOfRangeError at the limit."""
    with cell.lock:
        value = cell.read()
        if value >= ctx.attrs["limit"]:
            raise errors.OutOfRangeError(None, None, f"Reached limit of {ctx.attrs['limit']}")
        cell.write(np.asarray(value + 1, value.dtype))
        return value


@table.kernel("ResourceGather", keeps=_NONE)
def resource_gather(ctx: Any, cell: Any, indices: Any) -> Any:
    """Rows of a variable."""
    params = cell.read()
    batch = ctx.attrs["batch_dims"]
    indices = np.asarray(indices)
    _check(params.shape[batch], indices)
    if batch == 0:
        return np.take(params, indices, axis=0)
    lead = np.ix_(*[np.arange(d) for d in indices.shape[:batch]])
    lead = tuple(x.reshape(x.shape + (1,) * (indices.ndim - batch)) for x in lead)
    return params[(*lead, indices)]
