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
    getdoc,
    getframeinfo,
    getmembers,
    getmodule,
    getmro,
    isframe,
    stack,
)
from typing import Any, NamedTuple

from opdock.util.decorators import unwrap

__all__ = [
    "ArgSpec", "FullArgSpec", "currentframe", "fn_args", "get_func_code", "get_func_name",
    "getargspec", "getcallargs", "getdoc", "getfile", "getframeinfo", "getfullargspec",
    "getmembers", "getmodule", "getmro", "getsource", "getsourcefile", "getsourcelines",
    "has_kwargs", "isbuiltin", "isclass", "isframe", "isfunction", "isgenerator",
    "isgeneratorfunction", "ismethod", "ismodule", "isroutine", "signature", "stack",
]  # fmt: skip

FullArgSpec = inspect.FullArgSpec


class ArgSpec(NamedTuple):
    """The arguments of a function without keyword-only ones."""

    args: list[str]
    varargs: str | None
    keywords: str | None
    defaults: tuple[Any, ...] | None


# ----------------------------------------------------------------------------------- what it is
def _of_target(ask: Callable[..., Any], summary: str) -> Callable[..., Any]:
    """The same question, asked of what is inside of all decorators."""

    def asked(obj: Any) -> Any:
        return ask(unwrap(obj)[1])

    asked.__name__ = asked.__qualname__ = ask.__name__
    asked.__doc__ = summary
    return asked


getfile = _of_target(inspect.getfile, "The file in which a function stands.")
getsource = _of_target(inspect.getsource, "The source of a function.")
getsourcefile = _of_target(inspect.getsourcefile, "The file with the source of a function.")
getsourcelines = _of_target(inspect.getsourcelines, "The source's lines, and the first's number.")
isbuiltin = _of_target(inspect.isbuiltin, "Whether it is built into Python.")
isclass = _of_target(inspect.isclass, "Whether it is a class.")
isfunction = _of_target(inspect.isfunction, "Whether it is a function.")
isgenerator = _of_target(inspect.isgenerator, "Whether it is a generator.")
isgeneratorfunction = _of_target(inspect.isgeneratorfunction, "Whether it makes generators.")
ismethod = _of_target(inspect.ismethod, "Whether it is a method of an object.")
ismodule = _of_target(inspect.ismodule, "Whether it is a module.")
isroutine = _of_target(inspect.isroutine, "Whether it is a function or method of any kind.")
signature = _of_target(inspect.signature, "The signature of a function.")


# ------------------------------------------------------------------------------------ arguments
def getfullargspec(obj: Any) -> inspect.FullArgSpec:
    """The arguments of a function, as its outermost decorator that changes them says.

    TF's functions have no annotations, and libraries compare theirs with them: those of the
    library's own are left out.
    """
    decorators, target = unwrap(obj)
    given = _brought(decorators)
    if given is not None:
        if hasattr(given, "kwonlyargs"):
            return given  # type: ignore[no-any-return]
        args, varargs, keywords, defaults = given
        return FullArgSpec(args, varargs, keywords, defaults, [], None, {})
    while hasattr(target, "__wrapped__") and _is_own(target):
        target = target.__wrapped__
    found = inspect.getfullargspec(target)
    return found._replace(annotations={}) if _is_own(target) else found


def _brought(decorators: list[Any]) -> Any:
    specs = (d.decorator_argspec for d in decorators)
    return next((spec for spec in specs if spec is not None), None)


def _is_own(obj: Any) -> bool:
    return str(getattr(obj, "__module__", "")).partition(".")[0] == "opdock"


def getargspec(obj: Any) -> ArgSpec:
    """The arguments of a function, of a class's constructor or of `functools.partial`.

    Raises:
        ValueError: a partial gives one argument and leaves one after it without a value.
    """
    if isinstance(obj, functools.partial):
        return _of_partial(obj)
    given = _brought(unwrap(obj)[0])
    if given is not None and not hasattr(given, "kwonlyargs"):
        return given  # type: ignore[no-any-return]
    full = getfullargspec(obj)
    return ArgSpec(full.args, full.varargs, full.varkw, full.defaults)


def _of_partial(obj: functools.partial[Any]) -> ArgSpec:
    args, varargs, keywords, defaults = getargspec(obj.func)
    values = dict(zip(args[len(args) - len(defaults or ()) :], defaults or (), strict=True))
    left = args[len(obj.args) :]
    if keywords is None and not {*obj.keywords} <= {*left}:
        raise ValueError(
            "Function does not have **kwargs parameter, but contains an unknown partial keyword."
        )
    values.update(obj.keywords)
    known = [name in values for name in left]
    if not any(known):
        return ArgSpec(left, varargs, keywords, None)
    first = known.index(True)
    bare = [name for name in left[first:] if name not in values]
    if bare:
        raise ValueError(
            f"Some arguments {bare} do not have default value, but they are positioned after those "
            "with default values. This can not be expressed with ArgSpec."
        )
    return ArgSpec(left, varargs, keywords, tuple(values[name] for name in left[first:]))


def getcallargs(*func_and_positional: Any, **named: Any) -> dict[str, Any]:
    """The arguments of a function by their names, as a call would give them.

    Args:
        *func_and_positional: the function, and what the call gives by position.
        **named: what the call gives by name.
    """
    func, *positional = func_and_positional
    spec = getfullargspec(func)
    if ismethod(func) and getattr(func, "__self__", None) is not None:
        positional.insert(0, func.__self__)
    found = dict(named)
    found.update(zip((n for n in spec.args if n not in named), positional, strict=False))
    defaults = spec.defaults or ()
    for name, value in zip(spec.args[len(spec.args) - len(defaults) :], defaults, strict=True):
        found.setdefault(name, value)
    return {**(spec.kwonlydefaults or {}), **found}


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
    """A name for a function or a method; for another object that can be called, its type.

    Raises:
        ValueError: it cannot be called.
    """
    target = _called(func)
    if inspect.isfunction(target):
        return target.__name__
    if inspect.ismethod(target):
        return f"{type(target.__self__).__name__}.{target.__func__.__name__}"
    return str(type(target))


def get_func_code(func: Any) -> Any:
    """The code object of a function; None where it has none.

    Raises:
        ValueError: it cannot be called.
    """
    target = _called(func)
    if not inspect.isroutine(target):
        target = target.__call__
    return getattr(target, "__code__", None)


def _called(func: Any) -> Any:
    target = unwrap(func)[1]
    if not callable(target):
        raise ValueError("Argument must be callable")
    return target
