"""What TF's `deprecation`, `decorator_utils` and `keyword_args` do to functions.

Libraries that were written beside TensorFlow decorate their own functions with these. Warnings and
notices have TensorFlow's words, since programs filter and match them.
"""

from __future__ import annotations

import functools
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar, cast

from opdock.util.decorators import contextmanager, make_decorator
from opdock.util.inspecting import getcallargs, getfullargspec

__all__ = [
    "DeprecatedNamesAlreadySet", "HiddenTfApiAttribute", "add_notice_to_docstring", "classproperty",
    "deprecated", "deprecated_alias", "deprecated_arg_values", "deprecated_args",
    "deprecated_argument_lookup", "deprecated_endpoints", "experimental", "get_qualified_name",
    "hide_attribute_from_api", "keyword_args_only", "rewrite_argument_docstring", "silence",
    "validate_callable",
]  # fmt: skip

_F = TypeVar("_F", bound=Callable[..., Any])
_NO_DOC: Final = "DEPRECATED FUNCTION"


# Programs set this, under TF's private name for it, to hear nothing of what is deprecated.
PRINT_DEPRECATION_WARNINGS = True
_told: set[Any] = set()


def _tell(key: Any, once: bool, text: str, *values: Any) -> None:
    """Warns, with the place of the call two frames up in front."""
    from opdock.api import logging

    if not PRINT_DEPRECATION_WARNINGS or key in _told:
        return
    if once:
        _told.add(key)
    caller = sys._getframe(2)
    place = f"{caller.f_code.co_filename}:{caller.f_lineno}"
    logging.warning(f"From %s: {text}", place, *values)


class DeprecatedNamesAlreadySet(Exception):
    """A symbol's deprecated names were set twice."""


# ------------------------------------------------------------------------------ decorator_utils
def get_qualified_name(function: Any) -> str:
    """A function's name, with its class's."""
    return str(getattr(function, "__qualname__", None) or function.__name__)


def validate_callable(func: Any, decorator_name: str) -> None:
    """Refuses what is no function.

    Raises:
        ValueError: it cannot be called; a property that is decorated, for example.
    """
    if not callable(func):
        raise ValueError(
            f"{func} is not a function. If this is a property, make sure @property appears before "
            f"@{decorator_name} in your source code:\n\n@property\n@{decorator_name}\n"
            "def method(...)"
        )


def add_notice_to_docstring(
    doc: str | None, instructions: str | None, no_doc_str: str, suffix_str: str, notice: list[str]
) -> str:
    """Documentation with a notice after its first line.

    Args:
        doc: the documentation, or None.
        instructions: what to do instead; the notice's last line.
        no_doc_str: the first line where there is no documentation.
        suffix_str: comes after the first line where there is one.
        notice: the lines of the notice.

    Raises:
        ValueError: the notice is empty.
    """
    if not notice:
        raise ValueError("The `notice` arg must not be empty.")
    lines = inspect.cleandoc(doc).rstrip().splitlines() if doc else []
    head = f"{lines[0]} {suffix_str}" if lines else no_doc_str
    rest = lines[1:]
    said = ["", f"Warning: {notice[0]}", *notice[1:], *([instructions] if instructions else [])]
    if rest and rest[0].strip():
        said.append("")
    return "\n".join([head, *said, *rest])


class classproperty:
    """A property of a class: the function gets the class."""

    def __init__(self, func: Callable[[Any], Any]) -> None:
        self._func = func

    def __get__(self, owner_self: Any, owner_cls: Any) -> Any:
        return self._func(owner_cls)


# ---------------------------------------------------------------------------------- deprecation
def _when(date: str | None) -> str:
    return "in a future version" if date is None else f"after {date}"


def _check(date: str | None, instructions: str | None) -> None:
    if date is not None and not re.match(r"20\d\d-[01]\d-[0123]\d", date):
        raise ValueError("Date must be YYYY-MM-DD.")
    if not instructions:
        raise ValueError("Don't deprecate things without conversion instructions!")


def _function_notice(doc: str | None, date: str | None, instructions: str) -> str:
    notice = [
        f"THIS FUNCTION IS DEPRECATED. It will be removed {_when(date)}.",
        "Instructions for updating:",
    ]
    return add_notice_to_docstring(doc, instructions, _NO_DOC, "(deprecated)", notice)


