"""Work of oneDNN's in parts that the crew shares: a primitive for one thread computes each.

What the parts are depends on the work and the machine, so the results are the same bits for any
number of threads, and nobody waits at a barrier of OpenMP's for a thread that the system does not
run.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from opdock.plugin import note
from opdock_cpu.crew import Loop, why_none
from opdock_cpu.jit import llvm
from opdock_cpu.jit.compiled import caller
from opdock_cpu.jit.plan import Code
from opdock_cpu.jit.team import chunk, divided
from opdock_cpu.onednn.api import Api, api
from opdock_cpu.onednn.declarations import Query
from opdock_cpu.onednn.memory import aligned
from opdock_cpu.onednn.primitive import Primitive, as_buffer, scratch
from opdock_cpu.signals import thread
from opdock_cpu.threads import threads

__all__ = ["LEAST", "OPENMP_FROM", "Part", "Parts", "divides", "evenly", "over_batch"]

OPENMP_FROM: Final = 20_000_000
"""Multiply-adds from which what is not divided may be worth several threads of OpenMP's: its
barriers wait for all of them, which on a busy machine takes milliseconds."""
LEAST: Final = 1_500_000
"""Multiply-adds of a part, at the least: some tens of microseconds."""
_MOST: Final = min(16, max(4, 2 * (os.cpu_count() or 1)))
"""Parts, at the most: what the machine has decides, not how many threads a session may have."""
_LINE: Final = 64

# Words of what a call says (`Parts._state`), and of each part's record.
_RECORDS, _BASES, _COUNT, _EXECUTE, _SET_HANDLE, _SET_THREADS, _USUAL = range(7)
_PRIMITIVE, _STREAM, _ARGC, _ARGV, _MEMORIES, _OFFSETS, _STATUS = range(7)
_RECORD: Final = 8


def divides() -> str:
    """Why work is not divided into parts here; empty where it is.

    LLVM is loaded for the answer: ask for work that is worth it.
    """
    return why_none() or llvm.why_not_started()


def evenly(length: int, work: float, least: int = 1) -> list[int]:
    """The sizes of the parts of a dimension, equal ones if possible.

    Args:
        length: of the dimension.
        work: multiply-adds of all.
        least: how long a part has to be.
    """
    count = int(max(1, min(length // least, work // LEAST, _MOST)))
    # A second size means a second primitive.
    count = next((c for c in range(count, count // 2, -1) if length % c == 0), count)
    ends = [length * i // count for i in range(count + 1)]
    return [b - a for a, b in itertools.pairwise(ends)]


@dataclass(frozen=True)
class Part:
    """A part of the work.

    Attributes:
        primitive: computes it, on one thread.
        offsets: for each argument, where the part's begins, in bytes.
    """

    primitive: Primitive
    offsets: tuple[int, ...]


class Parts:
    """Computes all parts; in the place of a `Primitive`.

    Args:
        parts: all, with the arguments of all alike.
        summed: for arguments of which each part makes a summand, its bytes; these are float32.

    Attributes:
        args: (role, descriptor) of a part's arguments.
        plan: of the first part.
    """

    def __init__(self, parts: Sequence[Part], summed: dict[int, int] | None = None) -> None:
        self._api = api()
        self._parts = list(parts)
        self._summed = summed or {}
        first = parts[0].primitive
        self.args, self.plan = first.args, first.plan
        room = max(p.primitive.plan.desc(Query.SCRATCHPAD).size for p in parts)
        self._room = -(-room // _LINE) * _LINE
        self._free: list[_Call] = []
        self._loop, self._limit = Loop(), threads()
        note(f"{len(parts)} parts on up to {min(self._limit, len(parts))} threads")
        self.run = self._bind()

    def _bind(self) -> Callable[..., None]:
        a, free, parts = self._api, self._free, self._parts
        count, room, summed = len(parts), self._room * len(parts), self._summed
        from_buffer, loop, limit, compute = a.ffi.from_buffer, self._loop, self._limit, _computes()

        def run(*arrays: Any) -> None:
            try:
                made = free.pop()
            except IndexError:
                made = _Call(a, parts, self._room, summed)
            bases, copies = made.bases, []
            for i, array in enumerate(arrays):
                try:
                    bases[i] = from_buffer(array)
                except (TypeError, ValueError):
                    copies.append(as_buffer(array))
                    bases[i] = from_buffer(copies[-1])
            for i, partial in made.partial.items():
                bases[i] = from_buffer(partial)
            if room:
                own = scratch(room)
                bases[len(arrays)] = from_buffer(own.block)
            thread.ready()
            held = loop.begin(count, limit)
            compute(made.state, held.address)
            loop.end(held)
            made.check()
            for i, partial in made.partial.items():
                _added(partial, arrays[i])
            free.append(made)

        return run


Make = Callable[[int, int | None], Primitive]


def over_batch(
    batch: int, work: float, make: Make, batches: Collection[int] | None = None
) -> Primitive | Parts:
    """A primitive of which arguments are batches, in parts where it can be divided.

    Args:
        batch: how many there are.
        work: multiply-adds, or what takes as long.
        make: the primitive for so many, on so many threads; None is all.
        batches: which arguments are; the others are read whole by each part. All without it.
    """
    sizes = evenly(batch, work)
    if len(sizes) == 1 or divides():
        return make(batch, 1 if work < OPENMP_FROM else None)
    made = {n: make(n, 1) for n in sizes}
    starts = itertools.accumulate(sizes, initial=0)
    return Parts([
        Part(made[n], tuple(
            desc.size // n * start if batches is None or i in batches else 0
            for i, (_, desc) in enumerate(made[n].args)
        ))
        for n, start in zip(sizes, starts, strict=False)
    ])  # fmt: skip


def _added(partial: Any, out: Any) -> None:
    """The sum of the parts' summands, in their order."""
    np.add.reduce(partial, axis=0, out=out.reshape(-1).view(np.float32))


