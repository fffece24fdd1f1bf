"""`arg_scope`: default arguments for functions, for as long as a scope is open."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

__all__ = [
    "add_arg_scope", "arg_scope", "arg_scoped_arguments", "current_arg_scope", "has_arg_scope",
]  # fmt: skip

_Function = TypeVar("_Function", bound=Callable[..., Any])
Scope = dict[str, dict[str, Any]]

_stack: list[Scope] = [{}]
_known: dict[str, tuple[str, ...]] = {}


def _key(func: Any) -> str:
    return str(getattr(func, "_key_op", None) or str(func))


def add_arg_scope(func: _Function) -> _Function:
    """Decorates a function so that `arg_scope` can give it default arguments.

    Args:
        func: a function.

    Returns:
        The function; arguments of its calls win over those of open scopes.
    """

    @functools.wraps(func)
    def with_defaults(*args: Any, **kwargs: Any) -> Any:
        return func(*args, **{**_stack[-1].get(key, {}), **kwargs})

    key = _key(func)
    parameters = inspect.signature(func).parameters.values()
    _known[key] = tuple(p.name for p in parameters if p.default is not inspect.Parameter.empty)
    with_defaults._key_op = key  # type: ignore[attr-defined]
    return with_defaults  # type: ignore[return-value]


def has_arg_scope(func: Any) -> bool:
    """Whether `func` is decorated with `add_arg_scope`."""
    return _key(func) in _known


def arg_scoped_arguments(func: Any) -> tuple[str, ...]:
    """The arguments of `func` that a scope may set.

    Raises:
        AssertionError: `func` is not decorated.
    """
    assert has_arg_scope(func)
    return _known[_key(func)]


def current_arg_scope() -> Scope:
    """The defaults in force, by function."""
    return _stack[-1]


@contextlib.contextmanager
def arg_scope(list_ops_or_scope: Any, **kwargs: Any) -> Iterator[Scope]:
    """Context manager: default arguments for functions that `add_arg_scope` decorates.

    Args:
        list_ops_or_scope: a list of functions, or what an earlier `arg_scope` yielded, to enter
            it again.
        **kwargs: the arguments; none with an earlier scope.

    Yields:
        The defaults in force.

    Raises:
        TypeError: neither a list nor a scope.
        ValueError: a scope with arguments, or a function that is not decorated.
    """
    if isinstance(list_ops_or_scope, Mapping):
        if kwargs:
            raise ValueError(
                "When attempting to re-use a scope by suppling a dictionary, kwargs must be empty."
            )
        scope = {key: dict(value) for key, value in list_ops_or_scope.items()}
    else:
        if not isinstance(list_ops_or_scope, (list, tuple)):
            raise TypeError(
                "list_ops_or_scope must either be a list/tuple or reused scope (i.e. dict)"
            )
        scope = {key: dict(value) for key, value in _stack[-1].items()}
        for func in list_ops_or_scope:
            if not has_arg_scope(func):
                name = f"{getattr(func, '__module__', '')}.{getattr(func, '__name__', func)}"
                raise ValueError(f"{name} is not decorated with @add_arg_scope")
            scope.setdefault(_key(func), {}).update(kwargs)
    _stack.append(scope)
    try:
        yield scope
    finally:
        _stack.pop()
