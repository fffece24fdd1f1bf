"""What TF's `tf_inspect` and `function_utils` ask of functions.

They look through decorators that were made as TF's are, and so through those around the library's
own functions; what a program wraps with `functools.wraps` alone stays as it is.
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

from opdock.util.tf_decorator import is_own, unwrap

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


def getfullargspec(obj: Any) -> inspect.FullArgSpec:
    """The arguments of a function.

    TF's functions have no annotations, and libraries compare theirs with them: those of the
    library's own are left out.
    """
    decorators, target = unwrap(obj)
    for decorator in decorators:
        if decorator.decorator_argspec is not None:
            return _full(decorator.decorator_argspec)
    found = inspect.getfullargspec(target)
    return found._replace(annotations={}) if is_own(target) else found


def _full(spec: Any) -> inspect.FullArgSpec:
    """What a wrapper says that it takes, in either form."""
    if isinstance(spec, inspect.FullArgSpec):
        return spec
    return inspect.FullArgSpec(spec.args, spec.varargs, spec.keywords, spec.defaults, [], None, {})


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
