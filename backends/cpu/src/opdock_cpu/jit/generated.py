"""A line over arrays of known shapes as one call of generated code."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final

import numpy as np

from opdock.plugin import DType, codegen, dtypes, note
from opdock_cpu.crew import Loop, alone
from opdock_cpu.jit import loops
from opdock_cpu.jit.compiled import caller, ffi, request
from opdock_cpu.jit.mathematics import DEFINED
from opdock_cpu.jit.plain import Plain
from opdock_cpu.jit.plan import Layout, Plan
from opdock_cpu.threads import threads

__all__ = [
    "Generated", "chunks_of", "cost", "folds_well", "in_buffer", "layout_of", "quiet", "walked",
]  # fmt: skip

_PARALLEL: Final = 40_000
"""Nanoseconds of work from which a second thread pays: waking it takes a few thousand."""
_AWAKE: Final = 10_000
"""The same for a thread that is awake, where nothing is folded."""
_CHUNK: Final = 20_000
"""Nanoseconds of work in a chunk, at the least: many more than it takes to be handed out."""
_CHUNKS: Final = 16
_FUNCTION: Final = 12
"""What a mathematical function takes beside an addition."""
_SCRATCH: Final = 1 << 12
"""Results of folds across rows that are always few enough; each share has a copy of them."""
_FREE: Final = frozenset({codegen.INPUT, codegen.NUMBER})
Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]
Open = tuple[int | None, ...]


def layout_of(
    inputs: Sequence[Shape], shape: Shape, gone: Sequence[Collection[int]] = ()
) -> tuple[Layout, list[int]]:
    """How a line is walked, and the sizes of the merged dimensions.

    Args:
        inputs: the shapes of the inputs, which broadcast to `shape`.
        shape: what is computed.
        gone: for each of the last results the axes that it is folded over.
    """
    layout, merged = walked(inputs, shape, gone)
    return layout, [math.prod(shape[d] for d in dims) for dims in merged]


def walked(
    inputs: Sequence[Open], shape: Open, gone: Sequence[Collection[int]] = ()
) -> tuple[Layout, list[list[int]]]:
    """How a line is walked, and the dimensions that are merged into each of the walk.

    Args:
        inputs, shape, gone: those of `layout_of`; sizes that are not known agree, and are not 1.
    """
    merged: list[list[int]] = []
    patterns: list[tuple[bool, ...]] = []
    for d, n in enumerate(shape):
        if n == 1:
            continue
        at = d - len(shape)
        pattern = (
            *(len(s) >= -at and s[at] != 1 for s in inputs), *(d not in axes for axes in gone)
        )  # fmt: skip
        if merged and patterns[-1] == pattern:
            merged[-1].append(d)
        else:
            merged.append([d])
            patterns.append(pattern)
    if not merged:
        # One element, which a fold over nothing keeps.
        merged, patterns = [[]], [(False,) * (len(inputs) + len(gone))]
    columns = tuple(zip(*patterns, strict=True))
    return Layout(columns[: len(inputs)], columns[len(inputs) :]), merged


def folds_well(inputs: Sequence[Shape], shape: Shape, gone: Sequence[Collection[int]]) -> bool:
    """Whether folds need little scratch memory beside what they read."""
    layout, sizes = layout_of(inputs, shape, gone)
    shared = [
        math.prod(n for n, stays in zip(sizes, kept, strict=True) if stays)
        for kept in layout.kept
        if kept[-1] or (len(kept) > 1 and not all(kept[:-1]))
    ]
    return sum(shared) <= max(_SCRATCH, math.prod(sizes) // 4)


def cost(line: Any, types: Sequence[DType]) -> float:
    """Nanoseconds that an element takes, roughly: arithmetic in vectors, and elements moved."""
    steps = sum(_FUNCTION if s.op in DEFINED else 1 for s in line.steps if s.op not in _FREE)
    return 0.03 * steps + 0.01 * sum(t.size for t in types)


def chunks_of(nanoseconds: float, count: int, width: int) -> int:
    """Into how many shares work is divided: that depends on its size alone, as results do on it.

    Args:
        nanoseconds: what the work takes.
        count: how many elements are computed.
        width: how many cells of scratch memory a share needs: all of it should be little.
    """
    if quiet(nanoseconds):
        return 2 if nanoseconds >= _AWAKE and not width else 1
    most = _CHUNKS if not width else max(2, count // (4 * width))
    return max(1, min(_CHUNKS, most, int(nanoseconds // _CHUNK)))


def quiet(nanoseconds: float) -> bool:
    """Whether work is shared with threads that are awake only, if at all."""
    return nanoseconds < _PARALLEL


def in_buffer(result: Any, out: Any) -> Any:
    """A result of other code in the planned buffer, if there is one."""
    if out is None:
        return result
    out[...] = result
    return out


@functools.lru_cache(maxsize=128)
def _figures(
    line: Any, names: tuple[str, ...], inputs: tuple[tuple[DType, Shape], ...], shape: Shape,
    outputs: tuple[tuple[DType, Shape], ...], reduces: tuple[codegen.Reduce, ...],
) -> tuple[Layout, Array, float]:  # fmt: skip
    """What is the same of all that are alike: how a line is walked, the sizes that its code gets,
    and the nanoseconds that it takes."""
    layout, sizes = layout_of([s for _, s in inputs], shape, [r.axes for r in reduces])
    taken, given = [t for t, _ in inputs], [t for t, _ in outputs]
    count = math.prod(shape)
    folded = [count // math.prod(s) for _, s in outputs[len(outputs) - len(reduces) :]]
    plan = Plan(line, names, taken, given, layout, [r.kind for r in reduces])
    return layout, np.array(plan.sizes(sizes, folded), np.int64), count * cost(line, taken + given)


class Generated:
    """A line, compiled in the background; NumPy serves until it is, or where it cannot be.

    Args:
        line: the typed steps.
        names: the inputs' names.
        inputs: their types and shapes.
        shape: what is computed, at least one element.
        outputs: the results' types and shapes.
        reduces: how the last results are folded, one after the other.
    """

    def __init__(
        self, line: Any, names: Sequence[str], inputs: Sequence[tuple[DType, Shape]],
        shape: Shape, outputs: Sequence[tuple[DType, Shape]],
        reduces: Sequence[codegen.Reduce] = (),
    ) -> None:  # fmt: skip
        taken, given = tuple([t for t, _ in inputs]), tuple([t for t, _ in outputs])
        kinds = tuple([r.kind for r in reduces])
        layout, self._sizes, nanoseconds = _figures(
            line, tuple(names), tuple(inputs), shape, tuple(outputs), tuple(reduces)
        )
        self._function = request(
            lambda name: loops.module(name, line, tuple(names), taken, given, layout, kinds)
        )
        self._width = int(self._sizes[-1])
        self._threads = threads()
        self._chunks = chunks_of(nanoseconds, math.prod(shape), self._width)
        self._quiet = quiet(nanoseconds)
        alone = self._chunks == 1 or self._threads == 1
        most = min(self._threads, self._chunks)
        note("generated code" if alone else f"generated code on up to {most} threads")
        self._inputs = len(inputs)
        self._outs = [(s, t.np) for t, s in outputs]
        self._raw = [t is dtypes.bfloat16 for t in (*taken, *given)]
        self._plain = Plain(line, names, shape, outputs, reduces)
        self._call: Callable[..., Any] | None = None

    @property
    def ready(self) -> bool:
        """Whether the code is there; where it fails to compile, it never is."""
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
            if not self.ready:
                return self._plain(arrays, outs)
            self._call = self._bound()
        return self._call(arrays, outs)

    def _bound(self) -> Callable[[Sequence[Any], Sequence[Any] | None], list[Any]]:
        lib, address = ffi(), self._function.address
        assert address is not None
        pointer, count, outputs = lib.from_buffer, self._inputs, self._outs
        call = caller(count + len(outputs) + 2)(address)
        sizes, chunks, width = pointer(self._sizes), self._chunks, self._width
        nothing, empty, raw = lib.NULL, np.empty, any(self._raw)
        loop, limit, whole, silent = Loop(), self._threads, alone(), self._quiet

        def run(arrays: Sequence[Any], outs: Sequence[Any] | None) -> list[Any]:
            if outs is None:
                results = [empty(s, t) for s, t in outputs]
            else:
                results = [
                    empty(*o) if out is None else out for o, out in zip(outputs, outs, strict=True)
                ]
            values = [*arrays, *results]
            scratch = pointer(empty(chunks * width)) if width else nothing
            if raw:
                values = self._as_words(values)
            try:
                passed = list(map(pointer, values))
            except (ValueError, BufferError):
                values = [np.ascontiguousarray(v) for v in values[:count]] + values[count:]
                passed = list(map(pointer, values))
            if chunks == 1:
                call(*passed, scratch, sizes, whole)
                return results
            held = loop.begin(chunks, limit, silent)
            call(*passed, scratch, sizes, held.address)
            loop.end(held)
            return results

        return run

    def _as_words(self, values: Sequence[Any]) -> list[Any]:
        # bfloat16 is no type of the buffer protocol.
        return [
            np.asarray(v).view(np.uint16) if raw else v
            for v, raw in zip(values, self._raw, strict=True)
        ]
