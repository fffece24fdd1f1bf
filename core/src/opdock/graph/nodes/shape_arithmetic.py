"""The ops from which programs compute shapes, on NumPy: small integers, no kernel to load.

Each function takes the operation and the values of its inputs. What is not here, kernels compute.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from opdock.graph.nodes.operation import Operation

Array = np.ndarray[Any, Any]
Rule = Callable[[Operation, list[Array]], Any]
_MAX_RANGE: Final = 4096


def _range(op: Operation, values: list[Array]) -> Any:
    start, stop, step = (v.item() for v in values)
    if abs((stop - start) / step) > _MAX_RANGE:
        raise ValueError("too long to be a shape")
    return np.arange(start, stop, step)


def _static(op: Operation, values: list[Array]) -> Any:
    """Reshape and its like: the result's shape says it all."""
    known: Any = op.outputs[0]._shape
    return values[0].reshape(known)


def _gather(op: Operation, values: list[Array]) -> Any:
    if op.attrs.get("batch_dims", 0):
        raise ValueError("a batched gather")
    return np.take(values[0], values[1], int(values[2]) if len(values) > 2 else 0)


def _floor_div(op: Operation, values: list[Array]) -> Any:
    if np.any(values[1] == 0):
        raise ZeroDivisionError
    return values[0] // values[1]


def _reduce(fn: Callable[..., Any]) -> Rule:
    def rule(op: Operation, values: list[Array]) -> Any:
        axes = tuple(int(a) for a in values[1].reshape(-1))
        return fn(values[0], axis=axes, keepdims=op.attrs["keep_dims"])

    return rule


RULES: Final[dict[str, Rule]] = {
    "Cast": lambda op, values: values[0],
    "Pack": lambda op, values: np.stack(values, op.attrs["axis"]),
    "ConcatV2": lambda op, values: np.concatenate(values[:-1], int(values[-1])),
    "Range": _range,
    "Reshape": _static,
    "ExpandDims": _static,
    "Squeeze": _static,
    "Gather": _gather,
    "GatherV2": _gather,
    "Add": lambda op, values: values[0] + values[1],
    "AddV2": lambda op, values: values[0] + values[1],
    "Sub": lambda op, values: values[0] - values[1],
    "Mul": lambda op, values: values[0] * values[1],
    "FloorDiv": _floor_div,
    "Maximum": lambda op, values: np.maximum(values[0], values[1]),
    "Minimum": lambda op, values: np.minimum(values[0], values[1]),
    "Prod": _reduce(np.prod),
    "Sum": _reduce(np.sum),
    "Max": _reduce(np.max),
    "Equal": lambda op, values: values[0] == values[1],
    "NotEqual": lambda op, values: values[0] != values[1],
}


def compute(op: Operation, values: list[Array]) -> list[Array] | None:
    """The result of an op on plain numbers, or None when the op is none of these or fails."""
    rule = RULES.get(op.type)
    if rule is None or not all(v.dtype.kind in "iubf" for v in values):
        return None
    dtype = op.outputs[0]._dtype.np
    try:
        with np.errstate(all="ignore"):
            return [np.asarray(rule(op, values)).astype(dtype)]
    except (ValueError, TypeError, LookupError, ArithmeticError):
        return None
