"""For which replica of which strategy a graph is being built, in each thread."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from typing import Any

from opdock.graph.nodes.constant_value import constant_value
from opdock.graph.nodes.graph import Graph, get_default_graph

__all__ = ["Mode", "current", "inside", "is_first_replica"]


@dataclasses.dataclass(frozen=True, eq=False)
class Mode:
    """Where a program is between the scope of a strategy and its replicas.

    Attributes:
        strategy: the `tf.distribute.Strategy`.
        replica: the context of the replica; None across replicas.
    """

    strategy: Any
    replica: Any


def current() -> Mode | None:
    """The mode of this thread in the default graph; None outside of all strategies.

    The body of a function is in the mode of the graph in which the function is made.
    """
    graph: Graph | None = get_default_graph()
    while graph is not None:
        modes = graph._thread.modes
        if modes:
            found: Mode = modes[-1]
            return found
        graph = getattr(graph, "outer", None)
    return None


@contextlib.contextmanager
def inside(mode: Mode) -> Iterator[None]:
    """Operations made inside, by this thread, are of a mode."""
    thread = get_default_graph()._thread
    old, thread.modes = thread.modes, (*thread.modes, mode)
    try:
        yield
    finally:
        thread.modes = old


def is_first_replica() -> bool:
    """Whether what is made now is made for the first replica, the only one, or across replicas."""
    mode = current()
    if mode is None or mode.replica is None:
        return True
    return not constant_value(mode.replica._replica_id_in_sync_group)
