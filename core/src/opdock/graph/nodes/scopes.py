"""Scopes of the default graph as functions, and `name_scope` with default names."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

from opdock.graph.nodes.graph import Graph, default_graphs, get_default_graph
from opdock.graph.nodes.operation import Operation, graph_behind


def graph_of(values: Any) -> Graph:
    """The graph that `values` live in, the default graph when none of them has one.

    Raises:
        ValueError: two values live in different graphs.
    """
    default = get_default_graph()
    found: Any = None
    for value in () if values is None else values:
        graph = graph_behind(value)
        if not isinstance(graph, Graph) or graph is default or default._may_capture(graph):
            continue
        if getattr(graph, "depth", 0):
            continue  # Of a body: the graph that makes a node says whether it can have it.
        if found is not None and graph_behind(found) is not graph:
            raise ValueError(f"{value} must be from the same graph as {found}.")
        found = value
    return default if found is None else graph_behind(found)


def graph_for(inputs: tuple[Any, ...]) -> Graph:
    """The graph of the inputs, the default graph without any; ValueError when they are mixed."""
    default = get_default_graph()
    found: Any = None
    for value in inputs:
        for item in value if isinstance(value, (list, tuple)) else (value,):
            graph = graph_behind(item)
            if graph is None or graph is default or not hasattr(item, "dtype"):
                if graph is default and graph is not None:
                    found = item if found is None else found
                continue
            if default._may_capture(graph):
                continue
            if getattr(graph, "depth", 0):
                continue  # Of a body: the graph that makes the node says whether it can have it.
            if found is not None and graph_behind(found) is not graph:
                raise ValueError(f"{item} must be from the same graph as {found}.")
            found = item
    if found is None:
        return default
    if graph_behind(found).eager and not default.eager:
        raise RuntimeError("Attempting to capture an EagerTensor without building a function.")
    found_graph: Graph = graph_behind(found)
    return found_graph


class name_scope:
    """Context manager that prefixes op names; yields the scope string with a trailing "/".

    Args:
        name: the scope's name; None takes `default_name`.
        default_name: used when `name` is None.
        values: tensors that determine the graph.
    """

    def __init__(
        self, name: str | None, default_name: str | None = None, values: Any = None
    ) -> None:
        if default_name is not None and not isinstance(default_name, str):
            raise TypeError(
                f"`default_name` type ({type(default_name).__name__}) is not a string type. "
                "You likely meant to pass this into the `values` kwarg."
            )
        self._name = default_name if name is None else name
        if self._name is None and values is not None:
            raise ValueError(
                f"At least one of name ({name}) and default_name ({default_name}) must be provided."
            )
        self._values = values
        self._stack: contextlib.ExitStack | None = None
        self._before: tuple[Graph, str] | None = None

    @property
    def name(self) -> str | None:
        """The name that the scope asks for."""
        return self._name

    def __enter__(self) -> str:
        graph = graph_of(self._values)
        if self._name and graph is get_default_graph():
            # Nearly all scopes are such, and most ops are made in one of their own.
            scope = graph._new_scope(self._name)
            self._before, graph._name_stack = (graph, graph._name_stack), scope
            return scope + "/"
        stack = contextlib.ExitStack()
        try:
            if graph is not get_default_graph():
                stack.enter_context(graph.as_default())
            scope = stack.enter_context(graph.name_scope(self._name))
        except BaseException:
            stack.close()
            raise
        self._stack = stack
        return scope

    def __exit__(self, *exc: object) -> None:
        if self._before is not None:
            graph, stack_before = self._before
            graph._name_stack, self._before = stack_before, None
        elif self._stack is not None:
            stack, self._stack = self._stack, None
            stack.close()


@contextlib.contextmanager
def op_scope(values: Any, name: str | None, default_name: str | None = None) -> Iterator[str]:
    """`name_scope` with TF's older argument order.

    Args:
        values: tensors of the graph.
        name: the scope's name.
        default_name: the name where there is none.
    """
    with name_scope(name, default_name, values) as scope:
        yield scope


def device(device_name_or_function: Any) -> contextlib.AbstractContextManager[None]:
    """Places operations made inside: a device string, DeviceSpec, function of the op, or None.

    Args:
        device_name_or_function: the device; None ends what is said outside.
    """
    return get_default_graph().device(device_name_or_function)


def colocate_with(
    op: Any, ignore_existing: bool = False
) -> contextlib.AbstractContextManager[None]:
    """Puts operations made inside on the device of `op`.

    Args:
        op: the operation or tensor.
        ignore_existing: whether colocations outside end here.
    """
    return get_default_graph().colocate_with(op, ignore_existing)


def control_dependencies(control_inputs: Any) -> contextlib.AbstractContextManager[None]:
    """Runs `control_inputs` before the operations made inside."""
    return get_default_graph().control_dependencies(control_inputs)


def container(container_name: str) -> contextlib.AbstractContextManager[str]:
    """Puts variables and queues made inside into a resource container.

    Args:
        container_name: the container's name.
    """
    return get_default_graph().container(container_name)


@contextlib.contextmanager
def init_scope() -> Iterator[None]:
    """Leaves functions, branches, loops and control dependencies, but no name or device scope.

    For what is made once, before any of them runs: variables and their initial values.
    """
    inner = get_default_graph()
    scope = inner.get_name_scope()
    graph = program_around(inner)
    devices = inner._scopes.devices or graph._scopes.devices
    scope = f"{scope}/" if scope else ""
    first = len(graph.get_operations()) if _outside.of_functions else 0
    with graph.as_default(), graph.control_dependencies(None), graph.name_scope(scope):
        around, graph._scopes.devices = graph._scopes.devices, devices
        try:
            yield
        finally:
            graph._scopes.devices = around
            for made in _outside.of_functions:
                made.update(graph.get_operations()[first:])


class _Outside(threading.local):
    """What functions that are being called have made outside of themselves, for each of them."""

    def __init__(self) -> None:
        self.of_functions: list[set[Operation]] = []


_outside = _Outside()


@contextlib.contextmanager
def made_outside() -> Iterator[set[Operation]]:
    """The operations that `init_scope` takes out of what is inside: no part of a call."""
    found: set[Operation] = set()
    _outside.of_functions.append(found)
    try:
        yield found
    finally:
        _outside.of_functions.pop()


def program_around(graph: Any) -> Graph:
    """The graph in which functions are called that are being built, this one or one around it."""
    while getattr(graph, "outer", None) is not None:
        graph = graph.outer
    if not graph.building_function:
        return graph  # type: ignore[no-any-return]
    graphs = default_graphs()
    inside = len(graphs) - 1 - graphs[::-1].index(graph) if graph in graphs else len(graphs)
    return next((g for g in reversed(graphs[:inside]) if not g.building_function), graphs[0])


def executing_eagerly() -> bool:
    """Whether operations run when they are made, rather than when a session runs their graph."""
    return get_default_graph().eager


def executing_eagerly_outside_functions() -> bool:
    """Whether the program around the functions that are being built runs operations at once."""
    return program_around(get_default_graph()).eager


def refuse_eagerly(message: str) -> None:
    """Raises RuntimeError with a message where operations run as they are made."""
    if executing_eagerly():
        raise RuntimeError(message)
