"""What TF's `deprecation`, `tf_contextlib` and their like do to functions.

Libraries that were written beside TensorFlow decorate their own functions with these.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager as _contextmanager
from typing import Any, TypeVar

__all__ = [
    "contextmanager", "deprecated", "deprecated_alias", "deprecated_arg_values", "deprecated_args",
    "deprecated_argument_lookup", "deprecated_endpoints", "do_not_doc_inheritable",
    "do_not_generate_docs",
    "keyword_args_only", "make_all", "remove_undocumented", "silence",
]  # fmt: skip

_F = TypeVar("_F", bound=Callable[..., Any])
_told: set[str] = set()


def _tell(key: str, text: str) -> None:
    from opdock import logging

    if key not in _told:
        _told.add(key)
        logging.warning("%s", text)


def _when(date: str | None) -> str:
    return "in a future version" if date is None else f"after {date}"


def deprecated(date: str | None, instructions: str, warn_once: bool = True) -> Callable[[_F], _F]:
    """A decorator: the function's first call says that it is deprecated."""

    def decorate(function: _F) -> _F:
        name = f"{function.__module__}.{function.__qualname__}"

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            _tell(
                name,
                f"{function.__qualname__} (from {function.__module__}) is deprecated and will be "
                f"removed {_when(date)}.\nInstructions for updating:\n{instructions}",
            )
            return function(*args, **kwargs)

        return wrapper  # type: ignore[return-value]

    return decorate


def deprecated_args(
    date: str | None, instructions: str, *names: Any, **unused: Any
) -> Callable[[_F], _F]:
    """A decorator: the first call with one of these keyword arguments says so."""
    plain = {name[0] if isinstance(name, tuple) else name for name in names}
    return _about_arguments(date, instructions, lambda given: plain & given.keys())


def deprecated_arg_values(
    date: str | None, instructions: str, warn_once: bool = True, **values: Any
) -> Callable[[_F], _F]:
    """A decorator: the first call with one of these values says so."""
    return _about_arguments(
        date, instructions, lambda given: {n for n, v in values.items() if given.get(n, ...) == v}
    )


def _about_arguments(
    date: str | None, instructions: str, found_in: Callable[[dict[str, Any]], set[str]]
) -> Callable[[_F], _F]:
    def decorate(function: _F) -> _F:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            for name in sorted(found_in(kwargs)):
                _tell(
                    f"{function.__module__}.{function.__qualname__}({name})",
                    f"calling {function.__qualname__} (from {function.__module__}) with {name} is "
                    f"deprecated and will be removed {_when(date)}.\nInstructions for updating:\n"
                    f"{instructions}",
                )
            return function(*args, **kwargs)

        return wrapper  # type: ignore[return-value]

    return decorate


def deprecated_alias(deprecated_name: str, name: str, func_or_class: Any, **unused: Any) -> Any:
    """A function under its old name, which says so at its first call; a class stays itself."""
    if isinstance(func_or_class, type):
        return func_or_class
    return deprecated(None, f"Please use {name} instead.")(func_or_class)


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


@_contextmanager
def silence() -> Iterator[None]:
    """Says nothing of what is deprecated while it is open."""
    from opdock import logging

    before = logging.get_verbosity()
    logging.set_verbosity(logging.ERROR)
    try:
        yield
    finally:
        logging.set_verbosity(before)


def contextmanager(target: Callable[..., Any]) -> Callable[..., Any]:
    """`contextlib.contextmanager`."""
    return _contextmanager(target)


def keyword_args_only(function: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator: the function takes no argument by position.

    Raises:
        ValueError: when it is called with one.
    """

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if args:
            raise ValueError(f"The function {function.__name__} takes keyword arguments only.")
        return function(**kwargs)

    return wrapper


def deprecated_endpoints(*names: str) -> Callable[[_F], _F]:
    """A decorator that leaves its function alone: the names are kept."""
    return do_not_generate_docs


def do_not_generate_docs(target: _F) -> _F:
    """Leaves its function alone."""
    return target


def hide_attribute_from_api(value: Any) -> Any:
    """Leaves an attribute alone."""
    return value


class TFModuleWrapper:
    """Is no wrapper: the module is left alone, and tells of deprecated names by itself."""

    def __new__(cls, wrapped: Any, *_: Any, **__: Any) -> Any:
        return wrapped


do_not_doc_inheritable = doc_in_current_and_subclasses = do_not_generate_docs
for_subclass_implementers = do_not_generate_docs


def remove_undocumented(module_name: str, allowed_exception_list: Any = None, *unused: Any) -> None:
    """Does nothing: what a module does not document is no one's harm."""


def make_all(module_name: str, doc_string_modules: Any = None) -> list[str]:
    """The public names of a module."""
    import sys

    return sorted(n for n in dir(sys.modules[module_name]) if not n.startswith("_"))