class _Call:
    """What one call at a time needs: memory objects, and the words that generated code reads."""

    def __init__(
        self, a: Api, parts: Sequence[Part], room: int, summed: dict[int, int]
    ) -> None:  # fmt: skip
        ffi = a.ffi
        self._api, count = a, len(parts[0].primitive.args)
        self.partial = {
            i: aligned(size * len(parts)).view(np.float32).reshape(len(parts), -1)
            for i, size in summed.items()
        }
        self._kept: list[Any] = []
        self.bases = ffi.new("void *[]", count + 1)
        self._records = ffi.new("int64_t[]", _RECORD * len(parts))
        for i, part in enumerate(parts):
            memories = part.primitive.memories()
            offsets = list(part.offsets)
            for at, size in summed.items():
                offsets[at] = i * size
            stream = a.make(
                a.lib.dnnl_stream_create, a.engine, 1, destroy=a.lib.dnnl_stream_destroy
            )
            objects = ffi.new("void *[]", memories.memories)
            places = ffi.new("int64_t[]", [*offsets, i * room])
            self._kept += [memories, stream, objects, places]
            record = [part.primitive.ptr, stream, memories.count, memories.argv, objects, places, 0]
            for j, value in enumerate(record):
                self._records[_RECORD * i + j] = self._word(value)
        words = [
            self._records, self.bases, count + 1, a.lib.dnnl_primitive_execute,
            a.lib.dnnl_memory_set_data_handle, a.set_threads or 0, a.usual,
        ]  # fmt: skip
        self.state = ffi.new("int64_t[]", [self._word(w) for w in words])

    def _word(self, value: Any) -> int:
        return value if isinstance(value, int) else int(self._api.ffi.cast("intptr_t", value))

    def check(self) -> None:
        """Raises for a part that failed."""
        for at in range(_STATUS, len(self._records), _RECORD):
            if self._records[at]:
                self._api.check(self._records[at], "execute")


