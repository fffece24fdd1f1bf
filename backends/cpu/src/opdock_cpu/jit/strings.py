"""Arrays of strings as bytes one after the other, and back, by generated code.

A string of Python's is an object; code that goes through all of them spends its time on looking
them up. Here a loop asks the interpreter for each object's bytes and puts them side by side,
another makes objects of pieces, and a third one of several. They call functions of CPython's stable
interface, whose addresses they are given, and hold the interpreter's lock: no layout of an object
is known here.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from opdock_cpu.jit import llvm
from opdock_cpu.jit.compiled import Function, address, request

__all__ = ["joined", "made", "measured", "packed"]

Array = np.ndarray[Any, Any]

_FEW: Final = 1 << 8
"""Strings that Python goes through before generated code is called."""
_WORTH: Final = 1 << 12
"""Strings for which it pays to load LLVM."""
_NOTHING: Final = "expected bytes, nothing found"
_SIZES: Final = """
define internal i64 @sizes(ptr %objects, i64 %count, ptr %places, ptr %bounds, ptr %as) {
entry:
  %text = alloca ptr
  %size = alloca i64
  %wanted = icmp ne ptr %places, null
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
  br i1 %fine, label %found, label %end
found:
  br i1 %wanted, label %keep, label %turn
keep:
  %place = load ptr, ptr %text
  %p = getelementptr ptr, ptr %places, i64 %i
  store ptr %place, ptr %p
  br label %turn
turn:
  %next = add i64 %i, 1
  %length = load i64, ptr %size
  %total = add i64 %sum, %length
  %b = getelementptr i64, ptr %bounds, i64 %next
  store i64 %total, ptr %b
  br label %top
end:
  ret i64 %i
}
"""
"""Asks for the bounds of strings, and where their bytes are if that is wanted; of how many."""
_MEASURE: Final = (
    _SIZES
    + """
define i64 @NAME(ptr %objects, i64 %count, ptr %bounds, ptr %as) {
  %done = call i64 @sizes(ptr %objects, i64 %count, ptr null, ptr %bounds, ptr %as)
  ret i64 %done
}
"""
)
_COPY: Final = """
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
define internal void @copy(ptr %to, ptr %from, i64 %bytes) alwaysinline {
entry:
  %number = ptrtoint ptr %from to i64
  %inside = and i64 %number, 4095
  %near = icmp ule i64 %inside, 4080
  %short = icmp ule i64 %bytes, 16
  %whole = and i1 %near, %short
  br i1 %whole, label %few, label %many
few:
  %piece = load <16 x i8>, ptr %from, align 1
  store <16 x i8> %piece, ptr %to, align 1
  ret void
many:
  call void @exactly(ptr %to, ptr %from, i64 %bytes)
  ret void
}
define internal void @exactly(ptr %to, ptr %from, i64 %bytes) alwaysinline {
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %bytes, i1 0)
  ret void
}
"""
"""Copies a string to where 16 bytes more have room.

One of up to 16 bytes is copied with what lies behind it, unless a page of memory ends there: what
stands in the same page may be read. A call of C's function takes three times as long.
"""
_GATHER: Final = (
    _SIZES
    + _COPY
    + """
