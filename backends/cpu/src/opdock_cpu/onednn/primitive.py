"""Primitives: made once for given shapes, called with arrays.

Any number of threads may call one at the same time: each takes its own set of memory objects, says
for itself how many threads OpenMP is to use, and has its own scratch memory. oneDNN itself would
keep such memory for the thread that makes a primitive, and look for it in the one that calls it.
"""

from __future__ import annotations

import contextlib
import functools
import os
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from opdock.plugin import deterministic, note
from opdock_cpu.onednn.api import Api, api
from opdock_cpu.onednn.declarations import Arg, Query, Scratch
from opdock_cpu.onednn.governed import governed
from opdock_cpu.onednn.memory import Desc, aligned, copied
from opdock_cpu.signals import kept_off, thread
from opdock_cpu.threads import threads

__all__ = ["Attributes", "Plan", "Primitive", "reorder", "scratch"]


@contextlib.contextmanager
def _on(count: int) -> Iterator[None]:
    """Lets oneDNN see `count` threads, on this thread."""
    a = api()
    if a.set_threads is None or count == a.usual:
        yield
        return
    a.set_threads(count)
    try:
        yield
    finally:
        a.set_threads(a.usual)


class _Scratch:
    """What all primitives that a thread calls compute in; it goes with the last of them."""

    __slots__ = ("__weakref__", "block")

    def __init__(self) -> None:
        self.block = aligned(0)


_of_thread = threading.local()


def scratch(size: int) -> _Scratch:
    """This thread's scratch memory, with room for `size` bytes; it is kept by who holds it."""
    ref = getattr(_of_thread, "scratch", None)
    found: _Scratch | None = None if ref is None else ref()
    if found is None:
        found = _Scratch()
        _of_thread.scratch = weakref.ref(found)
    if found.block.size < size:
        found.block = aligned(size)
    return found


# A thread that forks keeps, in the child, OpenMP's notes of threads that are not there, and would
# wait for them for ever. A new thread has no such notes, so it runs what needs several.
_forked: int | None = None
_beside: ThreadPoolExecutor | None = None


def _after_fork() -> None:
    global _forked, _beside
    _forked, _beside = threading.get_ident(), None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _on_another(run: Callable[..., None], arrays: Sequence[Any]) -> None:
    """Runs on a thread that has not been through a fork."""
    global _beside
    if _beside is None:
        _beside = ThreadPoolExecutor(1, "opdock-onednn")
    _beside.submit(run, *arrays).result()


class Attributes:
    """A primitive's attributes: what is done to each result before it is stored.

    Its scratch memory is the caller's, for every primitive.

    Args:
        eltwise: (algorithm, alpha, beta) or ("sum",) or ("sum", factor, element type) or ("binary",
            algorithm, descriptor), in order.
        scales: (argument, mask) pairs: factors that arrive with each call.

    Attributes:
        accumulates: whether the result is added to what its memory holds.
    """

    def __init__(
        self, post_ops: Iterable[tuple[Any, ...]] = (), scales: Iterable[tuple[int, int]] = (),
        zero_points: Iterable[tuple[int, int]] = (),
    ) -> None:  # fmt: skip
        a = api()
        lib = a.lib
        self.ptr = a.make(lib.dnnl_primitive_attr_create, destroy=lib.dnnl_primitive_attr_destroy)
        a.check(lib.dnnl_primitive_attr_set_scratchpad_mode(self.ptr, Scratch.USER), "scratchpad")
        for arg, mask in scales:
            a.check(lib.dnnl_primitive_attr_set_scales_mask(self.ptr, arg, mask), "scales")
        for arg, mask in zero_points:
            a.check(lib.dnnl_primitive_attr_set_zero_points_mask(self.ptr, arg, mask), "zero")
        chain = tuple(post_ops)
        self.accumulates = any(op[0] == "sum" for op in chain)
        if chain:
            ops = a.make(lib.dnnl_post_ops_create, destroy=lib.dnnl_post_ops_destroy)
            for op in chain:
                a.check(_append(a, ops, op), f"post-op {op[0]}")
            a.check(lib.dnnl_primitive_attr_set_post_ops(self.ptr, ops), "post-ops")


