"""TensorFlow's names for which ops take what."""

from __future__ import annotations

from opdock.contrib.quantize.wiring import Consumers
from opdock.graph.nodes.operation import Operation, Tensor

__all__ = ["InputToOps"]


class InputToOps(Consumers):
    """Which ops took each tensor of a graph when this was made, but for those of gradients.

    Args:
        graph: the graph; what is inserted later does not show.
    """

    @property
    def mapping(self) -> dict[Tensor, set[Operation]]:
        """The ops by what they took."""
        return {tensor: set(users) for tensor, users in self._found.items()}

    def ConsumerOperations(self, producer_op: Operation) -> set[Operation]:
        """The ops that took a result of `producer_op`."""
        return self(producer_op)
