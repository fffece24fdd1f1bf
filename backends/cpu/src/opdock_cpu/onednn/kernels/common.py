"""What oneDNN's kernels share: when they decline, what they keep by shape, results."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable
from typing import Any, Final, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from opdock.plugin import DType, NodeSig, dtypes, errors, heard
from opdock_cpu.onednn.library import reason
from opdock_cpu.onednn.memory import TYPES, dense
from opdock_cpu.onednn.parts import OPENMP_FROM
from opdock_cpu.onednn.primitive import Plan

__all__ = [
    "F32", "PRIORITY", "Array", "PerShape", "declined", "declined_at_once", "known",
    "result", "size", "supports", "threads_for",
]  # fmt: skip

Array = npt.NDArray[Any]

PRIORITY: Final = 10
"""Above the NumPy kernels, which have 0."""

F32: Final = frozenset({dtypes.float32})

_KEPT: Final = 32


def known(sig: NodeSig, *inputs: int) -> bool:
    """Whether the shapes of these inputs (of all, when none is named) are known."""
    shapes = [sig.in_shapes[i] for i in inputs] if inputs else sig.in_shapes
    return all(s is not None and None not in s for s in shapes)


def size(shape: Any) -> int:
    """The number of elements of a known shape."""
    return math.prod(shape)


def declined(sig: NodeSig, *inputs: int) -> str:
    """Why no oneDNN kernel takes the node: no library, unknown or empty inputs; "" otherwise."""
    if not reason() and not known(sig, *inputs):
        return "shapes are not known when the program is prepared"
    return declined_always(sig, *inputs)


def declined_always(sig: NodeSig, *inputs: int) -> str:
    """The same for kernels that choose what is best for the shapes of each call."""
    return reason() or _empty(sig, *inputs)


def declined_at_once(sig: NodeSig, *inputs: int) -> str:
    """The same for kernels that are right for any sizes: ranks are known, most sizes may not be.

    The size that is not known is that of batches, as a rule: the last one of a data set is smaller.
    """
    shapes = [*(sig.in_shapes[i] for i in inputs or range(len(sig.in_shapes))), *sig.out_shapes[:1]]
    why = declined_always(sig, *inputs)
    if why:
        return why
    if any(s is None for s in shapes):
        return "ranks are not known when the program is prepared"
    empty = any(s is not None and 0 in s for s in sig.out_shapes[:1])
    return "the result is empty" if empty else ""


def _empty(sig: NodeSig, *inputs: int) -> str:
    chosen = inputs or range(len(sig.in_shapes))
    return "an input is empty" if any(0 in (sig.in_shapes[i] or ()) for i in chosen) else ""


@functools.cache
def supports(kind: DType) -> bool:
    """Whether this processor multiplies matrices of a type."""
    if kind not in TYPES or reason():
        return False
    square = dense((64, 64), TYPES[kind])
    try:
        plan = Plan("matmul", square, square, None, square, None)
    except errors.UnimplementedError:
        return False
    return "ref" not in plan.implementation


def threads_for(macs: float) -> int | None:
    """How many threads of OpenMP's what is not divided gets: one below `OPENMP_FROM`, or all."""
    return 1 if macs < OPENMP_FROM else None


def result(out: Array | None, shape: Iterable[int], kind: Any) -> Array:
    """The planned buffer, or a new one."""
    return np.empty(tuple(shape), kind) if out is None else out


Result = TypeVar("Result")


class PerShape(Generic[Result]):
    """Callables by the shapes of their inputs.

    A program mostly sees the shapes for which it was prepared, but what writes through pointers
    must not take anyone's word for it.

    Args:
        make: called with the arrays of a call; returns what to call with them from then on.
    """

    def __init__(self, make: Callable[..., Callable[..., Result]]) -> None:
        self._make = heard(make)
        self._known: dict[Any, Callable[..., Result]] = {}

    def find(self, key: Any, *arrays: Any) -> Callable[..., Result]:
        """The callable for a key of shapes, made at need; the oldest are forgotten."""
        found = self._known.get(key)
        if found is None:
            # A copy of the keys: another thread may be adding its own.
            for old in list(self._known)[: len(self._known) + 1 - _KEPT]:
                self._known.pop(old, None)
            found = self._known[key] = self._make(*arrays)
        return found
