"""The order in which nodes of a GraphDef can run."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import Any, Final

from opdock import errors
from opdock.graph.serial.import_arguments import parse_input

__all__ = ["in_order"]

_MERGES: Final = ("Merge", "RefMerge")


def in_order(nodes: Iterable[Any], strict: bool = True) -> list[str]:
    """Names of nodes, each after its inputs; otherwise in the order in which they stand.

    A Merge waits for its first input only: the others may come from the next turn of a loop.

    Args:
        nodes: NodeDefs.
        strict: whether a cycle is an error; else its nodes come last.

    Raises:
        InvalidArgumentError: there is a cycle, or an input of a node does not exist.
    """
    listed = list(nodes)
    place = {node.name: i for i, node in enumerate(listed)}
    users: list[list[int]] = [[] for _ in listed]
    pending = [0] * len(listed)
    for i, node in enumerate(listed):
        for source in _awaited(node):
            if source not in place:
                raise errors.InvalidArgumentError(
                    None, None, f"Node '{node.name}': Unknown input node '{source}'"
                )
            users[place[source]].append(i)
            pending[i] += 1
    ready = [i for i, count in enumerate(pending) if not count]
    out: list[str] = []
    while ready:
        i = heapq.heappop(ready)
        out.append(listed[i].name)
        for user in users[i]:
            pending[user] -= 1
            if not pending[user]:
                heapq.heappush(ready, user)
    if len(out) < len(listed):
        if strict:
            raise errors.InvalidArgumentError(
                None, None, f"{len(listed) - len(out)} nodes in a cycle"
            )
        out += [listed[i].name for i, count in enumerate(pending) if count]
    return out


def _awaited(node: Any) -> list[str]:
    """The nodes that must have run before one can; twice if there are two inputs."""
    edges = [parse_input(text) for text in node.input]
    if node.op in _MERGES:
        first = next((e for e in edges if e[1] >= 0), None)
        edges = [e for e in edges if e[1] < 0 or e is first]
    return [name for name, _ in edges]
