"""A machine that does not belong to the measured library alone."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

WAYS = ("burn", "quota", "tests")
_TESTS = Path(__file__).resolve().parents[1] / "tests" / "core" / "ops"
_GROUPS = Path("/sys/fs/cgroup")
_MEMBERS = "cgroup.procs"
_PERIOD = "100000"
_LIMITS = {
    ".": {"cpu.max": f"{_PERIOD} {_PERIOD}"},
    "cpu": {"cpu.cfs_period_us": _PERIOD, "cpu.cfs_quota_us": _PERIOD},
}


@contextlib.contextmanager
def busy(way: str | None, threads: int) -> Iterator[None]:
    """Makes it so for the processes that are started meanwhile.

    Args:
        way: "burn" for as many processes that only compute as each library has threads; "quota"
            for the time of one processor, whatever the number of threads: by a control group
            where one may be made, else by keeping all on one processor; "tests" for `pytest -n`
            with as many processes as threads, beside. None for none of them.
        threads: of each library.
    """
    if way is None:
        yield
    elif way == "burn":
        with burning(threads):
            yield
    elif way == "tests":
        with testing(threads):
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
def testing(count: int) -> Iterator[None]:
    """Tests of this repository beside, in so many processes, again and again."""
    words = [sys.executable, "-m", "pytest", "-q", "-n", str(count), "-p", "no:cacheprovider"]
    loop = f"while :; do {shlex.join([*words, str(_TESTS)])}; done"
    shell = subprocess.Popen(
        ["/bin/sh", "-c", loop], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    try:
        yield
    finally:
        os.killpg(shell.pid, signal.SIGKILL)
        shell.wait()


@contextlib.contextmanager
def one_processor() -> Iterator[None]:
    """The time of one for this process and its children."""
    group = _group()
    if group is None:
        with pinned():
            yield
        return
    try:
        yield
    finally:
        (group.parent / _MEMBERS).write_text(str(os.getpid()), encoding="ascii")
        group.rmdir()


def _group() -> Path | None:
    """A control group of this process with the time of one processor, if one may be made.

    Of version 2, or of version 1, where processor time has a folder of its own. What is written are
    files that come with the group: a folder without them is none.
    """
    for folder, limits in _LIMITS.items():
        group = _GROUPS / folder / f"opdock-bench-{os.getpid()}"
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            for name, value in {**limits, _MEMBERS: str(os.getpid())}.items():
                with (group / name).open("r+", encoding="ascii") as file:
                    file.write(value)
            return group
        except OSError:
            group.rmdir()
    return None


@contextlib.contextmanager
def pinned() -> Iterator[None]:
    """One processor for this process and its children."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
