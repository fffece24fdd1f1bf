"""Arrays of strings as bytes one after the other, and back, by generated code.

A string of Python's is an object; code that goes through all of them spends its time on looking
them up. Here a loop asks the interpreter for each object's bytes and puts them side by side, and
another makes objects of pieces. Both call functions of CPython's stable interface, whose addresses
they are given, and hold the interpreter's lock: no layout of an object is known here.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from opdock_cpu.jit import llvm
from opdock_cpu.jit.compiled import Function, request

__all__ = ["made", "measured", "packed"]

Array = np.ndarray[Any, Any]

_FEW: Final = 1 << 8
"""Strings that Python goes through before generated code is called."""
_WORTH: Final = 1 << 12
"""Strings for which it pays to load LLVM."""
_MEASURE: Final = """
define i64 @NAME(ptr %objects, i64 %count, ptr %places, ptr %bounds, ptr %as) {
entry:
  %text = alloca ptr
  %size = alloca i64
  store i64 0, ptr %bounds
  br label %top
top:
  %i = phi i64 [0, %entry], [%next, %turn]
  %sum = phi i64 [0, %entry], [%total, %turn]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %ask, label %end
ask:
  %o = getelementptr ptr, ptr %objects, i64 %i
  %object = load ptr, ptr %o
  %none = icmp eq ptr %object, null
  br i1 %none, label %end, label %look
look:
  %status = call i32 %as(ptr %object, ptr %text, ptr %size)
  %fine = icmp eq i32 %status, 0
  br i1 %fine, label %turn, label %end
turn:
  %next = add i64 %i, 1
  %p = getelementptr ptr, ptr %places, i64 %i
  %place = load ptr, ptr %text
  store ptr %place, ptr %p
  %length = load i64, ptr %size
  %total = add i64 %sum, %length
  %b = getelementptr i64, ptr %bounds, i64 %next
  store i64 %total, ptr %b
  br label %top
end:
  ret i64 %i
}
"""
_GATHER: Final = """
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
define i64 @NAME(ptr noalias %data, ptr noalias %places, ptr noalias %bounds, i64 %count) {
entry:
  br label %top
top:
  %i = phi i64 [0, %entry], [%next, %turn]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %turn, label %end
turn:
  %next = add i64 %i, 1
  %p = getelementptr ptr, ptr %places, i64 %i
  %place = load ptr, ptr %p
  %b = getelementptr i64, ptr %bounds, i64 %i
  %start = load i64, ptr %b
  %c = getelementptr i64, ptr %bounds, i64 %next
  %stop = load i64, ptr %c
  %size = sub i64 %stop, %start
  %to = getelementptr i8, ptr %data, i64 %start
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %place, i64 %size, i1 0)
  br label %top
