"""Decorators that can be looked through, as TF's `tf_decorator` makes them.

A function that a decorator made keeps the decorator's record, a `TFDecorator`, in
`_tf_decorator`: from there `tf_inspect` finds the function inside, and what the decorator says of
its arguments.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable
from typing import Any, TypeVar

from opdock.graph.nodes.dispatch import DISPATCH_ATTR

__all__ = ["TFDecorator", "contextmanager", "make_decorator", "rewrap", "unwrap"]

_F = TypeVar("_F", bound=Callable[..., Any])


class TFDecorator:
    """What a decorator did to a function; called, it calls what it decorates.

    Args:
        decorator_name: the decorator's name.
        target: what it decorates.
        decorator_doc: the documentation of what it makes, if that is another.
        decorator_argspec: the arguments of what it makes, if those are others.
    """

    def __init__(
        self,
        decorator_name: str,
        target: Any,
        decorator_doc: str | None = "",
        decorator_argspec: Any = None,
    ) -> None:
        self._decorated_target = target
        self._decorator_name = decorator_name
        self._decorator_doc = decorator_doc
        self._decorator_argspec = decorator_argspec
        for attribute in ("__name__", "__qualname__"):
            if hasattr(target, attribute):
                setattr(self, attribute, getattr(target, attribute))
        self.__doc__ = decorator_doc or getattr(target, "__doc__", None) or ""
        if callable(target):
            self.__wrapped__ = target

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """What the target is as an attribute: a method, where it is a function."""
        return self._decorated_target.__get__(instance, owner)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the target."""
        return self._decorated_target(*args, **kwargs)

    @property
    def decorated_target(self) -> Any:
        """What is decorated."""
        return self._decorated_target

    @decorated_target.setter
    def decorated_target(self, target: Any) -> None:
        """Puts another function inside."""
        self._decorated_target = target

    @property
    def decorator_name(self) -> str:
        """The decorator's name."""
        return self._decorator_name

    @property
    def decorator_doc(self) -> str | None:
        """The documentation that the decorator brings."""
        return self._decorator_doc

    @property
    def decorator_argspec(self) -> Any:
        """The arguments that the decorator brings; None if they are the target's."""
        return self._decorator_argspec


def make_decorator(
    target: Callable[..., Any],
    decorator_func: _F,
    decorator_name: str | None = None,
    decorator_doc: str = "",
    decorator_argspec: Any = None,
) -> _F:
    """A wrapper that looks like what it wraps.

    Args:
        target: the function that is wrapped.
        decorator_func: the wrapper, which is changed and returned.
        decorator_name: the decorator's name; by default that of the function that calls this one.
        decorator_doc: the wrapper's documentation, if it is not the target's.
        decorator_argspec: the wrapper's arguments, if they are not the target's.
    """
    if decorator_name is None:
        decorator_name = sys._getframe(1).f_code.co_name
    decorator = TFDecorator(decorator_name, target, decorator_doc, decorator_argspec)
    made: Any = decorator_func
    # What the wrapper has set itself stays.
    kept = dict(vars(made))
    functools.update_wrapper(made, target)
    vars(made).update(kept)
    made._tf_decorator = decorator
    made.__wrapped__ = made.__original_wrapped__ = target
    made.__doc__ = decorator.__doc__
    return decorator_func


def unwrap(maybe_tf_decorator: Any) -> tuple[list[TFDecorator], Any]:
    """The decorators around a function, outermost first, and the function."""
    found: list[TFDecorator] = []
    current = maybe_tf_decorator
    while True:
        decorator = _decorator_of(current)
        if decorator is None:
            return found, current
        found.append(decorator)
        current = decorator.decorated_target


def _decorator_of(obj: Any) -> TFDecorator | None:
    if isinstance(obj, TFDecorator):
        return obj
    known = getattr(obj, "_tf_decorator", None)
    if known is None and hasattr(obj, DISPATCH_ATTR) and hasattr(obj, "__wrapped__"):
        # Public functions ask dispatchers: they are many, and few are looked into.
        known = obj._tf_decorator = TFDecorator("add_dispatch_support", obj.__wrapped__)
    return known if isinstance(known, TFDecorator) and hasattr(obj, "__wrapped__") else None


def rewrap(decorator_func: Any, previous_target: Any, new_target: Any) -> Any:
    """Puts another function into the wrapper around one.

    Wrappers that call their `__wrapped__` call the new one then.

    Args:
        decorator_func: the outermost wrapper.
        previous_target: what stands inside of it; the new one takes its place.
        new_target: the function to call.

    Returns:
        `decorator_func`, or `new_target` where it wraps nothing.
    """
    around: list[tuple[Any, TFDecorator]] = []
    current = decorator_func
    while current is not previous_target:
        decorator = _decorator_of(current)
        if decorator is None:
            break
        around.append((current, decorator))
        current = decorator.decorated_target
    if not around:
        return new_target
    wrapper, decorator = around[-1]
    decorator.decorated_target = new_target
    if wrapper is not decorator:
        # A bound method takes no attributes, its function does.
        getattr(wrapper, "__func__", wrapper).__wrapped__ = new_target
    return decorator_func


def contextmanager(target: Callable[..., Any]) -> Callable[..., Any]:
    """`contextlib.contextmanager`, which can be looked through."""
    made = contextlib.contextmanager(target)
    return make_decorator(target, made, "contextmanager")