@functools.cache
def _plain() -> Attributes:
    """The attributes of a primitive for which none are given."""
    return Attributes()


def _append(a: Api, ops: Any, op: tuple[Any, ...]) -> int:
    if op[0] == "sum":
        scale, kind = op[1:] or (1.0, 0)
        return int(a.lib.dnnl_post_ops_append_sum(ops, scale, 0, kind))
    if op[0] == "binary":
        return int(a.lib.dnnl_post_ops_append_binary(ops, op[1], op[2].ptr))
    return int(a.lib.dnnl_post_ops_append_eltwise(ops, *op))


class Plan:
    """A primitive descriptor: an implementation for given layouts, not yet compiled.

    Args:
        kind: the function's middle part, e.g. "matmul" or "convolution_forward".
        *args: its arguments after the engine, the last of them its attributes; a `Desc`, `Plan` or
            `Attributes` stands for its object, None for no object.
        count: how many threads to lay the work out for, all by default: below some size one
            thread is faster. Where results are to be the same bits for any number, it is one.

    Attributes:
        accumulates: whether the result is added to what its memory holds.

    Raises:
        UnimplementedError: oneDNN has no implementation.
    """

    def __init__(self, kind: str, *args: Any, count: int | None = None) -> None:
        a = api()
        if args[-1] is None:
            args = (*args[:-1], _plain())
        self._made_of = (kind, args)
        self.accumulates = any(isinstance(v, Attributes) and v.accumulates for v in args)
        self.threads = count or (1 if deterministic() else threads())
        create = getattr(a.lib, f"dnnl_{kind}_primitive_desc_create")
        null = a.ffi.NULL
        plain = [null if v is None else getattr(v, "ptr", v) for v in args]
        engine = () if kind == "reorder" else (a.engine,)
        # Work is laid out here for the threads there are, and more of them would be woken for it.
        with _on(self.threads):
            self.ptr = a.make(create, *engine, *plain, destroy=a.lib.dnnl_primitive_desc_destroy)

    def alone(self) -> Plan | None:
        """The same for one thread; None if that is computed otherwise or laid out otherwise."""
        kind, args = self._made_of
        plan = Plan(kind, *args, count=1)
        if plan.implementation != self.implementation:
            return None
        equal = all(plan.desc(what).same(self.desc(what)) for what in Query.LAYOUTS)
        return plan if equal else None

    def desc(self, what: int, index: int = 0) -> Desc:
        """The layout of an argument (`Query.SRC` ...) as the implementation wants it."""
        a = api()
        return copied(a, a.lib.dnnl_primitive_desc_query_md(self.ptr, what, index))

    @property
    def implementation(self) -> str:
        """The implementation's name, e.g. "brgconv:avx512_core"."""
        a = api()
        out = a.ffi.new("char **")
        a.check(a.lib.dnnl_primitive_desc_query(self.ptr, Query.IMPLEMENTATION, 0, out), "query")
        text: bytes = a.ffi.string(out[0])
        return text.decode()


