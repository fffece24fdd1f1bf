"""Stages in NumPy: what serves until the code of a stretch is there, and where it never will be."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from opdock.plugin import codegen
from opdock_cpu.jit.places import whole
from opdock_cpu.namespace import namespace

__all__ = ["Staged"]

Array = np.ndarray[Any, Any]
_FOLDS: Final[dict[str, Any]] = {
    "sum": np.add, "mean": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum,
}  # fmt: skip
_ADDED: Final = frozenset({"sum", "mean", "prod"})
"""What is folded in double precision, since it rounds at every element."""
Run = Callable[[dict[str, Array]], object]
Get = Callable[[dict[str, Array]], Array]


class Staged:
    """The stages of a stretch, one after the other."""

    def __init__(self, stretch: codegen.Stretch) -> None:
        self._stretch = stretch
        self._run: list[Run] | None = None
        self._known: dict[tuple[int, tuple[int, ...]], Any] = {}  # equal stages share their lines

    def __call__(self, arrays: Sequence[Any], results: Sequence[Array]) -> None:
        """Computes the results.

        Args:
            arrays: the inputs.
            results: where they go.
        """
        if self._run is None:
            # Most stretches have their code before they run.
            self._run = [self._bound(stage) for stage in self._stretch.stages]
        made = self._stretch
        names = {f"x{i}": np.ascontiguousarray(a) for i, a in enumerate(arrays)}
        temporary = {f"s{i}": item for i, item in enumerate(made.temporaries)}
        left = {f"y{i}": item for i, item in enumerate(made.results)}
        names |= {n: np.empty(i.shape, i.dtype.np) for n, i in (temporary | left).items()}
        for run in self._run:
            run(names)
        # Only now, so that who gives up half-way leaves what lies there as it was.
        for i, result in enumerate(results):
            result[...] = names[f"y{i}"]

    def _bound(self, stage: codegen.Part | codegen.Product) -> Run:
        if isinstance(stage, codegen.Product):
            m, n, k = stage.shape
            a, b = self._view(stage.a, (m, k)), self._view(stage.b, (k, n))
            to = self._view(stage.result, (m, n))

            def multiply(names: dict[str, Array]) -> None:
                # It is a temporary or a result, row by row, so BLAS may write there.
                np.dot(a(names), b(names), to(names))

            return multiply
        return self._part(stage)

    def _part(self, part: codegen.Part) -> Run:
        reads = [self._view(v, part.shape) for v in part.inputs]
        writes = [self._view(v, part.shape) for v in part.results]
        at = len(writes) - len(part.folds)
        compute, places = self._computing(part)
        folds = [
            self._fold(kind, view, part.shape)
            for kind, view in zip(part.folds, part.results[at:], strict=True)
        ]

        def run(names: dict[str, Array]) -> None:
            found = compute(*(read(names) for read in reads))
            found = found if isinstance(found, tuple) else (found,)
            for place, write in zip(places, writes[:at], strict=False):
                write(names)[...] = found[place]
            for place, fold in zip(places[at:], folds, strict=True):
                fold(names, found[place])

        return run

    def _computing(self, part: codegen.Part) -> tuple[Callable[..., Any], list[int]]:
        """What computes the values of a part's line, and which of them each result is."""
        key = id(part.line), part.shape
        found = self._known.get(key)
        if found is None:
            values = tuple(dict.fromkeys(part.line.results))
            line = codegen.Line(part.line.steps, values)
            inputs = [f"x{i}" for i in range(len(part.inputs))]
            compute = codegen.evaluate(line, namespace, inputs, part.shape)
            found = self._known[key] = compute, [values.index(r) for r in part.line.results]
        return found

    def _fold(
        self, kind: str, view: codegen.View, shape: tuple[int, ...]
    ) -> Callable[[dict[str, Array], Array], None]:
        axes = tuple(i for i, stride in enumerate(view.strides) if not stride)
        item = whole(self._stretch, view.name)
        far = np.float64 if kind in _ADDED else item.dtype.np
        count = math.prod(shape) // math.prod(item.shape)

        def fold(names: dict[str, Array], value: Array) -> None:
            total = _FOLDS[kind].reduce(np.broadcast_to(value, shape), axis=axes, dtype=far)
            total = total / count if kind == "mean" else total
            names[view.name][...] = np.asarray(total).astype(item.dtype.np).reshape(item.shape)

        return fold

    def _view(self, view: codegen.View, shape: tuple[int, ...]) -> Get:
        item = whole(self._stretch, view.name)
        size, dtype, name = item.dtype.size, item.dtype.np, view.name
        strides = [s * size for s in view.strides] or [0] * len(shape)
        offset = view.offset * size
        if item.shape == shape and not offset and strides == _rows(shape, size):
            return lambda names: names[name]

        def get(names: dict[str, Array]) -> Array:
            return np.ndarray(shape, dtype, names[name], offset, strides)

        return get


def _rows(shape: tuple[int, ...], size: int) -> list[int]:
    """The strides of an array that lies row by row, in bytes, 0 where there is one index."""
    return [0 if n == 1 else size * math.prod(shape[i + 1 :]) for i, n in enumerate(shape)]
