"""A line over arrays in NumPy: what serves until its code is there, and where it never will be.

It goes through the arrays in blocks. So what is computed on the way stays in the cache, and no
fresh memory is touched but that of the results: a first write to a page costs more than a step.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from opdock.plugin import DType, codegen
from opdock_cpu.namespace import namespace

__all__ = ["Plain"]

_BLOCK: Final = 1 << 16
"""Elements of a block: a few such arrays fit the second cache, and hide what calls cost."""
_FOLDS: Final[dict[str, Any]] = {
    "sum": np.add, "mean": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum,
}  # fmt: skip
_ADDED: Final = frozenset({"sum", "mean", "prod"})
"""What is folded in double precision, since it rounds at every element."""
Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]
Block = tuple[slice, ...]


class Plain:
    """A line over arrays of known shapes.

    Args:
        line: the typed steps.
        names: the inputs' names.
        shape: what is computed, at least one element.
        outputs: the results' types and shapes.
        reduces: how the last results are folded, one after the other.
    """

    def __init__(
        self, line: Any, names: Sequence[str], shape: Shape,
        outputs: Sequence[tuple[DType, Shape]], reduces: Sequence[codegen.Reduce],
    ) -> None:  # fmt: skip
        values = tuple(dict.fromkeys(line.results))
        self._line, self._names = codegen.Line(line.steps, values), names
        self._value_of = [values.index(r) for r in line.results]
        self._shape, self._reduces = shape, reduces
        self._outs = [(s, t.np) for t, s in outputs]
        self._whole = len(outputs) - len(reduces)
        self._made: dict[tuple[Shape, ...], Callable[..., Any]] = {}

    def __call__(self, arrays: Sequence[Any], outs: Sequence[Any] | None) -> list[Any]:
        """The results.

        Args:
            arrays: the inputs.
            outs: for each result a buffer, or None for a new one.
        """
        buffers = outs or [None] * len(self._outs)
        whole = [
            np.empty(shape, dtype) if out is None or _meets(out, arrays) else out
            for out, (shape, dtype) in zip(buffers, self._outs[: self._whole], strict=False)
        ]
        totals: list[Array | None] = [None] * len(self._reduces)
        for block in _blocks(self._shape):
            values = self._values([_part(a, block) for a in arrays])
            for place, result in zip(self._value_of, whole, strict=False):
                result[block] = values[place]
            for i, place in enumerate(self._value_of[self._whole :]):
                totals[i] = self._folded(totals[i], i, block, values[place])
        results = [*whole, *map(self._finished, range(len(totals)), totals)]
        return [_in(out, r) for out, r in zip(buffers, results, strict=True)]

    def _values(self, parts: list[Array]) -> tuple[Any, ...]:
        shapes = tuple(p.shape for p in parts)
        run = self._made.get(shapes)
        if run is None:
            # Before they are filled, values are as large as what they come from.
            inner = np.broadcast_shapes(*shapes)
            run = self._made[shapes] = codegen.evaluate(self._line, namespace, self._names, inner)
        values = run(*parts)
        return values if isinstance(values, tuple) else (values,)

    def _folded(self, total: Array | None, i: int, block: Block, value: Array) -> Array:
        """The fold so far, of every element of the cluster's shape that stays."""
        kind, axes = self._reduces[i].kind, self._reduces[i].axes
        fold = _FOLDS[kind]
        far = np.float64 if kind in _ADDED else value.dtype
        if total is None:
            kept = [1 if a in axes else n for a, n in enumerate(self._shape)]
            total = np.full(kept, fold.identity if kind in _ADDED else _end(kind), far)
        sizes = [len(range(n)[s]) for n, s in zip(self._shape, block, strict=True)]
        part = fold.reduce(np.broadcast_to(value, sizes), axis=axes, dtype=far, keepdims=True)
        place = _part(total, block)
        fold(place, part, out=place)
        return total

    def _finished(self, i: int, total: Array | None) -> Array:
        """A fold in the type and the shape of its result."""
        assert total is not None
        shape, dtype = self._outs[self._whole + i]
        if self._reduces[i].kind == "mean":
            total = total / (math.prod(self._shape) // total.size)
        return total.astype(dtype).reshape(shape)


def _blocks(shape: Shape) -> Iterator[Block]:
    """Parts of at most `_BLOCK` elements, each of adjacent ones, in order."""
    axis, inside = len(shape), 1
    while axis and inside * shape[axis - 1] <= _BLOCK:
        axis -= 1
        inside *= shape[axis]
    rest = (slice(None),) * (len(shape) - axis)
    if not axis:
        yield rest
        return
    step = max(1, _BLOCK // inside)
    along = [slice(i, i + step) for i in range(0, shape[axis - 1], step)]
    for outer in itertools.product(*map(range, shape[: axis - 1])):
        for part in along:
            yield (*(slice(i, i + 1) for i in outer), part, *rest)


def _part(array: Array, block: Block) -> Array:
    """What of an array that broadcasts belongs to a block."""
    own = block[len(block) - array.ndim :]
    where = [slice(None) if n == 1 else s for n, s in zip(array.shape, own, strict=True)]
    # With the dots what has no dimensions stays an array.
    place: Any = (..., *where)
    part: Array = array[place]
    return part


def _meets(out: Array, arrays: Sequence[Any]) -> bool:
    """Whether a buffer is an input's memory: who gives up half-way must leave that as it was."""
    return any(np.may_share_memory(out, a) for a in arrays)


def _end(kind: str) -> float:
    return -math.inf if kind == "max" else math.inf


def _in(out: Any, result: Array) -> Array:
    if out is None or out is result:
        return result
    out[...] = result
    return np.asarray(out)