class Primitive:
    """A compiled primitive; call it with one contiguous array per argument.

    Args:
        plan: what to compile.
        args: (role, descriptor) of each argument, in the order of the call.
    """

    def __init__(self, plan: Plan, args: Sequence[tuple[int, Desc]]) -> None:
        a = self._api = api()
        self.plan = plan
        self.threads = plan.threads
        self.args = tuple(args)
        shared = f" on up to {self.threads} threads" if self.threads > 1 else ""
        note(f"oneDNN {plan.implementation}{shared}")
        # What a primitive lays out for its threads must be met by the threads that run it.
        with _on(self.threads):
            self.ptr = a.make(
                a.lib.dnnl_primitive_create, plan.ptr, destroy=a.lib.dnnl_primitive_destroy
            )
        self._scratchpad = plan.desc(Query.SCRATCHPAD)
        self._free: list[Any] = []
        self.run = self._bind()
        roles = [role for role, _ in self.args]
        if self.threads > 1 and not plan.accumulates and Arg.EITHER.isdisjoint(roles):
            self.run = governed(self.run, self._alone, [role in Arg.RESULTS for role in roles])

    def _alone(self) -> Callable[..., None] | None:
        """What computes the same on one thread, if oneDNN does it in the same way there."""
        plan = self.plan.alone()
        return None if plan is None else Primitive(plan, self.args).run

    def memories(self) -> _Memories:
        """Memory objects for one call at a time."""
        return _Memories(self._api, [*self.args, (Arg.SCRATCHPAD, self._scratchpad)])

    def _bind(self) -> Callable[..., None]:
        a, free, ptr, room = self._api, self._free, self.ptr, self._scratchpad.size
        execute, stream, wanted, usual = (
            a.lib.dnnl_primitive_execute, a.stream, self.threads, a.usual,
        )  # fmt: skip
        set_handle, from_buffer = a.lib.dnnl_memory_set_data_handle, a.ffi.from_buffer
        set_threads = None if wanted == usual else a.set_threads
        make, check = self.memories, a.check

        def run(*arrays: Any) -> None:
            if wanted > 1 and _forked is not None and _forked == threading.get_ident():
                _on_another(run, arrays)
                return
            try:
                held = free.pop()
            except IndexError:
                held = make()
            copies: Any = None
            for memory, array in zip(held.memories, arrays):
                try:
                    set_handle(memory, from_buffer(array))
                except (TypeError, ValueError):
                    # Not contiguous, or of a type that Python's buffers do not know.
                    plain = as_buffer(array)
                    copies = (plain, copies)
                    set_handle(memory, from_buffer(plain))
            if room:
                held.compute_in(scratch(room))
            if set_threads is not None:
                set_threads(wanted)
            if thread.team >= wanted:
                status = execute(ptr, stream, held.count, held.argv)
            else:
                with kept_off():
                    status = execute(ptr, stream, held.count, held.argv)
            if wanted > 1:
                thread.team = wanted
            if set_threads is not None:
                set_threads(usual)
            free.append(held)
            if status:
                check(status, "execute")

        return run


class _Memories:
    """The memory objects of a primitive, for one call at a time.

    Args:
        a: the library.
        args: (role, descriptor) of each; the last one is the scratch memory.

    Attributes:
        memories: oneDNN's objects.
        argv, count: the same as oneDNN's array of arguments.
    """

    __slots__ = ("_api", "_block", "_scratch", "argv", "count", "memories")

    def __init__(self, a: Api, args: Sequence[tuple[int, Desc]]) -> None:
        self._api = a
        self.memories = [
            a.make(
                a.lib.dnnl_memory_create, desc.ptr, a.engine, a.ffi.NULL,
                destroy=a.lib.dnnl_memory_destroy,
            )
            for _, desc in args
        ]  # fmt: skip
        self.count = len(args)
        self.argv = a.ffi.new("dnnl_exec_arg_t[]", self.count)
        for slot, (role, _), memory in zip(self.argv, args, self.memories, strict=True):
            slot.arg, slot.memory = role, memory
        self._scratch: _Scratch | None = None
        self._block: Any = None

    def compute_in(self, scratch: _Scratch) -> None:
        """Sets the scratch memory, and holds it."""
        block = scratch.block
        if block is not self._block:
            a = self._api
            a.lib.dnnl_memory_set_data_handle(self.memories[-1], a.ffi.from_buffer(block))
            self._scratch, self._block = scratch, block


def as_buffer(array: Any) -> Any:
    """`array`, or a contiguous copy, as something whose address can be taken."""
    dense = np.ascontiguousarray(array)
    return dense.view(np.uint16) if dense.dtype.itemsize == 2 else dense


def reorder(source: Desc, target: Desc, count: int | None = None) -> Primitive:
    """Copies data from one layout to another: call it with (from, to)."""
    a = api()
    plan = Plan("reorder", source, a.engine, target, a.engine, None, count=count)
    return Primitive(plan, [(Arg.SRC, source), (Arg.DST, target)])
