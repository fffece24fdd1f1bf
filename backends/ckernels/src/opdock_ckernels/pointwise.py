"""Elementwise programs: a typed line and the shapes of its inputs become one compiled kernel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from opdock.plugin import DType, checks, codegen
from opdock_ckernels.protocols import Array

__all__ = ["Pointwise", "broadcast_shape", "formula", "patterns_of"]

_INT_MAX = 2**31 - 1
_PLANS = 64
_LINE = 16
"""Neighbours, and lines of them, from which on a work item of a CPU computes a line of a broadcast;
also lines of a group, which is what a thread takes."""


def broadcast_shape(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The broadcast of shapes; InvalidArgumentError where they do not fit."""
    first = shapes[0]
    if all(s == first for s in shapes):
        return first
    return checks.broadcast_shapes(*shapes)


def patterns_of(
    shapes: Sequence[tuple[int, ...]], out: tuple[int, ...]
) -> tuple[list[tuple[bool, ...]], list[int]]:
    """Which inputs vary along which dimension, with neighbours of one pattern merged.

    Args:
        shapes: of the inputs.
        out: what they broadcast to.

    Returns:
        For each input whether it varies along each merged dimension, and their sizes.
    """
    columns: list[tuple[bool, ...]] = []
    sizes: list[int] = []
    for d, n in enumerate(out):
        if n == 1:
            continue
        at = d - len(out)
        column = tuple(len(s) >= -at and s[at] != 1 for s in shapes)
        if columns and columns[-1] == column:
            sizes[-1] *= n
        else:
            columns.append(column)
            sizes.append(n)
    if not columns:
        return [(False,)] * len(shapes), [1]
    return [tuple(c[i] for c in columns) for i in range(len(shapes))], sizes


class Pointwise:
    """A line on one device: call it with arrays; broadcasting is compiled in, sizes are arguments.

    Args:
        device: the open device.
        line: the typed steps.
        inputs: the names and types of the arguments, in order.
        outputs: the types of the results.
        shape: what the arguments broadcast to; None to follow from them.
    """

    def __init__(
        self, device: Any, line: Any, inputs: Sequence[tuple[str, DType]],
        outputs: Sequence[DType], shape: tuple[int, ...] | None = None,
    ) -> None:  # fmt: skip
        self._device = device
        self._shape = shape
        self._line = line
        self._inputs = tuple(inputs)
        self._outputs = tuple(outputs)
        self._types = [t.np for t in outputs]
        self._plans: dict[Any, Any] = {}

    def _plan(self, shapes: tuple[tuple[int, ...], ...]) -> Any:
        out = broadcast_shape(shapes) if self._shape is None else self._shape
        count = math.prod(out)
        patterns, sizes = patterns_of(shapes, out)
        rows, mixed = count // max(sizes[-1], 1), len({*patterns[0]}) > 1 or len({*patterns}) > 1
        lined = self._device.is_cpu and mixed and sizes[-1] >= _LINE and rows >= _LINE
        index, kind = ("int32", np.int32) if count <= _INT_MAX else ("int64", np.int64)
        source = codegen.elementwise_source(
            "pointwise",
            self._line,
            self._device.dialect,
            self._inputs,
            self._outputs,
            patterns,
            index=index,
            lined=lined,
        )
        kernel = self._device.kernel(source, "pointwise")
        if len(self._plans) >= _PLANS:
            self._plans.clear()
        items = rows if lined else count
        given = [kind(items), *(kind(n) for n in sizes[1:])]
        plan = (out, items, _LINE if lined else 0, kernel, given)
        self._plans[shapes] = plan
        return plan

    def __call__(self, *arrays: Array, into: Array | None = None) -> Any:
        """One new array, or a tuple of one per result.

        Args:
            *arrays: the arguments.
            into: where the only result goes; it may be an argument of the result's shape.

        Raises:
            InvalidArgumentError: shapes do not fit, or an element is an error.
        """
        shapes = tuple([a.shape for a in arrays])
        out, count, group, kernel, sizes = self._plans.get(shapes) or self._plan(shapes)
        device = self._device
        if into is None:
            results = [device.allocate(out, t) for t in self._types]
        else:
            results = [into]
        if self._line.may_raise and count:
            flag = device.flag()
            device.launch(kernel, count, *arrays, *results, flag, *sizes, group=group)
            code = device.read_int(flag)
            if code:
                raise checks.invalid(codegen.ERRORS[code])
        else:
            device.launch(kernel, count, *arrays, *results, *sizes, group=group)
        return results[0] if len(results) == 1 else tuple(results)

    def planned(self, *arrays: Any) -> Any:
        """The same for a kernel with a planned buffer: the last argument is it, or None."""
        return self(*arrays[:-1], into=arrays[-1])


def formula(
    device: Any, text: str, dtypes: dict[str, DType], out: DType, **numbers: float
) -> Pointwise:
    """A scalar expression as an elementwise program; `dtypes` gives the arguments in order."""
    line = codegen.lower([codegen.parse(text)], dtypes, numbers, [out])
    return Pointwise(device, line, list(dtypes.items()), [out])
