"""Which graphs are default ones: in a thread, and in all of the program."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opdock.graph.nodes.graph import Graph

__all__ = ["made_default", "of_program", "of_thread", "renew_eager_graphs"]


class _OfThread(threading.local):
    """The graphs of a thread: its own one, made when asked for, and those of `as_default`."""

    def __init__(self) -> None:
        self.own: Graph | None = None
        self.graphs: list[Graph] = []


class _OfProgram:
    """What is in the place of all threads' own graphs, and the one whose operations run at once."""

    everywhere: Graph | None = None
    eager: Graph | None = None


of_thread = _OfThread()
of_program = _OfProgram()


@contextlib.contextmanager
def made_default(graph: Graph) -> Iterator[Graph]:
    """Has a graph be the default one of the thread inside."""
    graphs, depth = of_thread.graphs, len(of_thread.graphs)
    graphs.append(graph)
    try:
        yield graph
    except BaseException:
        del graphs[depth:]  # with what an interrupt has left there
        raise
    # Inside the program may have begun anew: then another graph is there, or none.
    if len(graphs) > depth + 1:
        raise AssertionError("Nesting violated for default stack of graphs.")
    del graphs[depth:]


def renew_eager_graphs() -> None:
    """Puts empty graphs in the places of those default ones whose operations run at once."""
    renewed: dict[int, Graph] = {}

    def anew(graph: Graph | None) -> Graph | None:
        if graph is None or not graph.eager:
            return graph
        if id(graph) not in renewed:
            renewed[id(graph)] = graph._renewed()
        return renewed[id(graph)]

    of_program.eager = anew(of_program.eager)
    of_program.everywhere = anew(of_program.everywhere)
    of_thread.graphs[:] = [anew(graph) or graph for graph in of_thread.graphs]
