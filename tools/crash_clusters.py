"""Kills the tasks of a training at random moments, whatever their role, and starts them anew.

    python tools/crash_clusters.py --kills 100 --seed 1

One parameter server and two workers train over `opdock-ray`, each a process that gets SIGKILL when
the seed says so, some time after training has gone on from the last one. Nothing else is done about
it: monitored sessions recover by themselves, from the last checkpoint where the server died. The
cluster may stand still for `LIMIT` seconds at most; at the end its loss must be that of a training
that nobody has disturbed, and no process and no shared memory may be left.

Tasks are forked from a process that has imported what they need and done nothing else, so that what
a kill costs is the cluster's recovery and not the start of Python.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import multiprocessing
import os
import signal
import socket
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import numpy as np

LIMIT = 30.0
"""Seconds without a step, with all processes there, after which the cluster counts as hanging.

Time in which the machine's other work keeps any of its threads from a processor is none of them:
it is looked at every `_PORTION` seconds, as one process after the other may have to wait."""
START = 90.0
"""Seconds in which a process has to be there."""
LAST = 300
"""Steps after the last kill."""
TOLERANCE = 1e-3
_LAST_WORDS = 60.0  # seconds in which tasks write down what they are doing, or go on after all
_PORTION = 0.5
_ON_ITS_WAY = 0.2  # seconds in which what was printed before is read
ROLES = (("ps", 0), ("worker", 0), ("worker", 1))
NAMES = {("ps", 0): "parameter server", ("worker", 0): "chief", ("worker", 1): "worker"}
PACE = 0.05
"""Seconds between two steps of a worker: those who wait for a task leave it the processor."""

_forks = multiprocessing.get_context("forkserver")
_forks.set_forkserver_preload(
    [
        "opdock.kernels.portable.training", "opdock.train.gradient_descent",
        "opdock.train.loops.monitored_session", "opdock.train.server_lib", "opdock_cpu.device",
        "opdock_cpu.jit.generated", "opdock_cpu.kernels", "opdock_ray.engine",
    ]
)  # fmt: skip
_started: set[int] = set()
"""The processes of all tasks."""


# ---------------------------------------------------------------- the program
def work(job: str, index: int, addresses: list[str], folder: Path, out: Connection) -> None:
    """What each task runs: a regression whose best loss is not zero."""
    import opdock as tf

    log = os.open(folder / f"{job}{index}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for stream, handle in enumerate((os.open(os.devnull, os.O_RDONLY), out.fileno(), log)):
        os.dup2(handle, stream)
    out.close()
    cluster = tf.train.ClusterSpec({"ps": addresses[:1], "worker": addresses[1:]})
    server = tf.train.Server(cluster, job_name=job, task_index=index)
    faulthandler.register(signal.SIGUSR1, all_threads=True)  # Ray takes all signals for itself
    print("up", flush=True)
    if job == "ps":
        server.join()
    own = f"/job:worker/task:{index}"
    with tf.device(tf.train.replica_device_setter(worker_device=own, cluster=cluster)):
        rng = np.random.RandomState(0)
        x = rng.standard_normal([64, 4]).astype(np.float32)
        y = x.sum(1, keepdims=True) + rng.standard_normal([64, 1]).astype(np.float32)
        w = tf.get_variable("w", [4, 1], initializer=tf.zeros_initializer())
        loss = tf.reduce_mean(tf.square(tf.matmul(tf.constant(x), w) - y))
        step = tf.train.get_or_create_global_step()
        train = tf.train.MomentumOptimizer(0.02, 0.5).minimize(loss, global_step=step)
    config = tf.ConfigProto(device_filters=["/job:ps", own])
    with tf.train.MonitoredTrainingSession(
        server.target, index == 0, str(folder / "checkpoints"), config=config,
        save_checkpoint_steps=50, log_step_count_steps=None, save_summaries_steps=None,
        save_summaries_secs=None,
    ) as session:  # fmt: skip
        while not (folder / "stop").exists():
            at, now, _ = session.run([step, loss, train])
            print(at, now, flush=True)
            time.sleep(PACE)


# ---------------------------------------------------------------- the cluster
class Cluster:
    """The tasks, and how far they are.

    Args:
        folder: for checkpoints and logs.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir()
        sockets = [socket.socket() for _ in ROLES]
        for found in sockets:
            found.bind(("localhost", 0))
        self._addresses = [f"localhost:{found.getsockname()[1]}" for found in sockets]
        for found in sockets:
            found.close()
        self._changed = threading.Condition()
        self.steps = 0
        self.loss = float("nan")
        self._tasks: dict[tuple[str, int], ForkServerProcess] = {}
        self._up: set[ForkServerProcess] = set()
        for role in ROLES:
            self.start(role)

    def start(self, role: tuple[str, int]) -> None:
        """Starts a task."""
        told, out = _forks.Pipe(duplex=False)
        task = self._tasks[role] = _forks.Process(
            target=work, args=(*role, self._addresses, self._folder, out)
        )
        task.start()
        assert task.pid is not None
        _started.add(task.pid)
        out.close()
        threading.Thread(target=self._follow, args=(task, told), daemon=True).start()

    def _follow(self, task: ForkServerProcess, told: Connection) -> None:
        for line in os.fdopen(os.dup(told.fileno())):
            words = line.split()
            with self._changed:
                if words == ["up"]:
                    self._up.add(task)
                elif len(words) == 2 and words[0].isdigit():
                    self.steps += 1
                    self.loss = float(words[1])
                self._changed.notify_all()

    def advance(self, count: int) -> float:
        """Waits for so many steps more; the seconds that the first of them took.

        Raises:
            TimeoutError: all processes are there, and the cluster stands still.
        """
        begin, first = time.monotonic(), 0.0
        for i in range(count):
            before = self.steps
            # How long Python and Ray need to start is the machine's.
            self._wait(START, lambda b=before: self.steps > b or self._all_up())
            self._wait(LIMIT, lambda b=before: self.steps > b)
            first = first if i else time.monotonic() - begin
        return first

    def _all_up(self) -> bool:
        return all(task in self._up for task in self._tasks.values())

    def _wait(self, limit: float, ready: Callable[[], bool]) -> None:
        begin, given = time.monotonic(), 0.0
        with self._changed:
            if self._changed.wait_for(ready, _PORTION):
                return  # nobody asks who waited: that costs more than a step
        waits = self._waits()
        while given < limit:
            at = time.monotonic()
            with self._changed:
                if self._changed.wait_for(ready, _PORTION):
                    return
            for role, task in self._tasks.items():
                if task.exitcode is not None:
                    raise RuntimeError(
                        f"{NAMES[role]} ended by itself with {task.exitcode}; see {self._folder}"
                    )
            before, waits = waits, self._waits()
            starved = max((waits[t] - before.get(t, 0.0) for t in waits), default=0.0)
            given += max(time.monotonic() - at - starved, 0.0)
        for task in self._tasks.values():
            os.kill(task.pid, signal.SIGUSR1)  # its log has what it is doing
        with self._changed:
            late = self._changed.wait_for(ready, _LAST_WORDS)
        whole, after = time.monotonic() - begin, "it went on" if late else "nothing"
        told = f"{limit:.0f} s of {whole:.0f}, then {after}"
        raise TimeoutError(f"no step for {told}; see {self._folder}")

    def _waits(self) -> dict[tuple[str, str], float]:
        """For how many seconds each thread of each task, and of Ray, has waited for a processor."""
        found: dict[tuple[str, str], float] = {}
        of_ray = {line.partition(" ")[0] for line in left() if line[0].isdigit()}
        for process in of_ray | {str(task.pid) for task in self._tasks.values()}:
            for thread in Path(f"/proc/{process}/task").glob("*/schedstat"):
                with contextlib.suppress(OSError):
                    found[process, thread.parent.name] = int(thread.read_text().split()[1]) / 1e9
        return found

    def kill(self, role: tuple[str, int]) -> None:
        """Ends a task as nothing else does."""
        self._tasks[role].kill()
        self._tasks[role].join()

    def end(self) -> None:
        """Has workers end by themselves, and then the server.

        Raises:
            TimeoutError: one does not.
        """
        (self._folder / "stop").touch()
        try:
            for role in ROLES[1:]:
                # A worker that finds nothing initialized looks again after half a minute.
                self._tasks[role].join(START)
                if self._tasks[role].exitcode is None:
                    raise TimeoutError(f"{NAMES[role]} does not end; see {self._folder}")
        finally:
            for task in self._tasks.values():
                task.kill()
                task.join()


