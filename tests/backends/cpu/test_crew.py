"""The helper threads: chunks are done once each, and nobody waits for who has not begun."""

from __future__ import annotations

import multiprocessing
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from opdock_cpu import crew as module
from opdock_cpu.crew import Crew, Held, Loop, sharing, why_none
from opdock_cpu.jit import llvm
from opdock_cpu.jit.compiled import caller, ffi
from opdock_cpu.jit.crew_source import SLOTS, Call, Head
from opdock_cpu.sharing import Governor
from tests.threads import WAIT

pytestmark = pytest.mark.skipif(bool(why_none()), reason=why_none() or "there are helpers")

# Counts each chunk. Chunk 0 says that it began, and waits for its gate.
CODE = """
declare i32 @sched_yield()
define internal void @chunk(ptr %args, i64 %i) {
  %counts = getelementptr i64, ptr %args, i64 2
  %count = getelementptr i64, ptr %counts, i64 %i
  %before = atomicrmw add ptr %count, i64 1 seq_cst
  %first = icmp eq i64 %i, 0
  br i1 %first, label %begin, label %end
begin:
  %begun = atomicrmw add ptr %args, i64 1 seq_cst
  %gate = getelementptr i64, ptr %args, i64 1
  br label %wait
wait:
  %y = call i32 @sched_yield()
  %open = load atomic i64, ptr %gate seq_cst, align 8
  %shut = icmp eq i64 %open, 0
  br i1 %shut, label %wait, label %end
end:
  ret void
}
define void @test_chunks(ptr %args, i64 %call) {
  %words = inttoptr i64 %call to ptr
  %entryp = getelementptr i64, ptr %words, i64 1
  %run = load ptr, ptr %entryp
  call void %run(ptr %words, ptr @chunk, ptr %args)
  ret void
}
"""


class Always(Governor):
    """Has all work shared out."""

    def wanted(self, base: float) -> bool:
        return True


class Work:
    """Calls of `CODE`: how often each chunk was done, and whether the first one may end."""

    def __init__(self, chunks: int, open: bool = True) -> None:
        self.array = np.zeros(2 + chunks, np.int64)
        self.array[1] = open
        self.code = llvm.compile_ir(CODE, "test_chunks")

    def __call__(self, held: Held) -> None:
        caller(1)(self.code.address)(ffi().from_buffer(self.array), held.address)

    @property
    def counts(self) -> list[int]:
        return list(self.array[2:])


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> Iterator[Crew]:
    """A crew of the test's own, still without helpers."""
    found = Crew()
    monkeypatch.setattr(module, "_crew", found)
    yield found
    found.dismiss()


def called(work: Work, chunks: int, threads: int, times: int = 1) -> list[int]:
    """How many chunks the caller did at each call."""
    loop, mine = Loop(Always()), []
    for _ in range(times):
        held = loop.begin(chunks, threads)
        work(held)
        mine.append(held.words[Call.MINE])
        loop.end(held)
    return mine


@pytest.mark.parametrize("threads", [2, 5])
def test_each_chunk_is_done_once_a_call(own: Crew, threads: int) -> None:
    work = Work(50)
    mine = called(work, 50, threads, times=200)
    assert work.counts == [200] * 50
    assert all(0 <= m <= 50 for m in mine)
    assert own.size == threads - 1


def test_without_anyone_who_runs_the_caller_does_it_all(
    own: Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own, "recruit", lambda count: None)
    work = Work(9)
    assert called(work, 9, 4, times=3) == [9, 9, 9]


def test_no_more_helpers_take_part_than_may(own: Crew) -> None:
    own.recruit(4)
    work = Work(1, open=False)
    loop = Loop(Always())
    held = loop.begin(1, 8)  # one chunk leaves no seat for a helper
    caller_thread = threading.Thread(target=work, args=(held,))
    caller_thread.start()
    work.array[1] = 1
    caller_thread.join()
    assert held.words[Call.MINE] == 1


def test_the_caller_waits_for_what_has_begun(own: Crew) -> None:
    """Whoever is at the first chunk holds up the call, whatever became of the other."""
    own.recruit(1)
    work, done = Work(2, open=False), threading.Event()

    def call() -> None:
        called(work, 2, 2)
        done.set()

    thread = threading.Thread(target=call)
    thread.start()
    while work.array[3] == 0:  # the other chunk: whoever is not at the first has done it
        pass
    assert not done.is_set()
    work.array[1] = 1
    thread.join()
    assert work.counts == [1, 1]


