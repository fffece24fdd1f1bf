"""Which `tf.gradients` call is being built: it names what gradient functions keep by call.

Gradients of branches and loops are further calls within it, for their bodies: they take after it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Call:
    """The outermost `tf.gradients` call under way.

    Attributes:
        scope: its name scope, without trailing "/".
        colocates: whether it puts each gradient on the device of its forward op.
        graph: the graph in which it was made.
        kept: what gradient functions have made once for all of the call, by what it is for.
    """

    scope: str
    colocates: bool
    graph: Any
    kept: dict[Any, Any] = field(default_factory=dict)


_call: ContextVar[Call | None] = ContextVar("gradient_scope", default=None)


def call() -> Call | None:
    """The outermost call under way, if there is one."""
    return _call.get()


def current() -> str:
    """The name scope of the outermost `tf.gradients` call under way, without trailing "/"."""
    found = _call.get()
    return "gradients" if found is None else found.scope


def within_call() -> str:
    """The name scope of a further call for a body: that of the outermost call, entered again.

    What is in it begins with the whole name of the operation that it is the gradient of. One scope
    in another would have names grow with the square of the depth of bodies in bodies.
    """
    return current() + "/"


def colocates() -> bool:
    """Whether the outermost call puts each gradient on the device of its forward op."""
    found = _call.get()
    return found is not None and found.colocates


@contextlib.contextmanager
def entered(scope: str, colocate: bool, graph: Any) -> Iterator[None]:
    """Marks a `tf.gradients` call, unless it is part of another one."""
    if _call.get() is not None:
        yield
        return
    token = _call.set(Call(scope.rstrip("/") or "gradients", colocate, graph))
    try:
        yield
    finally:
        _call.reset(token)
