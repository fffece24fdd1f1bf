"""What TF's `tf_inspect` and `function_utils` ask of functions: the library's own are not decorated
in a way that hides their arguments, so `inspect` answers.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from inspect import (
    currentframe,
    getcallargs,
    getdoc,
    getfile,
    getfullargspec,
    getmembers,
    getmodule,
    getmro,
    getsource,
    getsourcefile,
    getsourcelines,
    isbuiltin,
    isclass,
    isframe,
    isfunction,
    isgenerator,
    isgeneratorfunction,
    ismethod,
    ismodule,
    isroutine,
    signature,
    stack,
)
from typing import Any, NamedTuple

__all__ = [
    "ArgSpec", "FullArgSpec", "currentframe", "fn_args", "get_func_code", "get_func_name",
    "getargspec", "getcallargs", "getdoc", "getfile", "getfullargspec", "getmembers", "getmodule",
    "getmro", "getsource", "getsourcefile", "getsourcelines", "has_kwargs", "isbuiltin", "isclass",
    "isframe", "isfunction", "isgenerator", "isgeneratorfunction", "ismethod", "ismodule",
    "isroutine", "signature", "stack",
]  # fmt: skip

FullArgSpec = inspect.FullArgSpec


class ArgSpec(NamedTuple):
    """The arguments of a function without keyword-only ones."""

    args: list[str]
    varargs: str | None
    keywords: str | None
    defaults: tuple[Any, ...] | None


def getargspec(obj: Any) -> ArgSpec:
    """The arguments of a function, of a class's constructor or of `functools.partial`.

    Raises:
        ValueError: it has keyword-only arguments.
    """
    full = getfullargspec(obj)
    if full.kwonlyargs and not isinstance(obj, functools.partial):
        raise ValueError(f"{obj!r} has keyword-only arguments: use getfullargspec")
    return ArgSpec(full.args, full.varargs, full.varkw, full.defaults)


def fn_args(fn: Callable[..., Any]) -> tuple[str, ...]:
    """The names of a function's arguments, without a method's first one.

    A partial's arguments are without those that it has been given.
    """
    if isinstance(fn, functools.partial):
        names = fn_args(fn.func)
        return tuple(a for a in names[len(fn.args) :] if a not in fn.keywords)
    target = fn
    bound = inspect.ismethod(fn)
    if not inspect.isroutine(fn) and callable(fn):
        target, bound = type(fn).__call__, True
    names = tuple(getfullargspec(target).args)
    return names[1:] if bound and names else names


def has_kwargs(fn: Callable[..., Any]) -> bool:
    """Whether a function takes any keyword arguments.

    Raises:
        TypeError: it is no function.
    """
    if isinstance(fn, functools.partial):
        return has_kwargs(fn.func)
    if not callable(fn):
        raise TypeError(f"fn should be a function-like object, but is of type {type(fn)}.")
    target = fn if inspect.isroutine(fn) else type(fn).__call__
    return getfullargspec(target).varkw is not None


def get_func_name(func: Any) -> str:
    """A name for a function, a method, a partial or a callable object."""
    if isinstance(func, functools.partial):
        return get_func_name(func.func)
    return str(getattr(func, "__name__", None) or type(func).__name__)


def get_func_code(func: Any) -> Any:
    """The code object of a function; None where it has none."""
    return getattr(inspect.unwrap(func), "__code__", None)