def at_once(count: int, act: Callable[[], Any]) -> None:
    threads = [threading.Thread(target=act) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_callers_beyond_the_slots_work_alone(own: Crew) -> None:
    work = Work(3)
    at_once(SLOTS + 8, lambda: called(work, 3, 3, times=20))
    assert work.counts == [20 * (SLOTS + 8)] * 3


@pytest.mark.parametrize("times", [300, pytest.param(30_000, marks=pytest.mark.prove)])
def test_many_callers_of_one_loop(own: Crew, times: int) -> None:
    """Loops of one to seven chunks open and close in all slots while helpers look for work."""
    works = [Work(1 + i) for i in range(7)]

    def call() -> None:
        loops = [Loop(Always()) for _ in works]
        for i in range(times):
            which = i % len(works)
            held = loops[which].begin(1 + which, 4)
            works[which](held)
            loops[which].end(held)

    at_once(4, call)
    for i, work in enumerate(works):
        assert work.counts == [4 * len(range(i, times, 7))] * (1 + i)


def test_what_has_ended_leaves_no_thread(own: Crew) -> None:
    own.recruit(3)
    threads = list(own._threads)
    own.dismiss()
    assert not any(t.is_alive() for t in threads)


def test_short_work_wakes_nobody(own: Crew) -> None:
    work, loop = Work(2), Loop(Always())
    assert loop.begin(2, 2, quiet=True).words[Call.ENTRY] == 0  # there is no helper yet
    own.recruit(1)
    while not own.all_asleep:
        time.sleep(0)
    held = loop.begin(2, 2, quiet=True)
    assert held.words[Call.ENTRY] == 0
    held.words[Call.ENTRY], held.words[Call.SEATS] = own.run, 1  # as if it had fallen asleep now
    held.words[Call.CREW], held.words[Call.QUIET] = own.head, 1
    for _ in range(100):
        work(held)
        assert held.words[Call.MINE] == 2
    assert own.all_asleep
    assert work.counts == [100, 100]


def test_short_work_that_nobody_shared_says_nothing(own: Crew) -> None:
    heard = []

    class Ear(Always):
        def judge(self, shared: bool, spent: float, base: float) -> None:
            heard.append(shared)

    own.recruit(1)
    for mine in (2, 1):
        loop = Loop(Ear())
        held = loop.begin(2, 2)
        held.words[Call.QUIET], held.words[Call.MINE], held.words[Call.OWN] = 1, mine, 1_000
        loop.end(held)
    assert heard == [True]


def test_the_governor_hears_what_one_thread_would_have_taken(own: Crew) -> None:
    heard = []

    class Ear(Always):
        def judge(self, shared: bool, spent: float, base: float) -> None:
            heard.append((shared, spent, base))

    loop = Loop(Ear())
    held = loop.begin(8, 2)
    held.words[Call.MINE], held.words[Call.OWN], held.words[Call.SPENT] = 2, 1_000, 5_000
    loop.end(held)
    assert heard == [(True, pytest.approx(5e-6), pytest.approx(4e-6))]


def test_a_caller_that_did_nothing_works_alone_next(own: Crew) -> None:
    """It knows nothing of its work yet: a helper may have taken its very core."""
    loop = Loop(Always())
    held = loop.begin(8, 2)
    assert held.words[Call.SEATS] == 1
    held.words[Call.MINE] = 0
    loop.end(held)
    held = loop.begin(8, 2)
    assert held.words[Call.SEATS] == 0
    held.words[Call.MINE], held.words[Call.OWN] = 8, 1_000
    loop.end(held)
    assert loop.begin(8, 2).words[Call.SEATS] == 1


def test_what_is_told(own: Crew) -> None:
    assert "no work was shared out yet" in sharing()
    work = Work(4)
    called(work, 4, 2, times=3)
    # After a call of which helpers did all, the caller works alone.
    assert 1 <= own.loops <= 3
    assert f"{own.loops} loops were shared out" in sharing()


def _in_the_child(queue: Any, crew: Crew, work: Work) -> None:
    mine = called(work, 6, 3, times=50)
    queue.put((crew.size, work.counts, max(mine) <= 6, crew._words[Head.STOP]))


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_child_has_helpers_of_its_own(own: Crew) -> None:
    work = Work(6)
    called(work, 6, 3, times=50)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_in_the_child, args=(queue, own, work))
    child.start()
    assert queue.get(timeout=WAIT) == (2, [100] * 6, True, 0)
    child.join()
    assert work.counts == [50] * 6
