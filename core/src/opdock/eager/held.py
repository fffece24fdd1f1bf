"""Operations that are made once and run again, beside those that run as they are made: savers'."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, cast

from opdock.eager.graph import EagerGraph
from opdock.graph.nodes.graph import Graph, get_default_graph
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.registry import get
from opdock.graph.nodes.scopes import executing_eagerly
from opdock.runtime.running import Runner
from opdock.runtime.session import BaseSession

__all__ = ["HeldSession", "held_session", "in_held_session"]


class HeldGraph(Graph):
    """A graph that may use what ran before: its values are fed."""

    def __init__(self, eager: EagerGraph) -> None:
        super().__init__()
        self.eager_graph = eager
        self.held: dict[Tensor, Any] = {}
        self._fed: dict[Tensor, Tensor] = {}
        self.outside: dict[Tensor, Tensor] = {}

    @property
    def _program(self) -> Graph:
        return self.eager_graph

    @property
    def _program_key(self) -> None:
        return None

    def _may_capture(self, other: Graph) -> bool:
        return other.eager

    def _adopt(self, tensor: Any, user: str = "") -> Tensor:
        if not tensor._op.graph.eager:
            return super()._adopt(tensor, user)
        found = self._fed.get(tensor)
        if found is None:
            found = get("Placeholder")(dtype=tensor.dtype, shape=tensor.raw_shape)
            self._fed[tensor], self.outside[found] = found, tensor
            self.held[found] = tensor.value
        return found


class HeldSession(BaseSession):
    """Runs the graph with the variables and the devices of what runs as it is made."""

    def __init__(self, eager: EagerGraph) -> None:
        self._shared = eager.engine
        super().__init__("", HeldGraph(eager))

    def _engine_for(self, address: str | None) -> Runner:
        return self._shared

    def run(
        self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None
    ) -> Any:
        """`Session.run`, fed with what the graph holds as well."""
        graph: Any = self._graph
        return super().run(fetches, {**graph.held, **(feed_dict or {})}, options, run_metadata)

    def close(self) -> None:
        """Forgets its programs. The state is that of the program, which goes on."""
        self._closed = True
        self._cache.forget()


@contextlib.contextmanager
def held_session(owner: Any) -> Iterator[HeldSession | None]:
    """The session of an object's own operations, which are made inside; it is the default one.

    None where operations are added to a graph: there it is the user's.
    """
    graph = get_default_graph()
    session: HeldSession | None = owner.__dict__.get("_held_session")
    if session is None:
        if not isinstance(graph, EagerGraph):
            yield None
            return
        session = owner.__dict__["_held_session"] = HeldSession(graph)
    with session.graph.as_default(), session.as_default():
        yield session


_Method = TypeVar("_Method", bound=Callable[..., Any])


def in_held_session(method: _Method) -> _Method:
    """A method that takes a session, and takes the object's own where operations run at once."""

    @functools.wraps(method)
    def wrapped(self: Any, sess: Any = None, *args: Any, **kwargs: Any) -> Any:
        if not executing_eagerly():
            return method(self, sess, *args, **kwargs)
        with held_session(self) as held:
            return method(self, held, *args, **kwargs)

    return cast("_Method", wrapped)
