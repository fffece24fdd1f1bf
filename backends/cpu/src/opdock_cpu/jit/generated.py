"""A line over arrays of known shapes as one call of generated code."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final

import numpy as np

from opdock.plugin import DType, codegen, dtypes
from opdock_cpu.jit import loops
from opdock_cpu.jit.compiled import caller, ffi, request
from opdock_cpu.jit.mathematics import DEFINED
from opdock_cpu.jit.openmp import threads_work
from opdock_cpu.threads import threads

__all__ = ["Generated", "layout_of"]

_PARALLEL: Final = 40_000
"""Nanoseconds of work from which a second thread pays: waking it takes a few thousand."""
_FREE: Final = frozenset({codegen.INPUT, codegen.NUMBER})
Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]


def layout_of(
    inputs: Sequence[Shape], shape: Shape, gone: Collection[int] = ()
) -> tuple[loops.Layout, list[int]] | None:
    """How a line is walked, and the sizes of the merged dimensions.

    Args:
        inputs: the shapes of the inputs, which broadcast to `shape`.
        shape: what is computed.
        gone: the axes that the last result is folded over.

    Returns:
        None for a fold over dimensions amid kept ones, for which there are no loops.
    """
    sizes: list[int] = []
    varies: list[tuple[bool, ...]] = []
    folded: list[bool] = []
    for d, n in enumerate(shape):
        if n == 1:
            continue
        at = d - len(shape)
        column = tuple(len(s) >= -at and s[at] != 1 for s in inputs)
        if sizes and varies[-1] == column and folded[-1] == (d in gone):
            sizes[-1] *= n
        else:
            sizes.append(n)
            varies.append(column)
            folded.append(d in gone)
    if not sizes:
        sizes, varies, folded = [1], [(False,) * len(inputs)], [bool(gone)]
    ends = ""
    if gone:
        if all(folded):
            ends = "all"
        elif folded[-1] and not any(folded[:-1]):
            ends = "rows"
        elif not folded[-1] and all(folded[:-1]):
            ends = "columns"
        else:
            return None
    return loops.Layout(tuple(zip(*varies, strict=True)), ends), sizes


def _cost(line: Any, types: Sequence[DType]) -> float:
    """Nanoseconds an element, roughly: arithmetic in vectors, and elements moved."""
    steps = sum(6 if s.op in DEFINED else 1 for s in line.steps if s.op not in _FREE)
    return 0.03 * steps + 0.01 * sum(t.size for t in types)


class Generated:
    """A line, compiled in the background: `ready` says when it can be called.

    Args:
        line: the typed steps.
        names: the inputs' names.
        inputs: their types and shapes.
        shape: what is computed, at least one element.
        outputs: the results' types and shapes.
        reduce: how the last results are folded; its layout must have loops.
        folds: how many results `reduce` folds.
    """

    def __init__(
        self, line: Any, names: Sequence[str], inputs: Sequence[tuple[DType, Shape]],
        shape: Shape, outputs: Sequence[tuple[DType, Shape]], reduce: Any = None,
        folds: int = 1,
    ) -> None:  # fmt: skip
        found = layout_of([s for _, s in inputs], shape, reduce.axes if reduce else ())
        if found is None:
            raise ValueError(f"no loops fold {shape} over {reduce.axes}")
        layout, sizes = found
        kinds = (reduce.kind,) * folds if reduce else ()
        taken, given = [t for t, _ in inputs], [t for t, _ in outputs]
        count, forks = math.prod(shape), threads_work()
        heavy = count * _cost(line, [*taken, *given]) >= _PARALLEL
        self._team = threads() if forks and heavy else 1
        self._function = request(
            lambda name: loops.module(name, line, names, taken, given, layout, kinds, forks)
        )
        self._sizes = np.array([*sizes, count // math.prod(outputs[-1][1])], np.int64)
        self._width = {"all": 1, "columns": sizes[-1]}.get(layout.ends, 0) * len(kinds)
        self._inputs = len(inputs)
        self._outs = [(s, t.np) for t, s in outputs]
        self._raw = [t is dtypes.bfloat16 for t in (*taken, *given)]
        self._call: Callable[..., Any] | None = None

    @property
    def ready(self) -> bool:
        """Whether the code is there; a failure to compile leaves it false for ever."""
        return self._function.address is not None

    @property
    def failure(self) -> str:
        """Why the code will never be there, if so."""
        return self._function.failure

    def __call__(self, arrays: Sequence[Any], outs: Sequence[Any] | None = None) -> list[Any]:
        """The results.

        Args:
            arrays: the inputs.
            outs: for each result a buffer, or None for a new one.
        """
        if self._call is None:
            self._call = self._bound()
        return self._call(arrays, outs)

    def _bound(self) -> Callable[[Sequence[Any], Sequence[Any] | None], list[Any]]:
        lib, address = ffi(), self._function.address
        assert address is not None
        pointer, count, outputs = lib.from_buffer, self._inputs, self._outs
        call = caller(count + len(outputs) + 2)(address)
        sizes, team, width = pointer(self._sizes), self._team, self._width
        nothing, empty, raw = lib.NULL, np.empty, any(self._raw)

        def run(arrays: Sequence[Any], outs: Sequence[Any] | None) -> list[Any]:
            if outs is None:
                results = [empty(s, t) for s, t in outputs]
            else:
                results = [
                    empty(*o) if out is None else out
                    for o, out in zip(outputs, outs, strict=True)
                ]
            values = [*arrays, *results]
            scratch = pointer(empty(team * width)) if width else nothing
            if raw:
                values = self._as_words(values)
            try:
                call(*map(pointer, values), scratch, sizes, team)
            except (ValueError, BufferError):
                values = [np.ascontiguousarray(v) for v in values[:count]] + values[count:]
                call(*map(pointer, values), scratch, sizes, team)
            return results

        return run

    def _as_words(self, values: Sequence[Any]) -> list[Any]:
        # bfloat16 is no type of the buffer protocol.
        return [
            np.asarray(v).view(np.uint16) if raw else v
            for v, raw in zip(values, self._raw, strict=True)
        ]
