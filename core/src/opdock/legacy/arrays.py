"""What NumPy's functions took once, and what it meant.

Rows that differ in length; `copy=False` where a copy is due; Python's types for kinds of numbers;
bytes read by `fromstring`. And protobuf, which took NumPy's booleans while they were integers.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

from opdock.legacy import uses

_FUNCTIONS: Final = ("array", "asarray")
_QUESTIONS: Final = ("ndim", "shape", "size")
_STACKING: Final = ("stack", "vstack", "hstack", "dstack", "column_stack")
_COUNTING: Final = ("linspace", "logspace", "geomspace")
# These count on the error: that a value is no tensor, say.
_WANT_THE_ERROR: Final = ("opdock", "numpy")


def allow(numpy: ModuleType) -> None:
    """Lets NumPy's functions do what they did before versions 1.20, 1.24 and 2.0.

    Rows that differ in length become an array of objects if no dtype is asked for, and `copy=False`
    means that nothing is copied without need. `issubdtype(t, float)` asks for any floating type,
    as `int`, `complex` and `str` ask for any type of their kind. `fromstring` without a separator
    copies the elements of bytes, as most programs do that read records. `linspace` and its like
    take a count that is a float, such as `n / 2`. `vstack` and its like
    take what an iterator gives. `reshape` knows its shape as `newshape`.
    """
    for name in _FUNCTIONS:
        setattr(numpy, name, _allowing(getattr(numpy, name)))
    for name in _QUESTIONS:
        setattr(numpy, name, _answering(getattr(numpy, name), numpy))
    for name in _STACKING:
        setattr(numpy, name, _stacking(getattr(numpy, name)))
    for name in _COUNTING:
        setattr(numpy, name, _counting(getattr(numpy, name)))
    if "newshape" not in inspect.signature(numpy.reshape).parameters:
        numpy.reshape = _reshaping(numpy.reshape)  # type: ignore[attr-defined]
    numpy.fromstring = _of_bytes(numpy.fromstring, numpy)  # type: ignore[attr-defined]
    numpy.issubdtype = _of_kinds(numpy.issubdtype, numpy)  # type: ignore[attr-defined]


def _allowing(before: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(before)
    def make(*args: Any, **kwargs: Any) -> Any:
        try:
            return before(*args, **kwargs)
        except ValueError as error:
            found = _once(str(error), args, kwargs)
            if found is None or _caller_wants_the_error():
                raise
        what, name, value = found
        uses.record(
            f"numpy.{before.__name__} {what}", f"{name}={getattr(value, '__name__', value)}"
        )
        return before(*args, **{**kwargs, name: value})

    return make


def _answering(before: Callable[..., Any], numpy: ModuleType) -> Callable[..., Any]:
    """A question that is put to lists as to arrays: of rows that differ, to an array of them."""

    @functools.wraps(before)
    def ask(a: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return before(a, *args, **kwargs)
        except ValueError as error:
            if _once(str(error), (a,), {}) is None or _caller_wants_the_error():
                raise
        uses.record(f"numpy.{before.__name__} of rows that differ in length", "an array of them")
        return before(numpy.array(a, dtype=object), *args, **kwargs)

    return ask


def _counting(before: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(before)
    def spaced(start: Any, stop: Any, num: Any = 50, *args: Any, **kwargs: Any) -> Any:
        if isinstance(num, float):
            uses.record(f"numpy.{before.__name__} of a float's count", f"num={int(num)}")
            num = int(num)
        return before(start, stop, num, *args, **kwargs)

    return spaced


def _stacking(before: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(before)
    def stack(arrays: Any, *args: Any, **kwargs: Any) -> Any:
        if hasattr(arrays, "__next__"):
            uses.record(f"numpy.{before.__name__} of an iterator", "a list of it")
            arrays = list(arrays)
        return before(arrays, *args, **kwargs)

    return stack


def _reshaping(before: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself where it still has the old name; NumPy 1.26 has no other."""
    if "newshape" in inspect.signature(before).parameters:
        return before

    @functools.wraps(before)
    def reshape(*args: Any, **kwargs: Any) -> Any:
        if "newshape" in kwargs and "shape" not in kwargs:
            uses.record("numpy.reshape with newshape", "shape")
            kwargs["shape"] = kwargs.pop("newshape")
        return before(*args, **kwargs)

    return reshape


def _of_bytes(before: Callable[..., Any], numpy: ModuleType) -> Callable[..., Any]:
    @functools.wraps(before)
    def fromstring(
        string: Any, dtype: Any = float, count: int = -1, sep: str = "", **kwargs: Any
    ) -> Any:
        try:
            return before(string, dtype, count, sep=sep, **kwargs)
        except ValueError as error:
            if sep or "binary mode" not in str(error):
                raise
        uses.record("numpy.fromstring of bytes", "frombuffer")
        data = string.encode("latin1") if isinstance(string, str) else string
        return numpy.frombuffer(data, dtype, count).copy()

    return fromstring


def _once(error: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[str, str, Any] | None:
    """What a call asked for that was possible once, and the argument's name and value for it."""
    if "inhomogeneous" in error and len(args) == 1 and kwargs.get("dtype") is None:
        return "of rows that differ in length", "dtype", object
    if kwargs.get("copy") is False:
        return "with copy=False where one is due", "copy", None
    return None


def _caller_wants_the_error() -> bool:
    caller = sys._getframe(2).f_globals.get("__name__", "")
    return str(caller).startswith(_WANT_THE_ERROR)


def _of_kinds(before: Callable[..., bool], numpy: ModuleType) -> Callable[..., bool]:
    kinds: dict[Any, Any] = {
        float: numpy.floating, int: numpy.signedinteger, complex: numpy.complexfloating,
        str: numpy.character, bytes: numpy.character,
    }  # fmt: skip

    @functools.wraps(before)
    def issubdtype(arg1: Any, arg2: Any) -> bool:
        found = before(arg1, arg2)
        if found or _caller_wants_the_error():
            return found
        kind = kinds.get(arg2) if isinstance(arg2, type) else None
        if kind is None or not before(arg1, kind):
            return found
        uses.record("numpy.issubdtype of a Python type", kind.__name__)
        return True

    return issubdtype


def store_booleans(protos: ModuleType) -> None:
    """Lets an `Int64List` take NumPy's booleans, which counted as integers once."""
    message = protos.Int64List
    before = message.__init__

    @functools.wraps(before)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        try:
            before(self, *args, **kwargs)
        except TypeError:
            values: Any = kwargs.get("value")
            if not hasattr(values, "__len__") or not any(map(_is_numpys_boolean, values)):
                raise
            uses.record("numpy.bool as an integer of Int64List", "int")
            self.Clear()
            before(self, value=[int(v) if _is_numpys_boolean(v) else v for v in values])

    message.__init__ = init


def _is_numpys_boolean(value: Any) -> bool:
    return isinstance(value, sys.modules["numpy"].bool_)
