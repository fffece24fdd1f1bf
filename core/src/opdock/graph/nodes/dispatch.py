"""Public functions that other kinds of values take over: `tf.add` of ragged tensors, for example.

A function that is `extensible` asks, when an argument is of a kind that was registered, how that
kind does it. Until a kind is registered, and for all other arguments, it is called as it is.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

_F = TypeVar("_F", bound=Callable[..., Any])
Handler = Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]

_kinds: dict[type, Handler] = {}


def extensible(function: _F) -> _F:
    """Decorator of a public function whose arguments may be of a registered kind."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if _kinds:
            handler = _handler(args) or (_handler(kwargs.values()) if kwargs else None)
            if handler is not None:
                result = handler(function, args, kwargs)
                if result is not NotImplemented:
                    return result
        return function(*args, **kwargs)

    return cast("_F", call)


def register(kind: type, handler: Handler) -> None:
    """Hands calls with an argument of a kind to `handler(function, args, kwargs)`.

    Args:
        kind: the type; arguments that are lists or tuples of it count too.
        handler: gives the result, or NotImplemented to have the function called as it is.
    """
    _kinds[kind] = handler


def _handler(values: Any) -> Handler | None:
    for value in values:
        if isinstance(value, (list, tuple)):
            found = _handler(value)
        else:
            found = _kinds.get(type(value))
        if found is not None:
            return found
    return None
