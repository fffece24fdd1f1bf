"""The process that has a Ray of this machine in its care, while anybody uses it.

Whichever task begins first would end Ray for all others if it were its parent. So Ray is started by
a process of its own, which watches a lock: everybody who uses Ray holds a share of it, and the
kernel lets go of that when a process ends, however it does.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import ray

__all__ = ["alone", "main", "start", "use"]

_LOOK: Final = 1.0
_ATTEMPTS: Final = 3
_READY: Final = b"ready\n"
_held: list[int] = []
# The host is nobody's child: what begins it ends at once, before Ray has any thread.
_DETACHED: Final = "import os; os.fork() and os._exit(0); import opdock_ray.host as h; h.main()"


def _opened(name: str) -> int:
    path = Path(tempfile.gettempdir()) / f"opdock-ray-{os.getuid()}.{name}"
    return os.open(path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def use() -> None:
    """Keeps the host from ending Ray as long as this process lives."""
    if not _held:
        _held.append(_opened("users"))
        fcntl.flock(_held[0], fcntl.LOCK_SH)


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """While it lasts, no other process looks for Ray, starts it or ends it."""
    lock = _opened("start")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def start() -> None:
    """Starts a host, and waits until its Ray is there.

    Raises:
        RuntimeError: it has ended instead; it has said why on stderr.
    """
    process = subprocess.Popen(
        [sys.executable, "-c", _DETACHED],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None
    with process.stdout as told:
        process.wait()
        if told.readline() != _READY:
            raise RuntimeError("Ray could not be started: see above")


def _start_ray() -> None:
    """Starts Ray, which gives itself half a minute: too little on a machine that is busy."""
    for left in reversed(range(_ATTEMPTS)):
        try:
            ray.init(include_dashboard=False, log_to_driver=False)
        except Exception as e:
            ray.shutdown()
            if not left:
                raise
            print(f"Ray has not started, and is started again: {e}", file=sys.stderr, flush=True)
        else:
            return


def main() -> None:
    """Starts Ray, and ends it when nobody uses it."""
    # Where memory is short Ray ends the processes that are its own, and has the system end them
    # first: of a task's it has but the mailbox, which has none to give back, and without which
    # nobody finds the task.
    os.environ.setdefault("RAY_memory_monitor_refresh_ms", "0")
    os.environ.setdefault("RAY_worker_oom_score_adjustment", "0")
    # And it has them wait for a processor behind all others: whoever asks a task would wait for its
    # mailbox as long as the machine has anything else to do.
    os.environ.setdefault("RAY_worker_niceness", "0")
    _start_ray()
    os.write(1, _READY)
    with open(os.devnull, "wb") as nowhere:
        # Whoever reads what the task that began it prints is not to wait for Ray to end.
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
    users = _opened("users")
    while True:
        time.sleep(_LOOK)
        with alone():
            try:
                fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            ray.shutdown()
            return
