"""Calls whose function may be rewritten first, and the decorators that ask for it or forbid it."""

from __future__ import annotations

import contextlib
import functools
import inspect
import logging
import os
import sys
import weakref
from collections.abc import Callable, Iterable
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final

from opdock.ops.rewriting import undefined
from opdock.ops.rewriting.conversion import OPERATORS, code_of, converted
from opdock.ops.rewriting.need import is_plain
from opdock.ops.rewriting.rules import (
    OVERLOADED,
    artifact,
    is_artifact,
    left_alone,
    mark,
    needs_frame,
)
from opdock.ops.rewriting.scope import (
    FunctionScope,
    eval_in_caller,
    names_in_caller,
    super_in_caller,
    with_function_scope,
)
from opdock.ops.rewriting.status import (
    STANDARD,
    ControlStatusCtx,
    ConversionOptions,
    Feature,
    Status,
    control_status_ctx,
)
from opdock.ops.rewriting.verbosity import tell
from opdock.util.decorators import make_decorator, rewrap, unwrap

__all__ = [
    "AutoGraphError", "ConversionError", "StagingError", "call_with_unspecified_conversion_status",
    "convert", "converted_call", "do_not_convert", "do_not_convert_internal",
    "is_autograph_strict_conversion_mode", "tf_convert", "to_code", "to_graph",
]  # fmt: skip

_log: Final = logging.getLogger("tensorflow")
_told: Final[weakref.WeakKeyDictionary[CodeType, set[str]]] = weakref.WeakKeyDictionary()
"""What could not be rewritten, of which the user has been told, and in which files."""


class AutoGraphError(Exception):
    """The base of what AutoGraph raises."""


class ConversionError(AutoGraphError):
    """A function cannot be rewritten."""


class StagingError(AutoGraphError):
    """TensorFlow's class for errors of rewritten code; here the user's own errors are raised."""


def is_autograph_strict_conversion_mode() -> bool:
    """Whether what cannot be rewritten raises, by AUTOGRAPH_STRICT_CONVERSION."""
    return int(os.environ.get("AUTOGRAPH_STRICT_CONVERSION", "0")) > 0


# ---------------------------------------------------------------- calls
def converted_call(
    f: Any, options: ConversionOptions, args: tuple[Any, ...], kwargs: dict[str, Any] | None,
    caller_fn_scope: FunctionScope | None = None,
) -> Any:  # fmt: skip
    """Calls a function, which is rewritten before if it is a user's and has to be.

    Args:
        f: what is called.
        options: how it is converted.
        args, kwargs: the arguments.
        caller_fn_scope: the scope of the rewritten function that calls it.
    """
    kwargs = kwargs or {}
    if isinstance(f, functools.partial) and not is_artifact(f):
        return converted_call(
            f.func, options, (*f.args, *args), {**f.keywords, **kwargs}, caller_fn_scope
        )
    if control_status_ctx().status is Status.DISABLED or is_artifact(f):
        return f(*args, **kwargs)
    if inspect.isbuiltin(f) or inspect.isclass(f):
        return _call_of_pythons(f, args, kwargs, caller_fn_scope)
    if not options.internal_convert_user_code or left_alone(f, options.user_requested):
        return f(*args, **kwargs)
    target, own = _function_of(f)
    if target is None:
        return f(*args, **kwargs)
    # A feature may be about any line.
    plain = not options.optional_features and is_plain(target)
    rewritten = None if plain else _rewritten(target, options)
    if rewritten is not None:
        return rewritten(*own, *args, **kwargs)
    with _asked_for(options):
        return f(*args, **kwargs)


def _asked_for(options: ConversionOptions) -> contextlib.AbstractContextManager[Any]:
    """The context of a function that the user asked for, as rewritten ones have it."""
    asked = options.user_requested
    return ControlStatusCtx(Status.ENABLED, options) if asked else contextlib.nullcontext()


def call(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None, scope: FunctionScope) -> Any:
    """What rewritten code calls for each call."""
    return converted_call(f, scope.callopts, args, kwargs, scope)


@functools.cache
def _operators() -> ModuleType:
    """The module that rewritten code calls `ag__`."""
    # These import many ops, which a program without control flow to rewrite has no use for.
    from opdock.ops.rewriting import branches, lists, repeats

    found = ModuleType(OPERATORS)
    for module in (branches, lists, repeats, undefined):
        vars(found).update({name: getattr(module, name) for name in module.__all__})
    vars(found).update(
        autograph_artifact=artifact, caught=sys.exception, converted_call=call,
        FunctionScope=FunctionScope, with_function_scope=with_function_scope,
        ConversionOptions=ConversionOptions, Feature=Feature, STD=STANDARD,
    )  # fmt: skip
    return found


def _call_of_pythons(
    f: Any, args: tuple[Any, ...], kwargs: dict[str, Any], scope: FunctionScope | None
) -> Any:
    if scope is not None and needs_frame(f):
        if f is eval:
            return eval_in_caller(f, args, scope)
        return super_in_caller(f, args, scope) if f is super else names_in_caller(f, scope)
    if f not in OVERLOADED:
        return f(*args, **kwargs)
    from opdock.ops.rewriting.overloads import overload_of

    return overload_of(f)(*args, **kwargs)


def _function_of(f: Any) -> tuple[FunctionType | None, tuple[Any, ...]]:
    """The function behind a callable, and the arguments that are bound already."""
    found: Any
    own: tuple[Any, ...]
    if inspect.isfunction(f):
        found, own = f, ()
    elif inspect.ismethod(f):
        found, own = f.__func__, (f.__self__,)
    else:
        found, own = type(f).__call__, (f,)
    if not isinstance(found, FunctionType) or found.__code__.co_filename == "<string>":
        return None, ()
    return found, own


