"""Optimizer updates: every rule of core's table as one kernel that reads and writes all state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opdock.plugin import FLOATS, Kernel, KernelTable, NodeSig, codegen
from opdock_ckernels.pointwise import Pointwise, formula
from opdock_ckernels.protocols import Array

__all__ = ["table"]

table = KernelTable()


def _bind(sig: NodeSig) -> Callable[..., Any]:
    update, dtype, device = codegen.update_of(sig.op), sig.attrs["T"].base_dtype, sig.device
    flags = tuple((name, bool(sig.attrs[name])) for name, _ in update.flags)
    names = ["var", *update.state, *update.inputs]
    program = Pointwise(
        device, codegen.update_line(sig.op, dtype, flags), [(n, dtype) for n in names],
        [dtype] * (1 + len(update.state)),
    )  # fmt: skip
    count = 1 + len(update.state)
    whole = {
        i: formula(device, f"cast(x, {dtype.name})", {"x": sig.in_dtypes[i + count]}, dtype)
        for i, n in enumerate(update.inputs)
        if n in update.integers
    }
    resource = sig.op.startswith("Resource")

    def apply(*inputs: Any) -> Any:
        cells, rest = inputs[:count], list(inputs[count:])
        for i, convert in whole.items():
            rest[i] = convert(rest[i])
        state: list[Array] = [c.read() for c in cells]
        fresh = program(*state, *rest)
        for cell, value in zip(cells, fresh if count > 1 else (fresh,), strict=True):
            cell.write(value)
        return None if resource else cells[0]

    return apply


for _op in codegen.updates():
    table.add(Kernel(op=_op, bind=_bind, dtypes={"T": FLOATS}))
