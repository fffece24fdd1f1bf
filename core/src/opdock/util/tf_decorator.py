"""TF's `tf_decorator`: wrappers that say what they wrap, and which arguments they take."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["TFDecorator", "is_looked_through", "is_own", "make_decorator", "rewrap", "unwrap"]

_F = TypeVar("_F", bound=Callable[..., Any])


class TFDecorator:
    """What a wrapper says of itself.

    Attributes:
        decorator_name: who made it.
        decorated_target: what it wraps.
        decorator_doc: its own documentation.
        decorator_argspec: the arguments that it takes, where they are not those of the target.
    """

    def __init__(
        self, decorator_name: str, target: Any, decorator_doc: str = "",
        decorator_argspec: Any = None,
    ) -> None:  # fmt: skip
        self.decorator_name = decorator_name
        self.decorated_target = target
        self.decorator_doc = decorator_doc
        self.decorator_argspec = decorator_argspec


def is_own(obj: Any) -> bool:
    """Whether a function is opdock's."""
    return str(getattr(obj, "__module__", "")).partition(".")[0] == "opdock"


def is_looked_through(obj: Any) -> bool:
    """Whether a function is a wrapper for whose arguments those of the wrapped one stand."""
    return hasattr(obj, "__wrapped__") and (is_own(obj) or hasattr(obj, "_tf_decorator"))


def make_decorator(
    target: Callable[..., Any], decorator_func: _F, decorator_name: str | None = None,
    decorator_doc: str = "", decorator_argspec: Any = None,
) -> _F:  # fmt: skip
    """A wrapper that looks like what it wraps, also to TF's `tf_inspect`.

    Args:
        target: what is wrapped.
        decorator_func: the wrapper.
        decorator_name: who made it; by default the function that calls this one.
        decorator_doc: documentation of its own.
        decorator_argspec: the arguments that it takes, where they are not those of the target.
    """
    name = decorator_name or sys._getframe(1).f_code.co_name
    made: Any = functools.wraps(target)(decorator_func)
    made._tf_decorator = TFDecorator(name, target, decorator_doc, decorator_argspec)
    return made  # type: ignore[no-any-return]


def unwrap(maybe_tf_decorator: Any) -> tuple[list[TFDecorator], Any]:
    """What the wrappers around a function say, outermost first, and the function."""
    found = []
    current = maybe_tf_decorator
    while isinstance(current, TFDecorator) or is_looked_through(current):
        told = getattr(current, "_tf_decorator", current)
        if not isinstance(told, TFDecorator):
            told = TFDecorator(getattr(current, "__name__", ""), current.__wrapped__)
        found.append(told)
        current = told.decorated_target
    return found, current


def rewrap(decorator_func: Any, previous_target: Any, new_target: Any) -> Any:
    """A wrapper with another function in the place of one that it, or a wrapper in it, wraps."""
    innermost, current = None, decorator_func
    while is_looked_through(current):
        innermost = current
        if current.__wrapped__ is previous_target:
            break
        current = current.__wrapped__
    if innermost is None:
        return new_target
    plain = getattr(innermost, "__func__", innermost)
    plain.__wrapped__ = new_target
    if isinstance(getattr(plain, "_tf_decorator", None), TFDecorator):
        plain._tf_decorator.decorated_target = new_target
    return decorator_func