def deprecated(
    date: str | None, instructions: str, warn_once: bool = True
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: the function's first call, or each, says that it is deprecated.

    Args:
        date: when it is removed, as YYYY-MM-DD; None for some later version.
        instructions: what to do instead.
        warn_once: whether the first call alone says so.

    Raises:
        ValueError: the date has another form, or there are no instructions; when a property is
            decorated.
    """
    _check(date, instructions)

    def decorate(func: Callable[..., Any]) -> Callable[..., Any]:
        validate_callable(func, "deprecated")
        if isinstance(func, type):  # which stays a class; its constructor says so
            made = any("__new__" in vars(base) for base in func.__mro__[:-1])
            name = "__new__" if made else "__init__"
            setattr(func, name, telling(getattr(func, name), func))
            return func
        return telling(func, func)

    def telling(called: Callable[..., Any], func: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            _tell(
                func, warn_once,
                "%s (from %s) is deprecated and will be removed %s.\n"
                "Instructions for updating:\n%s",
                get_qualified_name(func), func.__module__, _when(date), instructions,
            )  # fmt: skip
            return called(*args, **kwargs)

        doc = _function_notice(called.__doc__, date, instructions)
        return make_decorator(called, wrapper, "deprecated", doc)

    return decorate


def experimental(func: _F) -> _F:
    """A decorator: each call says that the function may change.

    Raises:
        ValueError: a property is decorated.
    """
    validate_callable(func, "experimental")

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        from opdock.api import logging

        logging.warning(
            "%s (from %s) is experimental and may change or be removed at any time, and without "
            "warning.",
            get_qualified_name(func), func.__module__,
        )  # fmt: skip
        return func(*args, **kwargs)

    notice = (
        "THIS FUNCTION IS EXPERIMENTAL. It may change or be removed at any time, and without "
        "warning."
    )
    wrapper.__doc__ = add_notice_to_docstring(
        func.__doc__, "", "EXPERIMENTAL FUNCTION", "(experimental)", [notice]
    )
    return cast("_F", wrapper)


def deprecated_args(
    date: str | None, instructions: str, *deprecated_arg_names_or_tuples: Any, **kwargs: Any
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: calls that give one of these arguments say so.

    Args:
        date: when they are removed, as YYYY-MM-DD; None for some later version.
        instructions: what to do instead.
        *deprecated_arg_names_or_tuples: names, or pairs of a name and the value that is not
            complained about. The names of `*args` and `**kwargs` count too.
        **kwargs: `warn_once`, True by default.

    Raises:
        ValueError: the date has another form, there are no instructions or no names, or the
            function has no such arguments.
    """
    _check(date, instructions)
    if not deprecated_arg_names_or_tuples:
        raise ValueError("Specify which argument is deprecated.")
    warn_once = kwargs.pop("warn_once", True)
    if kwargs:
        raise ValueError(f"Illegal argument to deprecated_args: {kwargs}")
    fine: dict[str, Any] = dict(
        n if isinstance(n, tuple) else (n, ...) for n in deprecated_arg_names_or_tuples
    )

    def decorate(func: Callable[..., Any]) -> Callable[..., Any]:
        validate_callable(func, "deprecated_args")
        spec = getfullargspec(func)
        known = [*spec.args, spec.varargs, spec.varkw]
        unknown = [name for name in fine if name not in known]
        if unknown:
            raise ValueError(
                "The following deprecated arguments are not present in the function signature: "
                f"{unknown}. Found next arguments: {known}."
            )

        def wrapper(*args: Any, **kwargs: Any) -> Any:
            for name in _given(fine, func, spec, args, kwargs):
                _tell(
                    (func, name), warn_once,
                    "calling %s (from %s) with %s is deprecated and will be removed %s.\n"
                    "Instructions for updating:\n%s",
                    get_qualified_name(func), func.__module__, name, _when(date), instructions,
                )  # fmt: skip
            return func(*args, **kwargs)

        named = ", ".join(sorted(fine))
        notice = [
            f"SOME ARGUMENTS ARE DEPRECATED: `({named})`. They will be removed {_when(date)}.",
            "Instructions for updating:",
        ]
        doc = add_notice_to_docstring(
            func.__doc__, instructions, f"{_NO_DOC} ARGUMENTS", "(deprecated arguments)", notice
        )
        return make_decorator(func, wrapper, "deprecated", doc)

    return decorate


def _given(
    fine: dict[str, Any],
    func: Callable[..., Any],
    spec: inspect.FullArgSpec,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> list[str]:
    """Which of the arguments in `fine` a call gives, with values other than those that are fine."""
    values = getcallargs(func, *args, **kwargs)
    positional = spec.args[: len(args)]
    found = [n for n in fine if n in positional and not _same(values[n], fine[n])]
    if spec.varargs in fine and len(args) > len(spec.args):
        found.append(str(spec.varargs))
    if spec.varkw in fine and kwargs:
        found.append(str(spec.varkw))
    return found + [n for n in fine if n in kwargs and not _same(values[n], fine[n])]


def _same(value: Any, fine: Any) -> bool:
    """Whether two values are surely one; arrays and tables that compare by element are not."""
    if value is fine:
        return True
    try:
        equal = value == fine
    except TypeError:
        return False
    return isinstance(equal, bool) and equal


def deprecated_arg_values(
    date: str | None, instructions: str, warn_once: bool = True, **deprecated_kwargs: Any
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: calls in which an argument has one of these values say so.

    Args:
        date: when they are removed, as YYYY-MM-DD; None for some later version.
        instructions: what to do instead.
        warn_once: whether the first such call alone says so.
        **deprecated_kwargs: the values, by the arguments' names.

    Raises:
        ValueError: the date has another form, or there are no instructions or no values.
    """
    _check(date, instructions)
    if not deprecated_kwargs:
        raise ValueError("Specify which argument values are deprecated.")

    def decorate(func: Callable[..., Any]) -> Callable[..., Any]:
        validate_callable(func, "deprecated_arg_values")

        def wrapper(*args: Any, **kwargs: Any) -> Any:
            values = getcallargs(func, *args, **kwargs)
            for name, value in deprecated_kwargs.items():
                if name in values and _same(values[name], value):
                    _tell(
                        (func, name), warn_once,
                        "calling %s (from %s) with %s=%s is deprecated and will be removed %s.\n"
                        "Instructions for updating:\n%s",
                        get_qualified_name(func), func.__module__, name, value, _when(date),
                        instructions,
                    )  # fmt: skip
            return func(*args, **kwargs)

        told = ", ".join(f"{name}={value!r}" for name, value in sorted(deprecated_kwargs.items()))
        when = _when(date)
        notice = [
            f"SOME ARGUMENT VALUES ARE DEPRECATED: `({told})`. They will be removed {when}.",
            "Instructions for updating:",
        ]
        doc = add_notice_to_docstring(
            func.__doc__, instructions, f"{_NO_DOC} ARGUMENT VALUES",
            "(deprecated argument values)", notice,
        )  # fmt: skip
        return make_decorator(func, wrapper, "deprecated", doc)

    return decorate


def deprecated_alias(
    deprecated_name: str, name: str, func_or_class: Any, warn_once: bool = True
) -> Any:
    """A function or class under its old name, whose first use says what the new one is."""
    text = "The name %s is deprecated. Please use %s instead.\n"
    instructions = f"Please use {name} instead."
    if not isinstance(func_or_class, type):
        validate_callable(func_or_class, "deprecated")

        def wrapper(*args: Any, **kwargs: Any) -> Any:
            _tell(wrapper, warn_once, text, deprecated_name, name)
            return func_or_class(*args, **kwargs)

        doc = _function_notice(func_or_class.__doc__, None, instructions)
        return make_decorator(func_or_class, wrapper, "deprecated", doc)

    original: Any = func_or_class

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        _tell(alias, warn_once, text, deprecated_name, name)
        original.__init__(self, *args, **kwargs)

    notice = ["THIS CLASS IS DEPRECATED. It will be removed in a future version. "]
    doc = add_notice_to_docstring(
        original.__doc__, instructions, "DEPRECATED CLASS", "(deprecated)", notice
    )
    members = {
        "__init__": make_decorator(original.__init__, init, "deprecated_alias"),
        "__doc__": doc,
        "__module__": original.__module__,
    }
    alias = type(original)(original.__name__, (original,), members)
    return alias


def deprecated_endpoints(*args: str) -> Callable[[Any], Any]:
    """A decorator that notes which of a symbol's names are deprecated; it says nothing."""

    def note(symbol: Any) -> Any:
        if "_tf_deprecated_api_names" in vars(symbol):
            raise DeprecatedNamesAlreadySet(
                f"Cannot set deprecated names for {symbol.__name__} to {args}. Deprecated names "
                f"are already set to {symbol._tf_deprecated_api_names}."
            )
        symbol._tf_deprecated_api_names = args
        return symbol

    return note


def deprecated_argument_lookup(new_name: str, new_value: Any, old_name: str, old_value: Any) -> Any:
    """The value of an argument that has an old and a new name.

    Raises:
        ValueError: both are given.
    """
    if old_value is None:
        return new_value
    if new_value is not None:
        raise ValueError(f"Cannot specify both '{old_name}' and '{new_name}'")
    return old_value


def rewrite_argument_docstring(old_doc: str, old_argument: str, new_argument: str) -> str:
    """Documentation in which an argument has another name."""
    named = old_doc.replace(f"`{old_argument}`", f"`{new_argument}`")
    return named.replace(f"{old_argument}:", f"{new_argument}:")


@contextmanager
def silence() -> Iterator[None]:
    """Says nothing of what is deprecated while it is open."""
    global PRINT_DEPRECATION_WARNINGS
    before = PRINT_DEPRECATION_WARNINGS
    PRINT_DEPRECATION_WARNINGS = False
    try:
        yield
    finally:
        PRINT_DEPRECATION_WARNINGS = before


class HiddenTfApiAttribute(property):
    """An attribute that a class inherits and does not offer.

    Args:
        deprecation_message: what the AttributeError says that reading it raises.
    """

    def __init__(self, deprecation_message: str) -> None:
        def refuse(_: Any) -> Any:
            raise AttributeError(deprecation_message)

        super().__init__(refuse)


hide_attribute_from_api = HiddenTfApiAttribute


# --------------------------------------------------------------------------------- keyword_args
def keyword_args_only(func: _F) -> _F:
    """A decorator: the function takes no argument by position.

    Raises:
        ValueError: it is no function; when it is called with one.
    """
    validate_callable(func, "keyword_args_only")

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if args:
            raise ValueError(f"Must use keyword args to call {func.__name__}.")
        return func(**kwargs)

    return wrapper  # type: ignore[return-value]