def undisturbed(folder: Path) -> float:
    """The loss of a training in peace."""
    cluster = Cluster(folder)
    try:
        cluster.advance(1)
        cluster.advance(LAST)
    finally:
        cluster.end()
    return cluster.loss


def crash(kills: int, seed: int, minutes: float, folder: Path) -> tuple[float, dict[Any, Any]]:
    """The loss of a training with kills, and how long the cluster stood still after each."""
    rng = np.random.RandomState(seed)
    order = [role for role in ROLES for _ in range(kills)]
    order = [order[i] for i in rng.permutation(len(order))]
    stood: dict[tuple[str, int], list[float]] = {role: [] for role in ROLES}
    until = time.monotonic() + 60 * minutes
    cluster = Cluster(folder)
    try:
        cluster.advance(1)
        for number, role in enumerate(order, 1):
            if time.monotonic() > until:
                break
            time.sleep(rng.uniform(0, 2))
            print(f"{number} of {len(order)}: {NAMES[role]}", end="", flush=True)
            cluster.kill(role)
            cluster.start(role)
            time.sleep(_ON_ITS_WAY)
            stood[role].append(_ON_ITS_WAY + cluster.advance(1))
            print(f", {stood[role][-1]:.1f} s", flush=True)
        cluster.advance(LAST)
    finally:
        cluster.end()
    return cluster.loss, stood


