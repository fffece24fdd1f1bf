"""Updates of variables, whole or in part. A variable's buffer is replaced, never changed."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from opdock.plugin import Kernel, KernelTable, NodeSig, checks, codegen, dtypes
from opdock_ckernels.families.array import HELD
from opdock_ckernels.families.gather import gatherer
from opdock_ckernels.pointwise import formula
from opdock_ckernels.protocols import Array
from opdock_ckernels.scattering import copied, positions, scatter

__all__ = ["table"]

table = KernelTable()
_NUMBERS = codegen.RENDERED - {dtypes.bool}


def _assign(sig: NodeSig) -> Callable[..., Any]:
    """The sum or difference of the variable and a value of its shape."""
    resource, dtype = sig.op.endswith("VariableOp"), sig.in_dtypes[1].base_dtype
    text = "x + y" if "Add" in sig.op else "x - y"
    program = formula(sig.device, text, {"x": dtype, "y": dtype}, dtype)

    def run(cell: Any, value: Array) -> Any:
        with cell.lock:
            old = cell.read()
            checks.check_assigned(old, value)
            cell.write(program(old, value))
        return None if resource else cell

    return run


for _name in ("AssignAdd", "AssignSub"):
    table.add(Kernel(op=_name, bind=_assign, dtypes={"T": _NUMBERS}))
    table.add(Kernel(op=f"{_name}VariableOp", bind=_assign, dtypes={"dtype": _NUMBERS}))


def _rows(sig: NodeSig) -> Callable[..., Any]:
    """Rows of a variable replaced, or combined with the updates one by one."""
    device, resource = sig.device, sig.op.startswith("Resource")
    how = sig.op.removeprefix("Resource").removeprefix("Scatter")

    def run(cell: Any, indices: Array, updates: Array) -> Any:
        with cell.lock:
            old = cell.read()
            checks.check_rows(cell, old, indices, updates)
            at = positions(
                device, indices.reshape(indices.size, 1), old.shape[:1],
                lambda host: checks.not_in(host.reshape(indices.shape), old.shape[0]),
            )  # fmt: skip
            fresh = copied(device, old)
            scatter(device, how, fresh, at, updates, math.prod(old.shape[1:]))
            cell.write(fresh)
        return None if resource else cell

    return run


def _slices(sig: NodeSig) -> Callable[..., Any]:
    """Slices of a variable at coordinates replaced, or combined with the updates one by one."""
    device, resource = sig.device, sig.op.startswith("Resource")
    how = sig.op.removeprefix("Resource").removeprefix("ScatterNd")

    def run(cell: Any, indices: Array, updates: Array) -> Any:
        with cell.lock:
            old = cell.read()
            depth = indices.shape[-1]
            at = positions(device, indices, old.shape[:depth], lambda host: _flat(host, old.shape))
            width = math.prod(old.shape[depth:])
            fresh = copied(device, old)
            scatter(device, how, fresh, at, updates.reshape(at.size, width), width)
            cell.write(fresh)
        return None if resource else cell

    return run


def _flat(indices: np.ndarray[Any, Any], shape: tuple[int, ...]) -> Exception:
    return checks.outside(indices.reshape(-1, indices.shape[-1]), shape)


for _name in ("Update", "Add", "Sub", "Mul", "Div", "Min", "Max"):
    _types = HELD if _name == "Update" else _NUMBERS
    table.add(Kernel(op=f"Scatter{_name}", bind=_rows, dtypes={"T": _types}))
    table.add(Kernel(op=f"ResourceScatter{_name}", bind=_rows, dtypes={"dtype": _types}))
for _name in ("Update", "Add", "Sub"):
    _types = HELD if _name == "Update" else _NUMBERS
    table.add(Kernel(op=f"ScatterNd{_name}", bind=_slices, dtypes={"T": _types}))
    table.add(Kernel(op=f"ResourceScatterNd{_name}", bind=_slices, dtypes={"T": _types}))


@table.binder("ResourceGather", dtype=HELD)
def resource_gather(sig: NodeSig) -> Callable[[Any, Array], Array]:
    """Rows of a variable."""
    batch = sig.attrs["batch_dims"]
    run = gatherer(sig.device, sig.attrs["dtype"], sig.in_dtypes[1], batch)
    return lambda cell, indices: run(cell.read(), indices, batch)
