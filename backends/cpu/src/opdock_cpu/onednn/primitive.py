"""Primitives: made once for given shapes, called with arrays.

A call may come from several threads; each takes its own set of memory objects, and they compute one
after another, in one block of scratch memory. oneDNN itself would keep such a block for each thread
that makes primitives, and look for it in the thread that calls them, which may be another.
"""

from __future__ import annotations

import contextlib
import functools
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from opdock_cpu.onednn.api import Api, api
from opdock_cpu.onednn.declarations import Arg, Query, Scratch
from opdock_cpu.onednn.governed import governed
from opdock_cpu.onednn.memory import Desc, aligned, copied
from opdock_cpu.threads import threads

__all__ = ["Attributes", "Plan", "Primitive", "reorder"]

_executing = threading.Lock()


@contextlib.contextmanager
def _on(count: int) -> Iterator[None]:
    """Lets oneDNN see `count` threads, and nobody else call it."""
    set_threads = api().set_threads
    with _executing:
        if set_threads is None or count == threads():
            yield
            return
        set_threads(count)
        try:
            yield
        finally:
            set_threads(threads())


class _Scratch:
    """What all primitives compute in, one at a time; it goes with the last of them."""

    __slots__ = ("__weakref__", "block")

    def __init__(self) -> None:
        self.block = aligned(0)


_scratch: weakref.ref[_Scratch] | None = None


def _scratch_for(size: int) -> _Scratch | None:
    """The scratch memory, with room for `size` bytes; None where none are needed."""
    global _scratch
    if size == 0:
        return None
    with _executing:
        found = None if _scratch is None else _scratch()
        if found is None:
            found = _Scratch()
            _scratch = weakref.ref(found)
        if found.block.size < size:
            found.block = aligned(size)
        return found


class Attributes:
    """A primitive's attributes: what is done to each result before it is stored.

    Its scratch memory is the caller's, for every primitive.

    Args:
        eltwise: (algorithm, alpha, beta) or ("sum",) or ("binary", algorithm, descriptor), in
            order.
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
        return int(a.lib.dnnl_post_ops_append_sum(ops, 1.0, 0, 0))
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
            thread is faster.

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
        self.threads = threads() if count is None else count
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
        # What a primitive lays out for its threads must be met by the threads that run it.
        with _on(self.threads):
            self.ptr = a.make(
                a.lib.dnnl_primitive_create, plan.ptr, destroy=a.lib.dnnl_primitive_destroy
            )
        self._scratchpad = plan.desc(Query.SCRATCHPAD)
        self._scratch = _scratch_for(self._scratchpad.size)
        self._free: list[Any] = []
        self.run = self._bind()
        roles = [role for role, _ in self.args]
        if self.threads > 1 and not plan.accumulates and Arg.EITHER.isdisjoint(roles):
            self.run = governed(self.run, self._alone, [role in Arg.RESULTS for role in roles])

    def _alone(self) -> Callable[..., None] | None:
        """What computes the same on one thread, if oneDNN does it in the same way there."""
        plan = self.plan.alone()
        return None if plan is None else Primitive(plan, self.args).run

    def _memories(self) -> tuple[list[Any], Any]:
        a = self._api
        args = [*self.args]
        if self._scratch is not None:
            args.append((Arg.SCRATCHPAD, self._scratchpad))
        memories = [
            a.make(
                a.lib.dnnl_memory_create, desc.ptr, a.engine, a.ffi.NULL,
                destroy=a.lib.dnnl_memory_destroy,
            )
            for _, desc in args
        ]  # fmt: skip
        argv = a.ffi.new("dnnl_exec_arg_t[]", len(memories))
        for slot, (role, _), memory in zip(argv, args, memories, strict=True):
            slot.arg, slot.memory = role, memory
        return memories, argv

    def _bind(self) -> Callable[..., None]:
        a, free, ptr, scratch = self._api, self._free, self.ptr, self._scratch
        count = len(self.args) + (scratch is not None)
        execute, stream, wanted, usual = (
            a.lib.dnnl_primitive_execute, a.stream, self.threads, threads(),
        )  # fmt: skip
        set_handle, from_buffer, set_threads = (
            a.lib.dnnl_memory_set_data_handle, a.ffi.from_buffer, a.set_threads,
        )  # fmt: skip
        make, check = self._memories, a.check

        def run(*arrays: Any) -> None:
            try:
                held = free.pop()
            except IndexError:
                held = make()
            memories, argv = held
            copies: Any = None
            for memory, array in zip(memories, arrays):
                try:
                    set_handle(memory, from_buffer(array))
                except (TypeError, ValueError):
                    # Not contiguous, or of a type that Python's buffers do not know.
                    plain = as_buffer(array)
                    copies = (plain, copies)
                    set_handle(memory, from_buffer(plain))
            with _executing:
                if scratch is not None:
                    set_handle(memories[-1], from_buffer(scratch.block))
                if set_threads is not None:
                    set_threads(wanted)
                status = execute(ptr, stream, count, argv)
                if set_threads is not None and wanted != usual:
                    set_threads(usual)
            free.append(held)
            if status:
                check(status, "execute")

        return run


def as_buffer(array: Any) -> Any:
    """`array`, or a contiguous copy, as something whose address can be taken."""
    dense = np.ascontiguousarray(array)
    return dense.view(np.uint16) if dense.dtype.itemsize == 2 else dense


def reorder(source: Desc, target: Desc, count: int | None = None) -> Primitive:
    """Copies data from one layout to another: call it with (from, to)."""
    a = api()
    plan = Plan("reorder", source, a.engine, target, a.engine, None, count=count)
    return Primitive(plan, [(Arg.SRC, source), (Arg.DST, target)])
