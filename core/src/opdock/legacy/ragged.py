"""Arrays of rows that differ in length, which NumPy made arrays of objects until version 1.23."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

from opdock.legacy import uses

_FUNCTIONS: Final = ("array", "asarray")
# These count on the error: that a value is no tensor, say.
_WANT_THE_ERROR: Final = ("opdock", "numpy")


def allow(numpy: ModuleType) -> None:
    """Lets `numpy.array(rows)` and `asarray` go where rows differ in length and no dtype is asked."""
    for name in _FUNCTIONS:
        setattr(numpy, name, _allowing(getattr(numpy, name)))


def _allowing(before: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(before)
    def make(*args: Any, **kwargs: Any) -> Any:
        try:
            return before(*args, **kwargs)
        except ValueError as error:
            asked = len(args) != 1 or kwargs.get("dtype") is not None
            if asked or "inhomogeneous" not in str(error) or _caller_wants_it():
                raise
        uses.record(f"numpy.{before.__name__} of rows that differ in length", "dtype=object")
        return before(*args, **{**kwargs, "dtype": object})

    return make


def _caller_wants_it() -> bool:
    caller = sys._getframe(2).f_globals.get("__name__", "")
    return str(caller).startswith(_WANT_THE_ERROR)
