"""The helper threads' code: how chunks of a loop are handed out, without a lock.

All that threads share is one block of 64-bit words: a head, and slots, each of which is a line of
`SLOT` words and holds one loop at a time. A loop is open while its slot's first word, its ticket,
says so: the upper half numbers the loops of the slot, the lower half is the next chunk. Who takes a
chunk moves the ticket on by compare and exchange. That fails if anything has changed since the
ticket was read, so whatever else was read meanwhile belongs to the same loop: a slot's words are
only written after its last chunk was taken, and after the ticket was moved beyond any chunk, as
the next loop may have more of them.

Who calls takes chunks like everyone else, and at the end waits for those only that others have
begun. So a helper that the system does not run holds up nobody. A helper without work watches for
a few microseconds, and then sleeps in the kernel. Where that sleep was short, it watches for longer
the next time, until it finds that the system had others run meanwhile: on a busy machine it leaves
the core to them at once. A caller whose helpers take longer sleeps too.
"""

from __future__ import annotations

import string
from typing import Final

__all__ = ["SLOTS", "WORDS", "Call", "Head", "known", "source"]

_SLOT: Final = 16
"""Words of a slot, and of the head: two cache lines, since processors fetch them in pairs."""
SLOTS: Final = 16
"""Loops that helpers can take part in at the same time; callers beyond them work alone."""
WORDS: Final = _SLOT + SLOTS * _SLOT
"""Words of all that threads share."""


class Head:
    """Places in the head; the first word is the number of loops opened, on which helpers sleep."""

    OPENED, SLEEPERS, STOP, SPINS, RUN, SERVE, QUIT = range(7)


class Call:
    """Places in the words of a call.

    `CREW`, `ENTRY`, `CHUNKS`, `SEATS` and `QUIET` are the caller's: where the head is, where `run`
    is (0: who calls goes through the chunks by itself), how many chunks there are, how many helpers
    may take part, and whether (1) only those may that are awake. Then it is told: how many chunks
    it did itself, in how many nanoseconds, and how many the whole call took, which is more by what
    it costs to wake helpers and to wait for them.
    """

    CREW, ENTRY, CHUNKS, SEATS, MINE, OWN, SPENT, QUIET = range(8)
    WORDS = 8


_FUTEX: Final = {"x86_64": 202, "aarch64": 98, "riscv64": 98, "ppc64le": 221, "s390x": 238}
"""The number of the system call by which threads sleep on a word, by machine."""