# ---------------------------------------------------------------- what is left
def left() -> set[str]:
    """Processes of Ray and of this program, and shared memory."""
    found = {str(p) for p in (Path("/dev") / "shm").iterdir()}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            line = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if (
            "ray::" in line
            or "default_worker" in line
            or "opdock_ray.host" in line
            or "raylet" in line
            or int(process.name) in _started
        ):
            found.add(f"{process.name} {line[:80]}")
    return found


def main() -> int:
    """The command."""
    p = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    p.add_argument("--kills", type=int, default=10, help="of each role")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--minutes", type=float, default=1e9, help="begin no kill after so long")
    args = p.parse_args()
    before = left()
    folder = Path(tempfile.mkdtemp(prefix="opdock-crash-"))
    expected = undisturbed(folder / "undisturbed")
    loss, stood = crash(args.kills, args.seed, args.minutes, folder / "disturbed")
    for role, times in stood.items():
        if times:
            print(
                f"{NAMES[role]}: {len(times)} kills, no step for {statistics.median(times):.1f} s, "
                f"{max(times):.1f} s at most"
            )
    until = time.monotonic() + LIMIT
    while (rest := left() - before) and time.monotonic() < until:
        time.sleep(0.5)  # Ray ends when it notices that nobody uses it
    for name in sorted(rest):
        print(f"left: {name}")
    near = abs(loss - expected) <= TOLERANCE * expected
    print(f"loss {loss:.6f}, undisturbed {expected:.6f}: {'the same' if near else 'another'}")
    return 0 if near and not rest else 1


if __name__ == "__main__":
    sys.exit(main())
