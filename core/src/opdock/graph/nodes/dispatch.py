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
_last_resorts: dict[Any, list[OpDispatcher]] = {}
_of_all: list[GlobalOpDispatcher] = []


class OpDispatcher:
    """Does what a public function could not: it is asked when that raised TypeError or ValueError.

    Only functions that are `extensible` ask.
    """

    NOT_SUPPORTED = NotImplemented

    def handle(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result, or `NOT_SUPPORTED`."""
        return self.NOT_SUPPORTED

    def register(self, op: Callable[..., Any]) -> None:
        """Is asked for this function from now on."""
        _last_resorts.setdefault(op, []).append(self)


class GlobalOpDispatcher:
    """Does what any public function could not."""

    NOT_SUPPORTED = NotImplemented

    def handle(self, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result, or `NOT_SUPPORTED`."""
        return self.NOT_SUPPORTED

    def register(self) -> None:
        """Is asked from now on."""
        _of_all.append(self)


class _OfTypes(OpDispatcher):
    def __init__(self, function: Callable[..., Any], types: tuple[type, ...]) -> None:
        self.function = function
        self.types = types

    def handle(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if any(isinstance(x, self.types) for x in (*args, *kwargs.values())):
            return self.function(*args, **kwargs)
        return self.NOT_SUPPORTED


def dispatch_for_types(op: Callable[..., Any], *types: type) -> Callable[[_F], _F]:
    """A decorator: the function does what `op` could not, where an argument has such a type."""

    def register(function: _F) -> _F:
        _OfTypes(function, types).register(op)
        return function

    return register


def add_dispatch_support(target: Any = None, iterable_parameters: Any = None) -> Any:
    """`extensible`, as a decorator with or without arguments."""
    return extensible if target is None else extensible(target)


def _elsewhere(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What dispatchers give for a call that failed, or NotImplemented."""
    for one in _last_resorts.get(op, ()):
        if (result := one.handle(args, kwargs)) is not NotImplemented:
            return result
    for any_ in _of_all:
        if (result := any_.handle(op, args, kwargs)) is not NotImplemented:
            return result
    return NotImplemented


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
        try:
            return function(*args, **kwargs)
        except (TypeError, ValueError):
            if (result := _elsewhere(call, args, kwargs)) is NotImplemented:
                raise
            return result

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
