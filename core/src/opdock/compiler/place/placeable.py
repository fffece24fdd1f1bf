"""Whether there are the devices that a graph asks for, before any of it runs."""

from __future__ import annotations

import contextlib

from opdock import errors
from opdock.compiler.clean.prune import lone_node
from opdock.compiler.place.placer import Placer
from opdock.graph.nodes.graph import Graph

__all__ = ["Placeable"]


class Placeable:
    """The check of one graph, which may grow.

    Args:
        placer: knows the devices.
    """

    def __init__(self, placer: Placer) -> None:
        self._placer = placer
        self._known: set[str] = set()  # devices that operations ask for and somebody has
        self._done = 0

    def check(self, graph: Graph) -> None:
        """TF places the whole graph before it prunes: a device that nobody has fails any step.

        Raises:
            InvalidArgumentError: an operation asks for such a device.
        """
        fresh = graph._ops[self._done :]
        for op in fresh:
            if op._device and op._device not in self._known:
                with contextlib.suppress(errors.UnavailableError):  # lost: who needs it will hear
                    self._placer.candidates(lone_node(op), op._device)
                self._known.add(op._device)
        self._done += len(fresh)
