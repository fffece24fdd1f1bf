"""Public functions that other kinds of values take over: `tf.add` of ragged tensors, for example.

A function that is `extensible` asks, when an argument is of a kind that was registered, how that
kind does it. Until a kind is registered, and for all other arguments, it is called as it is.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

_F = TypeVar("_F", bound=Callable[..., Any])
Handler = Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]

DISPATCH_ATTR: Final = "_tf_dispatchers"
"""What of a function that is `extensible` has its dispatchers, as in TF."""

_kinds: dict[type, Handler] = {}
of_any_function: Final[list[GlobalOpDispatcher]] = []
"""Dispatchers that are asked for every public function, and every op."""


class _Calls(threading.local):
    """Whether a thread is in a call that will ask them."""

    inside = False


_calls: Final = _Calls()


class OpDispatcher:
    """Does what a public function could not: it is asked when that raised TypeError or ValueError.

    Only functions that are `extensible` ask.
    """

    NOT_SUPPORTED = NotImplemented

    def handle(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result, or `NOT_SUPPORTED`."""
        return self.NOT_SUPPORTED

    def register(self, op: Callable[..., Any]) -> None:
        """Is asked for this function from now on, if it asks any."""
        getattr(op, DISPATCH_ATTR, []).append(self)


class GlobalOpDispatcher:
    """Does what any public function could not."""

    NOT_SUPPORTED = NotImplemented

    def handle(self, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result, or `NOT_SUPPORTED`."""
        return self.NOT_SUPPORTED

    def register(self) -> None:
        """Is asked from now on."""
        of_any_function.append(self)


class _OfTypes(OpDispatcher):
    def __init__(self, function: Callable[..., Any], types: tuple[type, ...]) -> None:
        self.function = function
        self.types = types

    def handle(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        for value in (*args, *kwargs.values()):
            parts = value if isinstance(value, (list, tuple)) else ()
            if any(isinstance(x, self.types) for x in (value, *parts)):
                return self.function(*args, **kwargs)
        return self.NOT_SUPPORTED


def dispatch_for_types(op: Callable[..., Any], *types: type) -> Callable[[_F], _F]:
    """A decorator: the function does what `op` could not, where an argument has such a type.

    So it does where an argument is a list or a tuple in which something has such a type.

    Raises:
        AssertionError: the function takes other arguments than `op`, or `op` asks no others.
    """

    def register(function: _F) -> _F:
        if _arguments(function) != _arguments(op):
            raise AssertionError(
                "The decorated function's signature must exactly match the signature of the "
                "overridden op."
            )
        if not hasattr(op, DISPATCH_ATTR):
            raise AssertionError(f"Dispatching not enabled for {op}")
        _OfTypes(function, types).register(op)
        return function

    return register


def _arguments(function: Callable[..., Any]) -> list[tuple[Any, ...]]:
    """What tells the arguments of functions apart: names, kinds, and which may be left out."""
    found = inspect.signature(function).parameters.values()
    return [(p.name, p.kind, p.default is p.empty) for p in found]


def add_dispatch_support(target: Any = None, iterable_parameters: Any = None) -> Any:
    """`extensible`, as a decorator with or without arguments."""
    return extensible if target is None else extensible(target)


def dispatch(op: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What the first of a function's dispatchers gives that takes such arguments.

    Returns:
        The result, or `OpDispatcher.NOT_SUPPORTED`.
    """
    for one in getattr(op, DISPATCH_ATTR, ()):
        if (result := one.handle(args, kwargs)) is not NotImplemented:
            return result
    return NotImplemented


def or_others(
    op: Any, make: Callable[[], Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """What a call makes, or what dispatchers give where it fails.

    Of calls within calls the outermost one asks those that take over any function.

    Args:
        op: what is called, a function or an op type.
        make: calls it.
        args, kwargs: the arguments.
    """
    outermost = bool(of_any_function) and not _calls.inside
    try:
        if not outermost:
            return make()
        _calls.inside = True
        try:
            return make()
        finally:
            _calls.inside = False
    except (TypeError, ValueError):
        result = dispatch(op, *args, **kwargs)
        if result is NotImplemented and outermost:
            result = _done_by_any(op, args, kwargs)
        if result is NotImplemented:
            raise
        return result


def _done_by_any(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What those that take over any function give, or NotImplemented."""
    for one in of_any_function:
        if (result := one.handle(op, args, kwargs)) is not NotImplemented:
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
        return or_others(call, lambda: function(*args, **kwargs), args, kwargs)

    setattr(call, DISPATCH_ATTR, [])
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
