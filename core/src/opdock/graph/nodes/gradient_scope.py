"""Which `tf.gradients` call is being built: it names what gradient functions keep by call."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

_scope: ContextVar[str | None] = ContextVar("gradient_scope", default=None)


def current() -> str:
    """The name scope of the outermost `tf.gradients` call under way, without trailing "/"."""
    return _scope.get() or "gradients"


@contextlib.contextmanager
def entered(scope: str) -> Iterator[None]:
    """Marks a `tf.gradients` call, unless it is part of another one."""
    if _scope.get() is not None:
        yield
        return
    token = _scope.set(scope.rstrip("/") or "gradients")
    try:
        yield
    finally:
        _scope.reset(token)
