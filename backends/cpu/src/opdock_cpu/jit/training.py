"""Optimizer updates: each rule of core's table as one pass that reads and writes all state.

A variable's buffer is replaced, never written in place, because a step that has read it may still
hold it. The one that was replaced is kept, and written again once nobody else refers to it.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from opdock.plugin import Kernel, KernelTable, NodeSig, codegen, dtypes
from opdock_cpu.changes import may_write
from opdock_cpu.jit import llvm, render
from opdock_cpu.jit.generated import Generated
from opdock_cpu.namespace import namespace

__all__ = ["line_of", "table"]

table = KernelTable()
_FLOATS: Final = frozenset({
    dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64,
})  # fmt: skip
_SMALL: Final = 1 << 15
"""Steps times elements from which generated code is quicker; measured."""
_SHAPES: Final = 16
"""So many shapes are kept where they change."""
_ALONE: Final = 3
"""References to a buffer that only the list of spare ones holds, as `sys.getrefcount` counts."""
Array = np.ndarray[Any, Any]


def line_of(sig: NodeSig, known: tuple[tuple[str, float], ...] = ()) -> Any:
    """The line of an update, for given values of some of its inputs."""
    update = codegen.update_of(sig.op)
    flags = tuple((name, bool(sig.attrs[name])) for name, _ in update.flags)
    return codegen.update_line(sig.op, sig.attrs["T"].base_dtype, flags, known)


def _when(sig: NodeSig) -> bool | str:
    if not llvm.available():
        return llvm.why_not()
    line = line_of(sig, codegen.update_of(sig.op).usual)
    # A resource tells no shape, but its gradient does.
    known = [math.prod(n or 0 for n in s) for s in sig.in_shapes if s is not None and None not in s]
    if len(known) == len(sig.in_shapes) and max(known) * len(line.steps) < _SMALL:
        return "NumPy is quicker on so few elements"
    return render.renders(line)


class _Spares:
    """The buffers that a variable's updates take turns in."""

    def __init__(self) -> None:
        self._held: list[Array] = []

    def take(self, like: Array) -> Array | None:
        """A buffer that nobody else refers to, or None."""
        for spare in self._held:
            alone = sys.getrefcount(spare) <= _ALONE
            if alone and spare.shape == like.shape and may_write(spare):
                self._held = []
                return spare
        return None

    def keep(self, replaced: Array) -> None:
        """Keeps a buffer that was replaced."""
        self._held = [replaced]


def _bind(sig: NodeSig) -> Callable[..., Any]:
    update, dtype = codegen.update_of(sig.op), sig.attrs["T"].base_dtype
    count = 1 + len(update.state)
    names = ("var", *update.state, *update.inputs)
    whole = [update.inputs.index(n) for n in sorted(update.integers)]
    usual = [(update.inputs.index(n), value) for n, value in update.usual]
    resource = sig.op.startswith("Resource")
    spares = [_Spares() for _ in range(count)]
    plain = codegen.update_on(namespace, sig)
    always = render.renders(line_of(sig)) is True

    @functools.lru_cache(maxsize=_SHAPES)
    def program(as_usual: bool, *shapes: tuple[int, ...]) -> Generated:
        inputs = [(dtype, s) for s in shapes]
        line = line_of(sig, update.usual if as_usual else ())
        return Generated(line, names, inputs, shapes[0], [(dtype, shapes[0])] * count)

    def apply(*inputs: Any) -> Any:
        cells, rest = inputs[:count], list(inputs[count:])
        for i in whole:
            rest[i] = np.asarray(rest[i], dtype.np)
        with cells[0].lock:
            values = [c.read() for c in cells]
            state = values[:]
            values += rest
            as_usual = all(rest[i] == value for i, value in usual)
            if not state[0].size or not (always or as_usual):
                return plain(*inputs)
            outs = [s.take(v) for s, v in zip(spares, state, strict=True)]
            fresh = program(as_usual, *map(np.shape, values))(values, outs)
            for cell, value, old, spare in zip(cells, fresh, state, spares, strict=True):
                cell.write(value)
                spare.keep(old)
        return None if resource else cells[0]

    return apply


for _op in codegen.updates():
    table.add(
        Kernel(op=_op, bind=_bind, dtypes={"T": _FLOATS}, when=_when, priority=1, keeps=frozenset())
    )
