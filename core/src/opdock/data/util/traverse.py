"""The operations of a dataset's graph that make datasets and what else is a variant."""

from __future__ import annotations

from collections import deque
from typing import Any

from opdock import dtypes
from opdock.graph.nodes.operation import Operation

__all__ = ["obtain_all_variant_tensor_ops"]


def obtain_all_variant_tensor_ops(dataset: Any) -> list[Operation]:
    """The operations that a dataset follows from whose first result is a variant.

    Those that functions capture are among them, as they are inputs too.

    Args:
        dataset: the dataset, whose own operation comes first.
    """
    first: Operation = dataset._variant_tensor.op
    seen, left, found = {first}, deque([first]), []
    while left:
        op = left.popleft()
        if op.outputs and op.outputs[0].dtype is dtypes.variant:
            found.append(op)
        for tensor in op.inputs:
            if tensor.op not in seen:
                seen.add(tensor.op)
                left.append(tensor.op)
    return found
