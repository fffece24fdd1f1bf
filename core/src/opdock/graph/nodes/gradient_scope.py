"""Which `tf.gradients` call is being built: it names what gradient functions keep by call.

Gradients of branches and loops are further calls within it, for their bodies: they take after it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

_scope: ContextVar[str | None] = ContextVar("gradient_scope", default=None)
_colocates: ContextVar[bool] = ContextVar("gradient_colocates", default=False)


def current() -> str:
    """The name scope of the outermost `tf.gradients` call under way, without trailing "/"."""
    return _scope.get() or "gradients"


def within_call() -> str:
    """The name scope of a further call for a body: that of the outermost call, entered again.

    What is in it begins with the whole name of the operation that it is the gradient of. One scope
    in another would have names grow with the square of the depth of bodies in bodies.
    """
    return current() + "/"


def colocates() -> bool:
    """Whether the outermost call puts each gradient on the device of its forward op."""
    return _colocates.get()


@contextlib.contextmanager
def entered(scope: str, colocate: bool) -> Iterator[None]:
    """Marks a `tf.gradients` call, unless it is part of another one."""
    if _scope.get() is not None:
        yield
        return
    token = _scope.set(scope.rstrip("/") or "gradients")
    colocating = _colocates.set(colocate)
    try:
        yield
    finally:
        _colocates.reset(colocating)
        _scope.reset(token)
