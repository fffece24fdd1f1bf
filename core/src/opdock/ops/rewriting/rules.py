"""Which functions are left as they are, whoever calls them."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any, Final

__all__ = ["OVERLOADED", "is_artifact", "left_alone", "needs_frame"]

OVERLOADED: Final = frozenset((abs, enumerate, float, int, len, print, range, zip))
"""Python's functions that mean something else of tensors, datasets and lists of tensors."""

# What TensorFlow left alone, and what of TensorFlow 1.15 itself has become libraries since.
_OWN: Final = frozenset(("opdock", "tensorflow"))
_LIBRARIES: Final = frozenset(
    (
        "numpy", "tensorflow_probability", "tensorflow_estimator",
        "tf_keras", "keras", "tf_slim", "malt", "ipdb", "mock", "pytest", "absl", "six",
        "google", "tensorboard",
    )
)  # fmt: skip
_PARTS: Final = ("tensorflow_datasets.core",)

_ARTIFACT: Final = "autograph_info__"
_COMPILED: Final = "__ag_compiled"


def artifact(entity: Any, extras: Any = None) -> Any:
    """Marks a function as one that is rewritten already."""
    setattr(entity.__func__ if inspect.ismethod(entity) else entity, _ARTIFACT, extras)
    return entity


def is_artifact(entity: Any) -> bool:
    """Whether a function is rewritten already, or not to be."""
    return hasattr(entity, _ARTIFACT) or hasattr(entity, _COMPILED)


def mark(wrapper: Callable[..., Any]) -> None:
    """Marks what converts, or keeps from conversion, what it calls."""
    setattr(wrapper, _COMPILED, True)


def needs_frame(function: Any) -> bool:
    """Whether one of Python's functions looks at the function that calls it."""
    return function in (eval, super, globals, locals)


def left_alone(entity: Any, asked_for: bool = False) -> bool:
    """Whether a callable is a class, a library's, or of a kind that is never rewritten.

    Args:
        entity: the callable.
        asked_for: whether the user asked for this one: then a library's is rewritten too, other
            than opdock's own.
    """
    if inspect.isclass(entity) or isinstance(entity, functools._lru_cache_wrapper):
        return True
    if isinstance(entity, functools.partial):
        return left_alone(entity.func, asked_for)
    if inspect.isbuiltin(entity) and entity not in OVERLOADED:
        return True
    if _of_library(getattr(entity, "__module__", None), asked_for) or _by_wrapt(entity):
        return True
    if inspect.isgeneratorfunction(entity) or inspect.iscoroutinefunction(entity):
        return True
    if inspect.ismethod(entity):
        return _method_left_alone(entity, asked_for)
    if not inspect.isfunction(entity):
        # An object is called by a method of its class.
        call = type(entity).__call__
        return not inspect.isfunction(call) or left_alone(call, asked_for)
    return False


def _method_left_alone(method: Any, asked_for: bool) -> bool:
    own = method.__self__
    owner = own if inspect.isclass(own) else type(own)
    unittest = sys.modules.get("unittest")  # if there is none, there are no tests
    if unittest is not None and issubclass(owner, unittest.TestCase) and not asked_for:
        return True
    function = method.__func__
    if not inspect.isfunction(function):
        return left_alone(function, asked_for)
    defined = next((c for c in owner.__mro__ if function in vars(c).values()), owner)
    return _of_library(defined.__module__, asked_for) or left_alone(function, asked_for)


def _of_library(module: str | None, asked_for: bool) -> bool:
    if module is None:
        return False
    top = module.partition(".")[0]
    if top in _OWN or top.startswith("opdock_"):
        return True
    return not asked_for and (
        top in _LIBRARIES
        or top in sys.stdlib_module_names
        or any(module == part or module.startswith(part + ".") for part in _PARTS)
    )


def _by_wrapt(entity: Any) -> bool:
    """Whether a decorator of the library wrapt made it, whose functions are no functions."""
    wrapt = sys.modules.get("wrapt")
    return wrapt is not None and isinstance(entity, wrapt.ObjectProxy)