define ptr @NAME(ptr %objects, i64 %count, ptr %places, ptr %bounds, ptr %as, ptr %new) {
entry:
  %text = alloca ptr
  %size = alloca i64
  %done = call i64 @sizes(ptr %objects, i64 %count, ptr %places, ptr %bounds, ptr %as)
  %known = icmp eq i64 %done, %count
  br i1 %known, label %all, label %left
left:
  ret ptr null
all:
  %b = getelementptr i64, ptr %bounds, i64 %count
  %sum = load i64, ptr %b
  %large = add i64 %sum, 16
  %made = call ptr %new(ptr null, i64 %large)
  %room = icmp ne ptr %made, null
  br i1 %room, label %hold, label %left
hold:
  %asked = call i32 %as(ptr %made, ptr %text, ptr %size)
  %data = load ptr, ptr %text
  br label %top
top:
  %i = phi i64 [0, %hold], [%next, %turn]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %turn, label %end
turn:
  %next = add i64 %i, 1
  %f = getelementptr ptr, ptr %places, i64 %i
  %from = load ptr, ptr %f
  %c = getelementptr i64, ptr %bounds, i64 %i
  %start = load i64, ptr %c
  %d = getelementptr i64, ptr %bounds, i64 %next
  %stop = load i64, ptr %d
  %bytes = sub i64 %stop, %start
  %to = getelementptr i8, ptr %data, i64 %start
  call void @copy(ptr %to, ptr %from, i64 %bytes)
  br label %top
end:
  ret ptr %made
}
"""
)
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
_PUT: Final = """
define internal void @PUT(ptr %at, i64 %width, ptr %texts, ptr %sizes, ptr %mark,
                           i64 %between) {
entry:
  %marked = icmp sgt i64 %between, 0
  br label %parts
parts:
  %k = phi i64 [0, %entry], [%onward, %next]
  %to = phi ptr [%at, %entry], [%behind, %next]
  %left = icmp slt i64 %k, %width
  br i1 %left, label %part, label %done
part:
  %onward = add i64 %k, 1
  %f = getelementptr ptr, ptr %texts, i64 %k
  %from = load ptr, ptr %f
  %g = getelementptr i64, ptr %sizes, i64 %k
  %bytes = load i64, ptr %g
  call void @HOW(ptr %to, ptr %from, i64 %bytes)
  %here = getelementptr i8, ptr %to, i64 %bytes
  %inside = icmp slt i64 %onward, %width
  %gap = and i1 %inside, %marked
  br i1 %gap, label %separate, label %next
separate:
  call void @HOW(ptr %here, ptr %mark, i64 %between)
  br label %next
next:
  %add = select i1 %gap, i64 %between, i64 0
  %behind = getelementptr i8, ptr %here, i64 %add
  br label %parts
done:
  ret void
}
"""
"""Puts the strings of a row side by side."""
_JOIN: Final = (
    _COPY
    + _PUT.replace("@PUT", "@put").replace("@HOW", "@copy")
    + _PUT.replace("@PUT", "@put.exactly").replace("@HOW", "@exactly")
    + """
