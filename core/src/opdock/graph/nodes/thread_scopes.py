"""The scopes of a graph: of the graph as a whole, or of each thread that builds it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

from opdock.graph.nodes.devicespec import DeviceFunction
from opdock.graph.nodes.operation import Operation


class Controller:
    """One `control_dependencies` block: its inputs, and the ops made inside it so far."""

    __slots__ = ("inputs", "new_stack", "seen")

    def __init__(self, inputs: list[Operation], new_stack: bool) -> None:
        self.inputs = inputs
        self.new_stack = new_stack
        self.seen: set[Operation] = set()


class Scopes:
    """What operations that are made now have in common: devices, colocation, what to wait for.

    Attributes:
        left: whether a program has left the loop or branch, see `FuncGraph.control_dependencies`.
    """

    __slots__ = ("colocation", "controllers", "devices", "left")

    def __init__(
        self,
        devices: list[DeviceFunction | None],
        colocation: list[Operation],
        controllers: list[Controller],
    ) -> None:
        self.devices = devices
        self.colocation = colocation
        self.controllers = controllers
        self.left = False


class ThreadScopes(threading.local):
    """The same for each thread; all begin with what there was when threads became apart."""

    def __init__(
        self,
        devices: list[DeviceFunction | None],
        colocation: list[Operation],
        controllers: list[Controller],
    ) -> None:
        self.devices = devices
        self.colocation = colocation
        self.controllers = controllers
        self.left = False


@contextlib.contextmanager
def alone(scopes: Scopes | ThreadScopes) -> Iterator[None]:
    """What opdock makes inside waits for nothing, and stays in the body that it is made for."""
    around, left = scopes.controllers, scopes.left
    scopes.controllers, scopes.left = [], False
    try:
        yield
    finally:
        scopes.controllers, scopes.left = around, left


class ThreadState(threading.local):
    """What each thread that builds a graph has for itself.

    Attributes:
        name_stack: the name scope that it is in.
        device_depth: how many device scopes it is in.
        variable_creators: what has a say when a variable is made, the outermost last.
        modes: the strategies and replicas that it builds for, see `replication`.
    """

    name_stack = ""
    device_depth = 0
    variable_creators: tuple[Any, ...] = ()
    modes: tuple[Any, ...] = ()


__all__ = ["Controller", "Scopes", "ThreadScopes", "ThreadState", "alone"]
