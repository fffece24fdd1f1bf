"""Threads in generated code: a team of GNU's OpenMP runtime, each of which does its share.

What a function is given goes to the threads as an array of pointers. `@task` is what each runs: it
calls `@share(args, thread, threads)` of the same module.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from opdock_cpu.jit.plan import Code

__all__ = ["SHARE", "TASK", "packed", "parallel", "part", "started", "unpacked"]

SHARE: Final = "define internal void @share(ptr %args, i64 %tid, i64 %team) nounwind"
TASK: Final = """declare void @GOMP_parallel(ptr, ptr, i32, i32)
declare i32 @omp_get_thread_num()
declare i32 @omp_get_num_threads()
define internal void @task(ptr %args) nounwind {
  %tid32 = call i32 @omp_get_thread_num()
  %tid = zext i32 %tid32 to i64
  %team32 = call i32 @omp_get_num_threads()
  %team = zext i32 %team32 to i64
  call void @share(ptr %args, i64 %tid, i64 %team)
  ret void
}
"""


def packed(code: Code, pointers: Sequence[str]) -> str:
    """The array of pointers that threads are given."""
    args = code.put(f"alloca [{len(pointers)} x ptr]")
    for i, pointer in enumerate(pointers):
        code.store("ptr", f"%{pointer}", code.at("ptr", args, str(i)))
    return args


def unpacked(code: Code, count: int) -> list[str]:
    """The pointers, in `@share`."""
    return [code.put(f"load ptr, ptr {code.at('ptr', '%args', str(i))}") for i in range(count)]


def started(code: Code, args: str) -> None:
    """Runs `@task` on a team of `%threads`, and goes on when all of them are done."""
    count = code.put("trunc i64 %threads to i32")
    code.add(f"call void @GOMP_parallel(ptr @task, ptr {args}, i32 {count}, i32 0)")


def part(code: Code, total: str, which: str) -> str:
    """Where the share of thread `which` begins; those of all threads are about the same."""
    return code.put(f"sdiv i64 {code.put(f'mul i64 {total}, {which}')}, %team")


def parallel(
    name: str, pointers: Sequence[str], total: Callable[[Code, Sequence[str]], str], forks: bool
) -> str:
    """The function that is called, over `@core(pointers, i64 from, i64 to)` of the same module.

    Args:
        name: its name; after the pointers it takes a number of threads.
        pointers: the names of what it is given.
        total: makes code for how much there is to do, from the pointers as that code knows them.
        forks: whether it can start threads; else `@core` does all.
    """
    code = Code()
    given = [f"%{p}" for p in pointers]
    if forks:
        code.add(f"br i1 {code.put('icmp sgt i64 %threads, 1')}, label %several, label %alone")
        code.block("several")
        started(code, packed(code, pointers))
        code.add("ret void")
        code.block("alone")
    _core(code, given, "0", total(code, given))
    params = ", ".join(f"ptr {p}" for p in given)
    entry = code.function(f"define void @{name}({params}, i64 %threads) nounwind")
    return entry + (_share(len(pointers), total) + TASK if forks else "")


def _share(count: int, total: Callable[[Code, Sequence[str]], str]) -> str:
    code = Code()
    given = unpacked(code, count)
    whole = total(code, given)
    _core(code, given, part(code, whole, "%tid"), part(code, whole, code.put("add i64 %tid, 1")))
    return code.function(SHARE)


def _core(code: Code, given: Sequence[str], start: str, end: str) -> None:
    passed = ", ".join([*(f"ptr {p}" for p in given), f"i64 {start}", f"i64 {end}"])
    code.add(f"call void @core({passed})", "ret void")
