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
def one_processor(groups: Path = _GROUPS) -> Iterator[None]:
    """The time of one for this process and its children.

    Args:
        groups: where control groups are mounted.
    """
    for parent, limits in (
        (groups, {"cpu.max": f"{_PERIOD} {_PERIOD}"}),  # version 2, and 1
        (groups / "cpu", {"cpu.cfs_period_us": _PERIOD, "cpu.cfs_quota_us": _PERIOD}),
    ):
        group = parent / f"opdock-bench-{os.getpid()}"
        try:
            group.mkdir()
            for name, limit in limits.items():
                _set(group / name, limit)
            _set(group / "cgroup.procs", os.getpid())
        except OSError:
            with contextlib.suppress(OSError):
                group.rmdir()
            continue
        try:
            yield
        finally:
            _set(parent / "cgroup.procs", os.getpid())
            group.rmdir()
        return
    with pinned():
        yield


def _set(file: Path, value: object) -> None:
    """Writes to a file that the kernel has made; one of our own would limit nothing."""
    with file.open("r+", encoding="ascii") as found:
        found.write(str(value))


@contextlib.contextmanager
def pinned() -> Iterator[None]:
    """One processor for this process and its children."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