# ---------------------------------------------------------------- generated code
_SHARE: Final = f"""
define internal void @share(ptr %args, i64 %i, i64 %shares) nounwind {{
entry:
  %state = load ptr, ptr %args
  %records = load ptr, ptr %state
  %far = mul i64 %i, {_RECORD}
  %record = getelementptr i64, ptr %records, i64 %far
  %basesp = getelementptr i64, ptr %state, i64 {_BASES}
  %bases = load ptr, ptr %basesp
  %countp = getelementptr i64, ptr %state, i64 {_COUNT}
  %count = load i64, ptr %countp
  %handlep = getelementptr i64, ptr %state, i64 {_SET_HANDLE}
  %handle = load ptr, ptr %handlep
  %memoriesp = getelementptr i64, ptr %record, i64 {_MEMORIES}
  %memories = load ptr, ptr %memoriesp
  %offsetsp = getelementptr i64, ptr %record, i64 {_OFFSETS}
  %offsets = load ptr, ptr %offsetsp
  br label %each
each:
  %a = phi i64 [0, %entry], [%a1, %each]
  %basep = getelementptr ptr, ptr %bases, i64 %a
  %base = load ptr, ptr %basep
  %offsetp = getelementptr i64, ptr %offsets, i64 %a
  %offset = load i64, ptr %offsetp
  %place = getelementptr i8, ptr %base, i64 %offset
  %memoryp = getelementptr ptr, ptr %memories, i64 %a
  %memory = load ptr, ptr %memoryp
  %r = call i32 %handle(ptr %memory, ptr %place)
  %a1 = add i64 %a, 1
  %more = icmp slt i64 %a1, %count
  br i1 %more, label %each, label %ready
ready:
  %threadsp = getelementptr i64, ptr %state, i64 {_SET_THREADS}
  %threads = load ptr, ptr %threadsp
  %usualp = getelementptr i64, ptr %state, i64 {_USUAL}
  %usual = load i64, ptr %usualp
  %usual32 = trunc i64 %usual to i32
  %openmp = icmp ne ptr %threads, null
  br i1 %openmp, label %one, label %execute
one:
  call void %threads(i32 1)
  br label %execute
execute:
  %executep = getelementptr i64, ptr %state, i64 {_EXECUTE}
  %run = load ptr, ptr %executep
  %primitive = load ptr, ptr %record
  %streamp = getelementptr i64, ptr %record, i64 {_STREAM}
  %stream = load ptr, ptr %streamp
  %argcp = getelementptr i64, ptr %record, i64 {_ARGC}
  %argc = load i64, ptr %argcp
  %argc32 = trunc i64 %argc to i32
  %argvp = getelementptr i64, ptr %record, i64 {_ARGV}
  %argv = load ptr, ptr %argvp
  %status = call i32 %run(ptr %primitive, ptr %stream, i32 %argc32, ptr %argv)
  %wide = zext i32 %status to i64
  %statusp = getelementptr i64, ptr %record, i64 {_STATUS}
  store i64 %wide, ptr %statusp
  br i1 %openmp, label %back, label %end
back:
  call void %threads(i32 %usual32)
  br label %end
end:
  ret void
}}
"""


@functools.cache
def _computes() -> Callable[[Any, int], None]:
    """What computes the parts, over the state of a call and the address of its words."""
    code = Code()
    divided(code, ["%state"])
    code.add("ret void")
    text = _SHARE + chunk(1) + code.function("define void @NAME(ptr %state, i64 %call) nounwind")
    name = f"opdock_parts_{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    loaded = llvm.compile_ir(text.replace("@NAME(", f"@{name}("), name)
    call = caller(1)(loaded.address)

    def compute(state: Any, address: int, _code: Any = loaded) -> None:
        call(state, address)

    return compute
