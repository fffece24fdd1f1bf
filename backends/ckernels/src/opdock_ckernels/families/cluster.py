"""Elementwise clusters: many ops in one pass over memory, with the reduction behind them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opdock.plugin import CLUSTER, DType, KernelTable, NodeSig, codegen, dtypes
from opdock_ckernels.dialect import TYPES
from opdock_ckernels.folding import FOLDS, fold, parts_of, start_of, ways_of
from opdock_ckernels.pointwise import Pointwise, patterns_of
from opdock_ckernels.protocols import Array

__all__ = ["table"]

table = KernelTable()

_NARROW = (dtypes.float16, dtypes.bfloat16)
_WIDE = (dtypes.float64, dtypes.complex128)


def _when(sig: NodeSig) -> bool | str:
    line: codegen.Line = sig.attrs["line"]
    if not codegen.can_render(line):
        return "a function or type has no spelling in C"
    if not sig.device.has_double and any(s.dtype in _WIDE for s in line.steps):
        return "the device has no double precision"
    if sig.attrs["reduces"] and len(line.results) > 1:
        return "a reduction beside other results"
    return True


@table.binder(CLUSTER, when=_when)
def cluster(sig: NodeSig) -> Callable[..., Any]:
    """The line of each element; with a reduction, each work item folds a part of a row of them."""
    reduces: Sequence[codegen.Reduce] = sig.attrs["reduces"]
    inputs = list(zip(sig.attrs["names"], (t.base_dtype for t in sig.in_dtypes), strict=True))
    if not reduces:
        outputs = [t.base_dtype for t in sig.out_dtypes]
        return Pointwise(sig.device, sig.attrs["line"], inputs, outputs, sig.attrs["shape"])
    return _Reduction(sig, inputs, reduces[0])


class _Reduction:
    """A line whose values are folded as they are computed."""

    def __init__(
        self, sig: NodeSig, inputs: Sequence[tuple[str, DType]], reduce: codegen.Reduce
    ) -> None:
        self._device, self._line, self._inputs = sig.device, sig.attrs["line"], inputs
        self._how = "sum" if reduce.kind == "mean" else reduce.kind
        self._last = "total / whole" if reduce.kind == "mean" else "total"
        shape: tuple[int, ...] = sig.attrs["shape"]
        axes = set(reduce.axes)
        self._dtype = sig.out_dtypes[0].base_dtype
        self._wide = dtypes.float32 if self._dtype in _NARROW else self._dtype
        self._result = tuple(
            1 if a in axes else n for a, n in enumerate(shape) if reduce.keep_dims or a not in axes
        )
        self._count = math.prod(n for a, n in enumerate(shape) if a in axes)
        self._outputs = math.prod(self._result)
        self._parts = parts_of(self._count)
        # One more pattern tells the dimensions that go from those that stay.
        gone = tuple(n if a in axes else 1 for a, n in enumerate(shape))
        shapes = [tuple(n or 0 for n in s or ()) for s in sig.in_shapes]
        (*self._patterns, self._gone), self._sizes = patterns_of([*shapes, gone], shape)
        self._kernel = self._device.kernel(self._source(), "cluster")

    def _offset(self, pattern: tuple[bool, ...]) -> str:
        text = ""
        for d, varies in enumerate(pattern):
            if varies:
                text = f"({text}) * n{d} + i{d}" if text else f"i{d}"
        return text or "0"

    def _walk(self, index: str, gone: bool) -> str:
        """Statements that split an index into those of the dimensions that go, or stay."""
        dims = [d for d, g in enumerate(self._gone) if g == gone]
        lines = [f"i64 rest_{int(gone)} = {index};"]
        for d in reversed(dims[1:]):
            lines.append(f"i64 i{d} = rest_{int(gone)} % n{d}; rest_{int(gone)} /= n{d};")
        if dims:
            lines.append(f"i64 i{dims[0]} = rest_{int(gone)};")
        return " ".join(lines)

    def _source(self) -> str:
        dialect: codegen.Dialect = self._device.dialect
        target = self._dtype if self._parts == 1 else self._wide
        acc, ways = dialect.computed(self._wide), ways_of(self._device, not self._gone[-1])
        loads = {
            name: dialect.load(dtype, f"x{j}", f"({self._offset(pattern)})")
            for j, ((name, dtype), pattern) in enumerate(
                zip(self._inputs, self._patterns, strict=True)
            )
        }
        body = codegen.render(self._line, dialect, loads)
        last = self._last if self._parts == 1 else "total"
        text = "\n  ".join([
            "i64 i = GLOBAL_ID(0);",
            "if (i >= n * parts) return;",
            ways[0],
            self._walk("o", gone=False),
            f"{acc} acc = {start_of(dialect, self._how, self._wide)};",
            f"{ways[1]} {{",
            f"  {self._walk('j', gone=True)}",
            *(f"  {s}" for s in body.statements),
            f"  {acc} v = {body.results[-1]};",
            f"  acc = {FOLDS[self._how][1]};",
            "}",
            f"{acc} total = acc;",
            dialect.store(target, "y", "(o * parts + part)", f"({last})"),
        ])  # fmt: skip
        params = [f"GLOBAL const {TYPES[t.name]}* x{j}" for j, (_, t) in enumerate(self._inputs)]
        params += [f"GLOBAL {TYPES[target.name]}* y", "i64 n, i64 count, i64 parts, i64 whole"]
        params += [f"i64 n{d}" for d in range(len(self._sizes))]
        head = codegen.helpers(dialect, text)
        return f"{head}\nKERNEL void cluster({', '.join(params)}) {{\n  {text}\n}}\n"

    def __call__(self, *arrays: Array) -> Array:
        device, split = self._device, self._parts > 1
        shape = (self._outputs, self._parts) if split else self._result
        out: Array = device.allocate(shape, (self._wide if split else self._dtype).np)
        numbers = (self._outputs, self._count, self._parts, self._count, *self._sizes)
        device.launch(
            self._kernel, self._outputs * self._parts, *arrays, out, *map(np.int64, numbers)
        )
        if not split:
            return out
        done = fold(
            device, self._how, out, (1,), last=self._last, whole=self._count, dtype=self._dtype
        )
        return done.reshape(*self._result)
