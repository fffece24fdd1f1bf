"""Loops that are written in Python and run as generated code, in shares that the crew takes.

What NumPy says in many passes, or not at all, is often a few nested loops. They are written as a
function over flat arrays, in the part of Python that `translate.py` knows:

    def row_sums(begin: int, end: int, out: Array, rows: Array, width: int) -> None:
        for r in range(begin, end):
            total = double(0)
            for c in range(width):
                total += rows[r * width + c]
            out[r] = total

    ROW_SUMS = Looped(row_sums)
    if not ROW_SUMS(len(rows), rows.size, out, rows, rows.shape[1]):
        np.sum(rows, axis=1, out=out)

The function computes the turns from `begin` to `end` of all that there are, and no turn touches
what another writes: then its results do not depend on how many threads there are. It is a function
like any other too, by which tests prove the translation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from math import isnan
from typing import Any, Final

import numpy as np

from opdock_cpu.crew import Loop, alone
from opdock_cpu.jit import llvm
from opdock_cpu.jit.compiled import Function, caller, ffi, request
from opdock_cpu.jit.team import spread
from opdock_cpu.jit.translate import Parameters, core, known, parameters
from opdock_cpu.threads import threads

__all__ = ["Array", "Looped", "double", "larger", "lower", "nearest", "single"]

Array = np.ndarray[Any, Any]
single, double = np.float32, np.float64
"""Conversions."""
lower, nearest = np.floor, np.rint
"""The whole number below, and the nearest one or the even one of two, as real numbers: of Python's
functions `math.floor` gives an integer, and so does `round`."""


def larger(a: Any, b: Any) -> Any:
    """The larger of two numbers; a NaN if one of them is."""
    return a if a > b or isnan(a) else b


_SMALL: Final = 1 << 14
"""Steps for which it pays to load LLVM."""
_CHUNK: Final = 1 << 15
"""Steps of a chunk: two are worth a second thread."""
_CHUNKS: Final = 16
_VARIANTS: Final = 16
"""Codes of one function that say numbers themselves."""


class Looped:
    """A function of loops, compiled in the background for each combination of element types.

    Args:
        function: takes `begin` and `end`, then flat arrays (`Array`), whole numbers (`int`) and
            real ones (`float`).
        fixed: whole numbers that the code may say itself: a short inner loop is worth vectors only
            where LLVM knows how often it turns. There is code for each of the first few values that
            come, and one for all others.
    """

    def __init__(self, function: Callable[..., None], fixed: Sequence[str] = ()) -> None:
        self._function, self._fixed = function, fixed
        self._codes: dict[tuple[Any, ...], _Bound] = {}

    @cached_property
    def _about(self) -> Parameters | None:
        """What the function takes; None where its source was not installed with it."""
        try:
            return parameters(self._function)
        except OSError:
            return None

    def __call__(self, turns: int, steps: float, *args: Any, most: int = _CHUNKS) -> bool:
        """Runs it, if there is code.

        Args:
            turns: how often the outer loop turns in all.
            steps: how much work that is, in turns of the innermost loop.
            *args: what the function takes behind the range; arrays of any shape, those that are
                written contiguous, and the others copied where they are not.
            most: into how many shares the turns are divided at most.

        Returns:
            Whether it ran. False if there is no code, or not yet, or there is too little to do for
            a process in which no other code was generated.
        """
        if (steps < _SMALL and not llvm.started()) or not llvm.available():
            return False
        about = self._about
        if about is None:
            return False
        count = len(about.arrays)
        arrays = [np.ascontiguousarray(a) for a in args[:count]]
        whole = count + len(about.wholes)
        numbers = [turns, *args[count:whole]]
        key = (*(a.dtype for a in arrays), *(args[i] for i in self._fixed_at))
        bound = self._codes.get(key)
        if bound is None:
            bound = self._added(about, key, count)
        if bound is None or bound.function.address is None:
            return False
        bound(arrays, numbers, args[whole:], min(most, _CHUNKS, int(steps // _CHUNK)))
        return True

    @cached_property
    def _fixed_at(self) -> list[int]:
        about = self._about
        assert about is not None
        return [len(about.arrays) + about.wholes.index(name) for name in self._fixed]

    def _added(self, about: Parameters, key: tuple[Any, ...], count: int) -> _Bound | None:
        """The code for a key; None where there is none for the types of the arrays."""
        types, values = key[:count], key[count:]
        if not known(types):
            return None
        if len(self._codes) < _VARIANTS:
            fixed = dict(zip(self._fixed, values, strict=True))
            return self._codes.setdefault(key, _Bound(about, types, fixed))
        if types not in self._codes:
            self._codes[types] = _Bound(about, types, {})
        if len(self._codes) < _VARIANTS * 4:
            self._codes[key] = self._codes[types]
        return self._codes[types]


class _Bound:
    """A function for arrays of some types."""

    def __init__(
        self, about: Parameters, elements: tuple[np.dtype[Any], ...], fixed: Mapping[str, int]
    ) -> None:
        pointers = [f"{name}.array" for name in about.arrays] + ["wholes", "reals"]
        count = (len(about.arrays), 0)
        self.function: Function = request(
            lambda name: core(about, elements, fixed) + spread(name, pointers, count)
        )
        self._loop = Loop()
        self._call: Any = None
        self._arguments = len(pointers)

    def __call__(self, arrays: list[Array], wholes: Any, reals: Any, chunks: int) -> None:
        if self._call is None:
            address = self.function.address
            assert address is not None
            self._call = caller(self._arguments)(address)
        values = [*arrays, np.array(wholes, np.int64), np.array(reals, np.float64)]
        pointers = list(map(ffi().from_buffer, values))
        chunks = min(chunks, wholes[0])
        if chunks < 2:
            self._call(*pointers, alone())
            return
        held = self._loop.begin(chunks, threads())
        self._call(*pointers, held.address)
        self._loop.end(held)
