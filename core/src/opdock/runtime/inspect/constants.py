"""What of a graph is the same in every step, as the compiler finds it out."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.compiler.clean.fold import fold
from opdock.compiler.clean.prune import prune
from opdock.graph.control.v1_switched import switched
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.runtime.engine import Engine

__all__ = ["constant_tensors"]


def constant_tensors(
    operations: Iterable[Operation], fed: Iterable[Tensor] = ()
) -> dict[Tensor, np.ndarray[Any, Any]]:
    """The values of those outputs that no step can change, by the compiler's own folding.

    Args:
        operations: whose outputs are asked for; those that version 1 control flow decides about
            are left out.
        fed: tensors that may have any value, whatever makes them.

    Returns:
        Values by tensor. Those of constants in the graph are among them.

    Raises:
        InvalidArgumentError: shapes do not fit.
    """
    given = list(fed)
    asked = list(operations)
    inside = set(switched(asked, given))
    tensors = [
        t
        for op in asked
        if op not in inside
        for t in op.outputs
        if t not in given and t.dtype.is_numpy_compatible
    ]
    block = prune(tensors, (), [(t, t.dtype, t.raw_shape) for t in given])
    with contextlib.closing(Engine(None)) as engine:
        fold(block, engine.evaluate)
    values = zip(tensors, (value.node.const() for value in block.fetches), strict=True)
    return {tensor: value for tensor, value in values if value is not None}
