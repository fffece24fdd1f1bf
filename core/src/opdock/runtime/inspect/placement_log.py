"""`log_device_placement`: TensorFlow's lines of where operations run."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence

from opdock import errors
from opdock.graph.control.func_graph import arg_op
from opdock.graph.nodes.graph import Graph
from opdock.graph.nodes.operation import Operation

__all__ = ["PlacementLog"]


class PlacementLog:
    """What a session has printed.

    Args:
        placement: the devices of operations, by name.
    """

    def __init__(self, placement: Callable[[Sequence[Operation]], Mapping[str, str]]) -> None:
        self._placement, self._done = placement, 0

    def tell(self, graph: Graph) -> None:
        """Prints the lines of operations that it has not printed yet.

        TF places the whole graph before it prunes, and prints sources last.
        """
        fresh = [op for op in graph.get_operations()[self._done :] if op.spec is not arg_op]
        self._done = len(graph.get_operations())
        with contextlib.suppress(errors.OpError):
            where = self._placement(fresh)
            for op in sorted(fresh, key=_is_source):
                if op.name in where:
                    print(f"{op.name}: ({op.type}): {where[op.name]}", flush=True)


def _is_source(op: Operation) -> bool:
    return not op.inputs and len(op.outputs) == 1 and not op.outputs[0].dtype._is_ref_dtype