end:
  ret i64 %i
}
"""
_MAKE: Final = """
define i64 @NAME(ptr %objects, i64 %count, ptr %data, ptr %starts, ptr %ends, ptr %new, ptr %drop) {
entry:
  br label %top
top:
  %i = phi i64 [0, %entry], [%next, %turn]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %make, label %end
make:
  %b = getelementptr i64, ptr %starts, i64 %i
  %start = load i64, ptr %b
  %c = getelementptr i64, ptr %ends, i64 %i
  %stop = load i64, ptr %c
  %size = sub i64 %stop, %start
  %from = getelementptr i8, ptr %data, i64 %start
  %object = call ptr %new(ptr %from, i64 %size)
  %there = icmp ne ptr %object, null
  br i1 %there, label %turn, label %end
turn:
  %o = getelementptr ptr, ptr %objects, i64 %i
  %old = load ptr, ptr %o
  store ptr %object, ptr %o
  call void %drop(ptr %old)
  %next = add i64 %i, 1
  br label %top
end:
  ret i64 %i
}
"""


class _Step:
    """A function of this module: its source, and how the interpreter calls it."""

    def __init__(self, source: str, arguments: str) -> None:
        kinds = {"p": ctypes.c_void_p, "n": ctypes.c_int64}
        # Of Python's functions: the lock stays held, and an exception that was set is raised.
        self._kind = ctypes.PYFUNCTYPE(ctypes.c_int64, *(kinds[a] for a in arguments))
        self.code: Function = request(lambda name: source.replace("NAME", name))

    @functools.cached_property
    def call(self) -> Callable[..., int]:
        """The function; its code has to be there."""
        address = self.code.address
        assert address is not None
        return self._kind(address)


class _Steps:
    """All three, and the addresses of what they call."""

    def __init__(self) -> None:
        self.measure = _Step(_MEASURE, "pnppp")
        self.gather = _Step(_GATHER, "pppn")
        self.make = _Step(_MAKE, "pnppppp")
        self.look, self.new, self.drop = (
            ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value
            for name in ("PyBytes_AsStringAndSize", "PyBytes_FromStringAndSize", "Py_DecRef")
        )

    @property
    def there(self) -> bool:
        """Whether all is compiled."""
        steps = (self.measure, self.gather, self.make)
        return all(step.code.address is not None for step in steps)


@functools.cache
def _steps() -> _Steps | None:
    """The functions; None in an interpreter that does not offer C's."""
    return _Steps() if hasattr(ctypes, "pythonapi") else None


def _ready(count: int) -> _Steps | None:
    if count < _FEW or not (llvm.started() or count >= _WORTH) or not llvm.available():
        return None
    steps = _steps()
    return steps if steps is not None and steps.there else None


def measured(strings: Any) -> Array | None:
    """Where each string would begin if they lay one after the other, with the end of all.

    None if there are too few strings to gain, or there is no code, or not yet.

    Raises:
        TypeError: one of them is not bytes.
    """
    steps = _ready(np.size(strings))
    return None if steps is None else _places(steps, np.asarray(strings, object))[0]


def packed(strings: Any) -> tuple[Array, Array] | None:
    """The bytes of all strings one after the other, and where each begins, with the end of all.

    None, and errors, as of `measured`.
    """
    steps = _ready(np.size(strings))
    if steps is None:
        return None
    # Objects of its own: nobody may take one away while its bytes are read.
    held = np.array(strings, object)
    bounds, places = _places(steps, held)
    data = np.empty(int(bounds[-1]), np.uint8)
    steps.gather.call(data.ctypes.data, places.ctypes.data, bounds.ctypes.data, held.size)
    return data, bounds


def _places(steps: _Steps, strings: Array) -> tuple[Array, Array]:
    """Bounds of the strings, and where the bytes of each are."""
    strings = np.ascontiguousarray(strings)
    bounds, places = np.empty(strings.size + 1, np.int64), np.empty(strings.size, np.uintp)
    done = steps.measure.call(
        strings.ctypes.data, strings.size, places.ctypes.data, bounds.ctypes.data, steps.look
    )
    if done != strings.size:  # NumPy has left it empty; of others the interpreter has raised
        raise TypeError("expected bytes, nothing found")
    return bounds, places


def made(data: Array, starts: Array, ends: Array, shape: tuple[int, ...]) -> Array:
    """An array of strings, each a piece of contiguous bytes.

    Args:
        data: the bytes.
        starts: where each piece begins.
        ends: where it ends.
        shape: of the result.
    """
    starts, ends = (np.ascontiguousarray(a, np.int64).reshape(-1) for a in (starts, ends))
    out = np.empty(starts.size, object)
    steps = _ready(_WORTH)
    if steps is None:
        text = data.tobytes()
        pieces = zip(starts.tolist(), ends.tolist(), strict=True)
        out[:] = [text[a:b] for a, b in pieces]
    else:
        places = (a.ctypes.data for a in (data, starts, ends))
        done = steps.make.call(out.ctypes.data, out.size, *places, steps.new, steps.drop)
        assert done == out.size
    return out.reshape(shape)
