"""A line over arrays whose sizes each step brings, as one call of generated code."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from opdock.plugin import DType, codegen, dtypes, errors, note
from opdock_cpu.crew import Loop, alone
from opdock_cpu.jit import loops
from opdock_cpu.jit.compiled import caller, ffi, request
from opdock_cpu.jit.generated import Open, Shape, chunks_of, cost, quiet, walked
from opdock_cpu.namespace import namespace
from opdock_cpu.threads import threads

__all__ = ["Sized", "unsaid"]

_SMALL: Final = 1 << 10
_FEW: Final = 3
"""Fewer members on fewer elements than these are quicker in NumPy, as in clusters of known size."""


def unsaid(inputs: Sequence[Open], shape: Open) -> bool:
    """Whether some size is not known, and no input says it."""
    return any(
        n is None and not any(_varies(s, d - len(shape)) for s in inputs)
        for d, n in enumerate(shape)
    )


def _varies(shape: Open, at: int) -> bool:
    return len(shape) >= -at and shape[at] != 1


class _Sizes(NamedTuple):
    """What follows from the shapes of a step's inputs.

    Attributes:
        shapes: those of the inputs.
        shape: that of the results.
        elements: how many elements they have.
        chunks: in how many shares they are computed.
        quiet: whether threads that sleep are left alone.
        words: the sizes that the code gets.
    """

    shapes: tuple[Shape, ...]
    shape: Shape
    elements: int
    chunks: int
    quiet: bool
    words: Any


class Sized:
    """A line, compiled in the background for whatever sizes come; NumPy serves until it is.

    Args:
        line: the typed steps.
        names: the inputs' names.
        inputs: their types and shapes.
        shape: what is computed; an input varies along each dimension that is not known.
        outputs: the results' types.
        members: how many ops it stands for.
    """

    def __init__(
        self, line: Any, names: Sequence[str], inputs: Sequence[tuple[DType, Open]], shape: Open,
        outputs: Sequence[DType], members: int,
    ) -> None:  # fmt: skip
        taken, given = tuple(t for t, _ in inputs), tuple(outputs)
        self._inputs, self._shape = [s for _, s in inputs], shape
        layout, self._merged = walked(self._inputs, shape)
        self._function = request(
            lambda name: loops.module(name, line, tuple(names), taken, given, layout)
        )
        self._plain = codegen.evaluate(line, namespace, names)
        self._outs = [t.np for t in given]
        self._raw = [t is dtypes.bfloat16 for t in (*taken, *given)]
        self._cost = cost(line, [*taken, *given])
        self._few = members < _FEW
        self._says = [
            next((i, s) for i, s in enumerate(self._inputs) if _varies(s, d - len(shape)))[0]
            if n is None else None
            for d, n in enumerate(shape)
        ]  # fmt: skip
        self._threads, self._loop, self._alone = threads(), Loop(), alone()
        note("generated code for the sizes that come")
        self._call: Any = None
        self._last: _Sizes | None = None

    def __call__(self, *arrays: Any) -> list[Any]:
        """The results.

        Raises:
            UnimplementedError: sizes that were not known do not agree.
        """
        shapes = tuple([a.shape for a in arrays])
        sizes = self._last
        if sizes is None or sizes.shapes != shapes:
            sizes = self._last = self._sizes(shapes)
        if self._call is None and self._function.address is not None:
            self._call = caller(len(arrays) + len(self._outs) + 2)(self._function.address)
        if self._call is None or not sizes.elements or (self._few and sizes.elements < _SMALL):
            return self._slowly(arrays, sizes.shape)
        return self._run(arrays, sizes)

    def _sizes(self, shapes: tuple[Shape, ...]) -> _Sizes:
        full = self._shape
        shape = tuple(
            shapes[i][d - len(full)] if i is not None else n or 0
            for d, (n, i) in enumerate(zip(full, self._says, strict=True))
        )
        for known, found in zip(self._inputs, shapes, strict=True):
            own = shape[len(shape) - len(known) :]
            if found != tuple(1 if k == 1 else n for k, n in zip(known, own, strict=True)):
                told = ", ".join(map(str, shapes))
                raise errors.UnimplementedError(
                    None, None, f"sizes that were not known when it was compiled differ: {told}"
                )
        count = math.prod(shape)
        merged = [math.prod(shape[d] for d in dims) for dims in self._merged]
        words = np.array([*merged, 0], np.int64)
        nanoseconds = count * self._cost
        chunks = chunks_of(nanoseconds, count, 0)
        return _Sizes(shapes, shape, count, chunks, quiet(nanoseconds), words)

    def _slowly(self, arrays: Sequence[Any], shape: Shape) -> list[Any]:
        """The results in NumPy; those that come of what broadcasts are filled."""
        found = self._plain(*arrays)
        values = found if isinstance(found, tuple) else (found,)
        return [v if v.shape == shape else np.array(np.broadcast_to(v, shape)) for v in values]

    def _run(self, arrays: Sequence[Any], sizes: _Sizes) -> list[Any]:
        lib, shape = ffi(), sizes.shape
        pointer, results = lib.from_buffer, [np.empty(shape, t) for t in self._outs]
        values = [
            np.asarray(v).view(np.uint16) if raw else v
            for v, raw in zip((*arrays, *results), self._raw, strict=True)
        ]
        try:
            passed = list(map(pointer, values))
        except (ValueError, BufferError):
            passed = [pointer(np.ascontiguousarray(v)) for v in values[: len(arrays)]]
            passed += map(pointer, values[len(arrays) :])
        words = pointer(sizes.words)
        if sizes.chunks == 1 or self._threads == 1:
            # Shares are the same however many threads compute them, and nothing is folded.
            self._call(*passed, lib.NULL, words, self._alone)
            return results
        held = self._loop.begin(sizes.chunks, self._threads, sizes.quiet)
        self._call(*passed, lib.NULL, words, held.address)
        self._loop.end(held)
        return results
