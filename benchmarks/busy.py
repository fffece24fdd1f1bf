"""A machine that does not belong to the measured library alone."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

WAYS = ("burn", "quota")
_GROUPS = Path("/sys/fs/cgroup")
_PERIOD = 100_000


@contextlib.contextmanager
def busy(way: str | None, threads: int) -> Iterator[None]:
    """Makes it so for the processes that are started meanwhile.

    Args:
        way: "burn" for as many processes that only compute as each library has threads; "quota"
            for the time of one processor, whatever the number of threads: by a control group
            where one may be made, else by keeping all on one processor. None for neither.
        threads: of each library.
    """
    if way is None:
        yield
    elif way == "burn":
        with burning(threads):
            yield
    else:
        with one_processor():
            yield


@contextlib.contextmanager
def burning(count: int) -> Iterator[None]:
    """So many processes beside, which never wait."""
    words = [sys.executable, "-c", "while True: pass"]
    processes = [subprocess.Popen(words) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


@contextlib.contextmanager
def one_processor() -> Iterator[None]:
    """The time of one for this process and its children."""
    group = _GROUPS / f"opdock-bench-{os.getpid()}"
    try:
        group.mkdir()
        (group / "cpu.max").write_text(f"{_PERIOD} {_PERIOD}", encoding="ascii")
        (group / "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")
    except OSError:
        with contextlib.suppress(OSError):
            group.rmdir()
        with pinned():
            yield
        return
    try:
        yield
    finally:
        (_GROUPS / "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")
        group.rmdir()


@contextlib.contextmanager
def pinned() -> Iterator[None]:
    """One processor for this process and its children."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
