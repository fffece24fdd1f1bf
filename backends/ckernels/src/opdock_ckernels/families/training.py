"""Optimizer updates: every rule of core's table as one kernel that reads and writes all state.

A sparse update's rows are sorted by index; the updates of one row follow each other in order.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from opdock.plugin import FLOATS, Kernel, KernelTable, NodeSig, as_dtype, checks, codegen, dtypes
from opdock_ckernels.dialect import TYPES
from opdock_ckernels.ordering import sort
from opdock_ckernels.pointwise import Pointwise, formula
from opdock_ckernels.protocols import Array
from opdock_ckernels.scattering import copied, positions

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


# One work item takes an element through all updates of its row.
_SPARSE = """
KERNEL void sparse(GLOBAL const K* at, GLOBAL const int* from, GLOBAL const T* gradient, HYPERS
                   STATES i64 n, i64 width) {
  i64 i = GLOBAL_ID(0);
  if (i >= n * width) return;
  i64 c = i % width, j = i / width;
  K row = at[j];
  if (j > 0 && at[j - 1] == row) return;
  i64 q = (i64)row * width + c;
  READ
  for (; j < n && at[j] == row; ++j) {
    A g = GRADIENT((i64)from[j] * width + c);
    STEP
  }
  WRITE
}
"""


def _sparse_source(sig: NodeSig, kind: str) -> str:
    """The program of a sparse update; rows are numbered in the C type `kind`."""
    update, dtype, device = codegen.update_of(sig.op), sig.attrs["T"].base_dtype, sig.device
    flags = tuple((name, bool(sig.attrs[name])) for name, _ in update.flags)
    line = codegen.update_line(sig.op, dtype, flags)
    dialect: codegen.Dialect = device.dialect
    names = ["var", *update.state]
    hypers = [n for n in update.inputs if n != update.gradient]
    loads = {n: f"s{i}" for i, n in enumerate(names)} | {update.gradient: "g"}
    loads |= {n: dialect.load(dtype, f"h{i}", "0") for i, n in enumerate(hypers)}
    rendered = codegen.render(line, dialect, loads)
    acc, stored = dialect.computed(dtype), TYPES[dtype.name]
    lines = range(len(names))
    step = [*rendered.statements, *(f"s{i} = {rendered.results[i]};" for i in lines)]
    parts = {
        "HYPERS": "".join(f"GLOBAL const {stored}* h{i}, " for i in range(len(hypers))),
        "STATES": "".join(f"GLOBAL {stored}* y{i}, " for i in lines),
        "READ": " ".join(f"{acc} s{i} = {dialect.load(dtype, f'y{i}', 'q')};" for i in lines),
        "STEP": "\n    ".join(step),
        "WRITE": " ".join(dialect.store(dtype, f"y{i}", "q", f"s{i}") for i in lines),
        "GRADIENT": "LOAD",
    }
    text = _SPARSE
    for word, code in parts.items():
        text = text.replace(word, code)
    load = f"#define LOAD(p) {dialect.load(dtype, 'gradient', '(p)')}\n"
    types = f"#define K {kind}\n#define T {stored}\n#define A {acc}\n"
    return codegen.helpers(dialect, load + text) + "\n" + types + load + text


def _bind_sparse(sig: NodeSig) -> Callable[..., Any]:
    update, dtype, device = codegen.update_of(sig.op), sig.attrs["T"].base_dtype, sig.device
    count, resource = 1 + len(update.state), sig.op.startswith("Resource")
    where = update.inputs.index(update.gradient)
    whole = {
        n: formula(device, f"cast(x, {dtype.name})", {"x": dtypes.int64}, dtype)
        for n in update.integers
    }

    def apply(*inputs: Any) -> Any:
        cells, rest = inputs[:count], list(inputs[count:])
        indices = rest.pop(where + 1)
        gradient = rest.pop(where)
        names = [n for n in update.inputs if n != update.gradient]
        hypers = [whole[n](v) if n in whole else v for n, v in zip(names, rest, strict=True)]
        state: list[Array] = [c.read() for c in cells]
        shape = state[0].shape
        at = positions(
            device, indices.reshape(indices.size, 1), shape[:1],
            lambda host: checks.not_in(host.reshape(-1), shape[0]),
        )  # fmt: skip
        fresh = [copied(device, s) for s in state]
        n, width = at.size, math.prod(shape[1:])
        if n * width:
            keys, order = sort(device, at)
            kernel = device.kernel(_sparse_source(sig, TYPES[as_dtype(keys.dtype).name]), "sparse")
            device.launch(
                kernel, n * width, keys, order, gradient, *hypers, *fresh, np.int64(n),
                np.int64(width),
            )  # fmt: skip
        for cell, value in zip(cells, fresh, strict=True):
            cell.write(value)
        return None if resource else cells[0]

    return apply


for _op in codegen.updates():
    table.add(Kernel(op=_op, bind=_bind, dtypes={"T": FLOATS}))
    _name = _op.replace("Apply", "SparseApply")
    if codegen.update_of(_op).sparse:
        table.add(Kernel(op=_name, bind=_bind_sparse, dtypes={"T": FLOATS}))
