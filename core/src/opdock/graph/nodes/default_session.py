"""The default session of each thread: what `eval` and `run` without a session use."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opdock.graph.nodes.graph import Graph


class _Stack(threading.local):
    def __init__(self) -> None:
        self.sessions: list[Any] = []


_stack = _Stack()
_providers: list[Callable[[], Any]] = []


def get_default_session() -> Any:
    """The innermost default session of the thread, or None."""
    return _stack.sessions[-1] if _stack.sessions else None


def provide(provider: Callable[[], Any]) -> None:
    """Has a library give its session where there is no default one; the last provider counts."""
    _providers[:] = [provider]


def get_provided_session() -> Any:
    """The innermost default session, or the one that a library provides, or None."""
    session = get_default_session()
    return _providers[-1]() if session is None and _providers else session


def push_default_session(session: Any) -> None:
    """Makes `session` the default of the thread."""
    _stack.sessions.append(session)


def pop_default_session(session: Any, nested: bool = True) -> None:
    """Removes `session` from the thread's stack of defaults.

    Args:
        session: the session.
        nested: whether it must be the innermost.

    Raises:
        AssertionError: it is not the innermost default session.
    """
    if nested and _stack.sessions[-1:] != [session]:
        raise AssertionError(f"Nesting violated for default stack of {type(session)} objects")
    if session in _stack.sessions:
        _stack.sessions.reverse()
        _stack.sessions.remove(session)
        _stack.sessions.reverse()


def default_session_for(graph: Graph, session: Any, verb: str, failure: str) -> Any:
    """The session that `eval` or `run` should use; ValueError in TF's words without one."""
    if session is None:
        session = get_default_session()
        if session is None:
            raise ValueError(
                f"{failure}: No default session is registered. Use `with sess.as_default()` or "
                f"pass an explicit session to `{verb}(session=sess)`"
            )
        if session.graph is not graph:
            raise ValueError(
                f"Cannot use the default session to {verb}: the graph is different from the "
                f"session's graph. Pass an explicit session to `{verb}(session=sess)`."
            )
    elif session.graph is not graph:
        raise ValueError(
            f"Cannot use the given session to {verb}: the graph is different from the session's "
            "graph."
        )
    return session


__all__ = [
    "default_session_for", "get_default_session", "get_provided_session", "pop_default_session",
    "provide", "push_default_session",
]  # fmt: skip