_TEXT: Final = """
declare i64 @syscall(i64, ...)
declare i64 @llvm.umin.i64(i64, i64)
declare i64 @llvm.umax.i64(i64, i64)
declare i64 @llvm.usub.sat.i64(i64, i64)
declare i32 @clock_gettime(i32, ptr)

define internal i64 @now() nounwind {
  %time = alloca [2 x i64]
  %ok = call i32 @clock_gettime(i32 1, ptr %time)
  %seconds = load i64, ptr %time
  %rest = getelementptr i64, ptr %time, i64 1
  %nano = load i64, ptr %rest
  %whole = mul i64 %seconds, 1000000000
  %sum = add i64 %whole, %nano
  ret i64 %sum
}
define internal void @sleep(ptr %word, i32 %seen) nounwind {
  %r = call i64 (i64, ...) @syscall(i64 $FUTEX, ptr %word, i32 128, i32 %seen, ptr null)
  ret void
}
define internal void @wake(ptr %word, i32 %count) nounwind {
  %r = call i64 (i64, ...) @syscall(i64 $FUTEX, ptr %word, i32 129, i32 %count)
  ret void
}

; A helper's part in one slot's loop; whether it did any.
define internal i1 @help(ptr %slot) nounwind {
entry:
  %seatp = getelementptr i64, ptr %slot, i64 1
  %totalp = getelementptr i64, ptr %slot, i64 2
  %fnp = getelementptr i64, ptr %slot, i64 3
  %argsp = getelementptr i64, ptr %slot, i64 4
  %donep = getelementptr i64, ptr %slot, i64 5
  %waitp = getelementptr i64, ptr %slot, i64 6
  %seen = load atomic i64, ptr %slot acquire, align 8
  %number = lshr i64 %seen, 32
  %at = and i64 %seen, 4294967295
  %end = load atomic i64, ptr %totalp acquire, align 8
  %open = icmp ult i64 %at, %end
  br i1 %open, label %seat, label %none
seat:
  %seats = load atomic i64, ptr %seatp acquire, align 8
  %loop = lshr i64 %seats, 32
  %same = icmp eq i64 %loop, %number
  %left = and i64 %seats, 4294967295
  %free = icmp ne i64 %left, 0
  %sit = and i1 %same, %free
  br i1 %sit, label %take, label %none
take:
  %fewer = sub i64 %seats, 1
  %sat = cmpxchg ptr %seatp, i64 %seats, i64 %fewer acq_rel monotonic, align 8
  %seated = extractvalue {i64, i1} %sat, 1
  br i1 %seated, label %next, label %seat
next:
  %ticket = load atomic i64, ptr %slot acquire, align 8
  %which = lshr i64 %ticket, 32
  %still = icmp eq i64 %which, %number
  %chunk = and i64 %ticket, 4294967295
  %total = load atomic i64, ptr %totalp acquire, align 8
  %more = icmp ult i64 %chunk, %total
  %go = and i1 %still, %more
  br i1 %go, label %claim, label %some
claim:
  %fn = load atomic ptr, ptr %fnp monotonic, align 8
  %args = load atomic ptr, ptr %argsp monotonic, align 8
  %later = add i64 %ticket, 1
  %got = cmpxchg ptr %slot, i64 %ticket, i64 %later acq_rel monotonic, align 8
  %mine = extractvalue {i64, i1} %got, 1
  br i1 %mine, label %work, label %next
work:
  call void %fn(ptr %args, i64 %chunk)
  %before = atomicrmw add ptr %donep, i32 1 seq_cst, align 4
  %wide = zext i32 %before to i64
  %after = add i64 %wide, 1
  %last = icmp eq i64 %after, %total
  br i1 %last, label %tell, label %next
tell:
  %waits = load atomic i64, ptr %waitp seq_cst, align 8
  %sleeps = icmp ne i64 %waits, 0
  br i1 %sleeps, label %rouse, label %some
rouse:
  call void @wake(ptr %donep, i32 1)
  br label %some
some:
  ret i1 true
none:
  ret i1 false
}

; A helper's life.
define internal void @serve(ptr %crew, i64 %unused) nounwind {
entry:
  %sleepp = getelementptr i64, ptr %crew, i64 $SLEEPERS
  %stopp = getelementptr i64, ptr %crew, i64 $STOP
  %spinp = getelementptr i64, ptr %crew, i64 $SPINS
  br label %look
look:
  %longer = phi i64 [0, %entry], [%longer, %idle], [%longer2, %hit], [%longer1, %lie]
  %debt = phi i64 [0, %entry], [%debt, %idle], [%debt2, %hit], [%debt1, %lie]
  %seen = load atomic i32, ptr %crew seq_cst, align 4
  %stop = load atomic i64, ptr %stopp acquire, align 8
  %ends = icmp ne i64 %stop, 0
  br i1 %ends, label %end, label %scan
scan:
  %s = phi i64 [0, %look], [%s1, %scan]
  %any = phi i1 [false, %look], [%any1, %scan]
  %far = mul i64 %s, $SLOT
  %at = add i64 %far, $HEAD
  %slot = getelementptr i64, ptr %crew, i64 %at
  %did = call i1 @help(ptr %slot)
  %any1 = or i1 %any, %did
  %s1 = add i64 %s, 1
  %more = icmp ult i64 %s1, $SLOTS
  br i1 %more, label %scan, label %idle
idle:
  br i1 %any1, label %look, label %watch
watch:
  %least = load atomic i64, ptr %spinp monotonic, align 8
  %spins = add i64 %least, %longer
  %from = call i64 @now()
  br label %spin
spin:
  %i = phi i64 [0, %watch], [%i1, %turn]
  %left = icmp ult i64 %i, %spins
  br i1 %left, label %turn, label %lie
turn:
  %i1 = add i64 %i, 1
  %now = load atomic i32, ptr %crew monotonic, align 4
  %changed = icmp ne i32 %now, %seen
  br i1 %changed, label %hit, label %spin
hit:
  %there = call i64 @now()
  %lasted = sub i64 %there, %from
  %held = icmp ugt i64 %lasted, $TORN
  %longer2 = select i1 %held, i64 0, i64 %longer
  %debt2 = select i1 %held, i64 $DEBT, i64 %debt
  br label %look
lie:
  %bed = call i64 @now()
  %a = atomicrmw add ptr %sleepp, i64 1 seq_cst, align 8
  call void @sleep(ptr %crew, i32 %seen)
  %b = atomicrmw sub ptr %sleepp, i64 1 seq_cst, align 8
  %awake = call i64 @now()
  %watched = sub i64 %bed, %from
  %torn = icmp ugt i64 %watched, $TORN
  %slept = sub i64 %awake, %bed
  %short = icmp ult i64 %slept, $SOON
  %paid = call i64 @llvm.usub.sat.i64(i64 %debt, i64 1)
  %debt1 = select i1 %torn, i64 $DEBT, i64 %paid
  %clear = icmp eq i64 %debt1, 0
  %worth = and i1 %short, %clear
  %longer1 = select i1 %worth, i64 $LONGER, i64 0
  br label %look
end:
  ret void
}

; All chunks in turn.
define internal void @alone(ptr %fn, ptr %args, i64 %chunks) nounwind {
entry:
  br label %next
next:
  %i = phi i64 [0, %entry], [%i1, %next]
  call void %fn(ptr %args, i64 %i)
  %i1 = add i64 %i, 1
  %more = icmp ult i64 %i1, %chunks
  br i1 %more, label %next, label %end
end:
  ret void
}

; The caller's part: opens a loop, works, waits for what others have begun.
define internal void @run(ptr %call, ptr %fn, ptr %args) nounwind {
entry:
  %crew = load ptr, ptr %call
  %chunkp = getelementptr i64, ptr %call, i64 $CHUNKS
  %chunks = load i64, ptr %chunkp
  %seatsp = getelementptr i64, ptr %call, i64 $SEATS
  %seats = load i64, ptr %seatsp
  %minep = getelementptr i64, ptr %call, i64 $MINE
  %ownp = getelementptr i64, ptr %call, i64 $OWN
  %spentp = getelementptr i64, ptr %call, i64 $SPENT
  %quietp = getelementptr i64, ptr %call, i64 $QUIET
  %quiet = load i64, ptr %quietp
  %loud = icmp eq i64 %quiet, 0
  %begin = call i64 @now()
  br label %seek
seek:
  %s = phi i64 [0, %entry], [%s1, %taken]
  %any = icmp ult i64 %s, $SLOTS
  br i1 %any, label %try, label %full
try:
  %far = mul i64 %s, $SLOT
  %at = add i64 %far, $HEAD
  %slot = getelementptr i64, ptr %crew, i64 %at
  %ownerp = getelementptr i64, ptr %slot, i64 7
  %was = cmpxchg ptr %ownerp, i64 0, i64 1 acq_rel monotonic, align 8
  %free = extractvalue {i64, i1} %was, 1
  br i1 %free, label %open, label %taken
taken:
  %s1 = add i64 %s, 1
  br label %seek
full:
  call void @alone(ptr %fn, ptr %args, i64 %chunks)
  store i64 %chunks, ptr %minep
  %over = call i64 @now()
  %all = sub i64 %over, %begin
  store i64 %all, ptr %ownp
  store i64 %all, ptr %spentp
  ret void
open:
  %seatp = getelementptr i64, ptr %slot, i64 1
  %totalp = getelementptr i64, ptr %slot, i64 2
  %fnp = getelementptr i64, ptr %slot, i64 3
  %argsp = getelementptr i64, ptr %slot, i64 4
  %donep = getelementptr i64, ptr %slot, i64 5
  %waitp = getelementptr i64, ptr %slot, i64 6
  %old = load atomic i64, ptr %slot monotonic, align 8
  %shut = or i64 %old, 4294967295
  store atomic i64 %shut, ptr %slot release, align 8
  store atomic i64 %chunks, ptr %totalp release, align 8
  store atomic ptr %fn, ptr %fnp monotonic, align 8
  store atomic ptr %args, ptr %argsp monotonic, align 8
  store atomic i32 0, ptr %donep monotonic, align 4
  store atomic i64 0, ptr %waitp monotonic, align 8
  %number = lshr i64 %old, 32
  %next = add i64 %number, 1
  %ticket = shl i64 %next, 32
  %places = or i64 %ticket, %seats
  store atomic i64 %places, ptr %seatp release, align 8
  store atomic i64 %ticket, ptr %slot release, align 8
  %told = atomicrmw add ptr %crew, i32 1 seq_cst, align 4
  %sleepp = getelementptr i64, ptr %crew, i64 $SLEEPERS
  %sleepers = load atomic i64, ptr %sleepp seq_cst, align 8
  %fewest = call i64 @llvm.umin.i64(i64 %sleepers, i64 %seats)
  %asleep = icmp ne i64 %fewest, 0
  %needed = and i1 %asleep, %loud
  br i1 %needed, label %rouse, label %start
rouse:
  %wanted = trunc i64 %fewest to i32
  call void @wake(ptr %crew, i32 %wanted)
  br label %start
start:
  %ready = call i64 @now()
  br label %mine
mine:
  %own = phi i64 [0, %start], [%own, %claim], [%own1, %work]
  %now = load atomic i64, ptr %slot monotonic, align 8
  %chunk = and i64 %now, 4294967295
  %more = icmp ult i64 %chunk, %chunks
  br i1 %more, label %claim, label %out
claim:
  %later = add i64 %now, 1
  %got = cmpxchg ptr %slot, i64 %now, i64 %later acq_rel monotonic, align 8
  %won = extractvalue {i64, i1} %got, 1
  br i1 %won, label %work, label %mine
work:
  call void %fn(ptr %args, i64 %chunk)
  %d = atomicrmw add ptr %donep, i32 1 seq_cst, align 4
  %own1 = add i64 %own, 1
  br label %mine
out:
  %count = trunc i64 %chunks to i32
  %mid = call i64 @now()
  br label %watch
watch:
  %i = phi i64 [0, %out], [%i1, %again], [0, %still]
  %finished = load atomic i32, ptr %donep acquire, align 4
  %done = icmp eq i32 %finished, %count
  br i1 %done, label %close, label %again
again:
  %i1 = add i64 %i, 1
  %patient = icmp ult i64 %i1, $PATIENCE
  br i1 %patient, label %watch, label %still
still:
  %here = call i64 @now()
  %waited = sub i64 %here, %mid
  %since = sub i64 %mid, %ready
  %some = call i64 @llvm.umax.i64(i64 %own, i64 1)
  %each = udiv i64 %since, %some
  %bound = call i64 @llvm.umin.i64(i64 %each, i64 $SOON)
  %soon = icmp ult i64 %waited, %bound
  br i1 %soon, label %watch, label %lie
lie:
  store atomic i64 1, ptr %waitp seq_cst, align 8
  %seen = load atomic i32, ptr %donep seq_cst, align 4
  %late = icmp eq i32 %seen, %count
  br i1 %late, label %close, label %rest
rest:
  call void @sleep(ptr %donep, i32 %seen)
  br label %lie
close:
  %end = call i64 @now()
  store atomic i64 0, ptr %ownerp release, align 8
  store i64 %own, ptr %minep
  %active = sub i64 %mid, %ready
  store i64 %active, ptr %ownp
  %spent = sub i64 %end, %begin
  store i64 %spent, ptr %spentp
  ret void
}

; The end of all helpers.
define internal void @quit(ptr %crew, i64 %unused) nounwind {
  %stopp = getelementptr i64, ptr %crew, i64 $STOP
  store atomic i64 1, ptr %stopp release, align 8
  %told = atomicrmw add ptr %crew, i32 1 seq_cst, align 4
  call void @wake(ptr %crew, i32 2147483647)
  ret void
}

; Where the functions are.
define void @$ENTRYPOINT(ptr %crew, i64 %unused) nounwind {
  %runp = getelementptr i64, ptr %crew, i64 $RUN
  store ptr @run, ptr %runp
  %servep = getelementptr i64, ptr %crew, i64 $SERVE
  store ptr @serve, ptr %servep
  %quitp = getelementptr i64, ptr %crew, i64 $QUIT
  store ptr @quit, ptr %quitp
  ret void
}
"""
_PATIENCE: Final = 2000
"""Looks of a caller at what helpers have not finished, some microseconds, before it asks whether
that has taken longer than its own chunks did; then it sleeps."""
_LONGER: Final = 1 << 20
"""Further looks of a helper, some tenths of a millisecond, where they are worth it."""
_SOON: Final = 500_000
"""Nanoseconds: a shorter sleep was not worth the waking."""
_TORN: Final = 2_000_000
"""Nanoseconds that no watching takes, unless the system had others run: cores are busy."""
_DEBT: Final = 1 << 13
"""Sleeps for which a helper that found cores busy does not watch for long."""


def known(machine: str) -> bool:
    """Whether helpers can sleep on a machine; as `platform.machine()` says."""
    return machine in _FUTEX


def source(name: str, machine: str) -> str:
    """The module, whose one function writes where `run`, `serve` and `quit` are into the head.

    Args:
        name: that function's name.
        machine: one that is `known`.
    """
    places = {**vars(Head), **vars(Call)}
    return string.Template(_TEXT).substitute(
        places, ENTRYPOINT=name, FUTEX=_FUTEX[machine], SLOT=_SLOT, SLOTS=SLOTS, HEAD=_SLOT,
        PATIENCE=_PATIENCE, LONGER=_LONGER, SOON=_SOON, TORN=_TORN, DEBT=_DEBT,
    )  # fmt: skip