define i64 @NAME(ptr %objects, i64 %count, ptr %columns, ptr %strides, i64 %width, ptr %texts,
                 ptr %sizes, ptr %mark, i64 %between, ptr %as, ptr %new, ptr %drop) {
entry:
  %place = alloca ptr
  %length = alloca i64
  %scratch = alloca [272 x i8]
  %last = sub i64 %width, 1
  %marks = mul i64 %last, %between
  br label %rows
rows:
  %i = phi i64 [0, %entry], [%next, %done]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %measure, label %end
measure:
  %j = phi i64 [0, %rows], [%after, %measured]
  %sum = phi i64 [%marks, %rows], [%total, %measured]
  %unknown = icmp slt i64 %j, %width
  br i1 %unknown, label %ask, label %make
ask:
  %c = getelementptr ptr, ptr %columns, i64 %j
  %column = load ptr, ptr %c
  %s = getelementptr i64, ptr %strides, i64 %j
  %stride = load i64, ptr %s
  %far = mul i64 %stride, %i
  %o = getelementptr i8, ptr %column, i64 %far
  %object = load ptr, ptr %o
  %none = icmp eq ptr %object, null
  br i1 %none, label %end, label %look
look:
  %t = getelementptr ptr, ptr %texts, i64 %j
  %z = getelementptr i64, ptr %sizes, i64 %j
  %status = call i32 %as(ptr %object, ptr %t, ptr %z)
  %fine = icmp eq i32 %status, 0
  br i1 %fine, label %measured, label %end
measured:
  %after = add i64 %j, 1
  %size = load i64, ptr %z
  %total = add i64 %sum, %size
  br label %measure
make:
  %fits = icmp ule i64 %sum, 256
  br i1 %fits, label %aside, label %place.it
aside:
  call void @put(ptr %scratch, i64 %width, ptr %texts, ptr %sizes, ptr %mark, i64 %between)
  %copied = call ptr %new(ptr %scratch, i64 %sum)
  br label %there
place.it:
  %large = call ptr %new(ptr null, i64 %sum)
  %room = icmp ne ptr %large, null
  br i1 %room, label %fill, label %end
fill:
  %asked = call i32 %as(ptr %large, ptr %place, ptr %length)
  %first = load ptr, ptr %place
  call void @put.exactly(ptr %first, i64 %width, ptr %texts, ptr %sizes, ptr %mark, i64 %between)
  br label %there
there:
  %made = phi ptr [%copied, %aside], [%large, %fill]
  %held = icmp ne ptr %made, null
  br i1 %held, label %done, label %end
done:
  %n = getelementptr ptr, ptr %objects, i64 %i
  %old = load ptr, ptr %n
  store ptr %made, ptr %n
  call void %drop(ptr %old)
  %next = add i64 %i, 1
  br label %rows
end:
  ret i64 %i
}
"""
)
"""Of up to 256 bytes, they come together where there is room, and the interpreter copies them."""


class _Step:
    """A function of this module: its source, and how the interpreter calls it."""

    def __init__(self, source: str, arguments: str, result: Any = ctypes.c_int64) -> None:
        kinds = {"p": ctypes.c_void_p, "n": ctypes.c_int64}
        # Of Python's functions: the lock stays held, and an exception that was set is raised.
        self._kind = ctypes.PYFUNCTYPE(result, *(kinds[a] for a in arguments))
        self.code: Function = request(lambda name: source.replace("NAME", name))

    @functools.cached_property
    def call(self) -> Callable[..., Any]:
        """The function; its code has to be there."""
        address = self.code.address
        assert address is not None
        return self._kind(address)


class _Steps:
    """All of them, and the addresses of what they call."""

    def __init__(self) -> None:
        self.measure = _Step(_MEASURE, "pnpp")
        self.gather = _Step(_GATHER, "pnpppp", ctypes.py_object)
        self.make = _Step(_MAKE, "pnppppp")
        self.join = _Step(_JOIN, "pnppnpppnppp")
        self.look, self.new, self.drop = (
            ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value
            for name in ("PyBytes_AsStringAndSize", "PyBytes_FromStringAndSize", "Py_DecRef")
        )

    @property
    def there(self) -> bool:
        """Whether all is compiled."""
        steps = (self.measure, self.gather, self.make, self.join)
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
    if steps is None:
        return None
    held = _contiguous(strings)
    bounds = np.empty(held.size + 1, np.int64)
    done = steps.measure.call(address(held), held.size, address(bounds), steps.look)
    if done != held.size:  # NumPy has left it empty; of others the interpreter has raised
        raise TypeError(_NOTHING)
    return bounds


def packed(strings: Any) -> tuple[Array, Array] | None:
    """The bytes of all strings one after the other, and where each begins, with the end of all.

    None, and errors, as of `measured`.
    """
    steps = _ready(np.size(strings))
    if steps is None:
        return None
    held = _contiguous(strings)
    bounds, places = np.empty(held.size + 1, np.int64), np.empty(held.size, np.uintp)
    arrays = (address(places), address(bounds))
    try:
        # In one call, so that nobody takes an object away while its bytes are read.
        whole = steps.gather.call(address(held), held.size, *arrays, steps.look, steps.new)
    except ValueError:  # no object, and no exception
        raise TypeError(_NOTHING) from None
    return np.frombuffer(whole, np.uint8, int(bounds[-1])), bounds


def _contiguous(strings: Any) -> Array:
    return np.ascontiguousarray(np.asarray(strings, object))


def joined(columns: Sequence[Array], mark: bytes) -> Array | None:
    """The strings in a row as one; None if there are too few to gain, or no code, or not yet.

    Args:
        columns: vectors of strings, all of one length, at least one; rows of a matrix are some too.
        mark: what stands between two of them.

    Raises:
        TypeError: one of them is not bytes.
    """
    count, width = columns[0].size, len(columns)
    steps = _ready(count * width)
    if steps is None:
        return None
    # Two of the four are what the code works in.
    places, sizes = np.empty((2, width), np.uintp), np.empty((2, width), np.int64)
    if isinstance(columns, np.ndarray):
        places[0] = address(columns) + columns.strides[0] * np.arange(width)
        sizes[0] = columns.strides[1]
    else:
        places[0], sizes[0] = [address(c) for c in columns], [c.strides[0] for c in columns]
    out = np.empty(count, object)
    done = steps.join.call(
        address(out), count, address(places), address(sizes), width, address(places[1]),
        address(sizes[1]), mark, len(mark), steps.look, steps.new, steps.drop,
    )  # fmt: skip
    if done != count:
        raise TypeError(_NOTHING)
    return out


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
        places = (address(a) for a in (data, starts, ends))
        done = steps.make.call(address(out), out.size, *places, steps.new, steps.drop)
        assert done == out.size
    return out.reshape(shape)