def _rewritten(target: FunctionType, options: ConversionOptions) -> FunctionType | None:
    """The rewritten function; None, with a warning, where that is not possible."""
    code = target.__code__
    files = _told.setdefault(code, set())
    if code.co_filename in files:
        return None
    try:
        found = converted(target, options, _operators())
    except Exception as e:
        if is_autograph_strict_conversion_mode():
            raise
        files.add(code.co_filename)
        _log.warning(
            "Entity %s could not be transformed and will be executed as-is: `if` and `while` in it "
            "cannot depend on tensors. To silence this warning, decorate it with "
            "@tf.autograph.experimental.do_not_convert. Cause: %s: %s",
            target, type(e).__name__, e,
        )  # fmt: skip
        return None
    tell(1, "Converted %s", target)
    return found


# ---------------------------------------------------------------- decorators
def convert(
    recursive: bool = False, optional_features: Any = None, user_requested: bool = True
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorates a function that is rewritten when it is called.

    Args:
        recursive: whether the functions that it calls are rewritten too.
        optional_features: features beyond the usual ones.
        user_requested: whether the function is rewritten even if it is a library's.
    """
    options = ConversionOptions(recursive, user_requested, True, optional_features)

    def decorate(f: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return converted_call(f, options, args, kwargs)

        return _decorated(f, wrapper)

    return decorate


def _decorated(f: Callable[..., Any], wrapper: Callable[..., Any]) -> Callable[..., Any]:
    if inspect.isfunction(f) or inspect.ismethod(f):
        functools.update_wrapper(wrapper, f)
    made = make_decorator(f, wrapper, "autograph")
    mark(made)
    return made


def tf_convert(
    f: Any, ctx: ControlStatusCtx, convert_by_default: bool = True, user_requested: bool = False
) -> Any:
    """A function as the context says: rewritten when it is called, or not.

    Args:
        f: the function, perhaps with decorators around it.
        ctx: the context in which it was given.
        convert_by_default: whether it is rewritten where the context says nothing.
        user_requested: whether it is rewritten even if it is a library's.
    """
    if is_artifact(f) or left_alone(f, user_requested):
        return f
    decorators, inner = unwrap(f)
    if ctx.status is Status.DISABLED:
        wrapper = do_not_convert(inner)
    elif ctx.status is Status.ENABLED or convert_by_default:
        wrapper = convert(recursive=True, user_requested=user_requested)(inner)
    else:
        wrapper = call_with_unspecified_conversion_status(inner)
    if decorators:
        wrapper = rewrap(f, inner, wrapper)
    mark(wrapper)
    return wrapper


def _in_status(func: Callable[..., Any], status: Status) -> Callable[..., Any]:
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        with ControlStatusCtx(status):
            return func(*args, **kwargs)

    if inspect.isfunction(func) or inspect.ismethod(func):
        functools.update_wrapper(wrapper, func)
    mark(wrapper)
    return wrapper


def call_with_unspecified_conversion_status(func: Callable[..., Any]) -> Callable[..., Any]:
    """A function in which nothing is said of conversions."""
    return _in_status(func, Status.UNSPECIFIED)


def do_not_convert(func: Callable[..., Any] | None = None) -> Any:
    """Decorates a function that is not rewritten, nor what it calls.

    Args:
        func: the function; without it the decorator is returned.
    """
    return do_not_convert if func is None else _in_status(func, Status.DISABLED)


def do_not_convert_internal(f: Any) -> Any:
    """Marks a function of a library as one that needs no conversion."""
    mark(f)
    return f


# ---------------------------------------------------------------- by hand
def to_graph(
    entity: Any, recursive: bool = True, arg_values: Any = None, arg_types: Any = None,
    experimental_optional_features: Feature | Iterable[Feature] | None = None,
) -> Any:  # fmt: skip
    """A function in which `if`, `while` and `for` may depend on tensors.

    Args:
        entity: the function or method; of a method the result takes the object first.
        recursive: whether the functions that it calls are rewritten too.
        arg_values, arg_types: deprecated.
        experimental_optional_features: features beyond the usual ones.

    Raises:
        ConversionError: it has no source, or something in it can't be rewritten.
        NotImplementedError: it is a class or another object.
    """
    options = ConversionOptions(recursive, True, True, experimental_optional_features)
    try:
        return converted(_entity(entity), options, _operators())
    except (ValueError, AttributeError, KeyError, NameError, AssertionError) as e:
        raise ConversionError(f"converting {entity}: {type(e).__name__}: {e}") from e


def to_code(
    entity: Any, recursive: bool = True, arg_values: Any = None, arg_types: Any = None,
    indentation: str = "  ", experimental_optional_features: Any = None,
) -> str:  # fmt: skip
    """The text of what `to_graph` makes.

    Args:
        entity: the function or method.
        recursive: whether the functions that it calls are rewritten too.
        arg_values, arg_types, indentation: deprecated.
        experimental_optional_features: features beyond the usual ones.

    Raises:
        ConversionError: it has no source, or something in it can't be rewritten.
        NotImplementedError: it is a class or another object.
    """
    options = ConversionOptions(recursive, True, True, experimental_optional_features)
    try:
        return code_of(_entity(entity), options)
    except (ValueError, AttributeError, KeyError, NameError, AssertionError) as e:
        raise ConversionError(f"converting {entity}: {type(e).__name__}: {e}") from e


def _entity(entity: Any) -> FunctionType:
    found = unwrap(entity)[1]
    found = found.__func__ if inspect.ismethod(found) else found
    if not isinstance(found, FunctionType):
        kind = "class" if inspect.isclass(found) else "object"
        raise NotImplementedError(
            f'cannot convert entity "{entity}": {kind} conversion is not supported; convert its '
            "methods."
        )
    return found
