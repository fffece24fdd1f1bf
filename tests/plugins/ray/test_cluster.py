"""Clusters of several processes over a Ray of this machine."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import ray

import opdock as tf
from opdock.cli.launch import free_addresses
from opdock.runtime.cluster import peers

TRAIN = Path(__file__).with_name("train.py")
SILENCE = "4"


@pytest.fixture(scope="module", autouse=True)
def engine():
    """Ray lives as long as one of its users: this process is one."""
    found = peers.engine("ray")
    assert found is not None
    found._join()
    return found


class Cluster:
    """Processes that run the program, one a task."""

    def __init__(self, ps: int, workers: int, *arguments: str) -> None:
        self.addresses = {"ps": free_addresses(ps), "worker": free_addresses(workers)}
        hosts = [f"--{job}_hosts={','.join(names)}" for job, names in self.addresses.items()]
        self._line = [
            sys.executable,
            "-m",
            "opdock.cli.main",
            "run",
            str(TRAIN),
            *hosts,
            *arguments,
        ]
        self.started: list[subprocess.Popen[str]] = []

    def start(self, job: str, index: int) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [*self._line, f"--job_name={job}", f"--task_index={index}"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env={**os.environ, "OPDOCK_RAY_SILENCE": SILENCE},
        )  # fmt: skip
        self.started.append(process)
        return process


@pytest.fixture
def cluster() -> Iterator[type[Cluster]]:
    made: list[Cluster] = []

    def make(*arguments) -> Cluster:
        made.append(Cluster(*arguments))
        return made[-1]

    yield make
    for process in (p for c in made for p in c.started):
        process.kill()
        process.communicate()


def until(process: subprocess.Popen[str], words: str) -> list[str]:
    """What a process prints until a line has some words."""
    lines: list[str] = []
    for line in process.stdout:
        lines.append(line)
        if re.search(words, line):
            return lines
    raise AssertionError(f"ended without {words!r}:\n{''.join(lines)}")


@pytest.mark.timeout(290)  # a worker looks every 30 s whether the chief has made the variables
def test_a_program_of_three_processes_as_it_stands():
    run = subprocess.run(
        [sys.executable, "-m", "opdock.cli.main", "launch", "--ps", "1", "--workers", "2",
         "--flags", str(TRAIN), "--steps=12"],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout + run.stderr
    assert "[worker 0] done" in run.stdout
    assert "[worker 1] done" in run.stdout
    # Both took steps of one count.
    assert max(map(int, re.findall(r"step (\d+)", run.stdout))) >= 11


@pytest.mark.timeout(290)
def test_an_estimator_trains_and_evaluates(tmp_path):
    program = Path(__file__).with_name("estimate.py")
    run = subprocess.run(
        [sys.executable, "-m", "opdock.cli.main", "launch", "--chief", "--evaluator", str(program),
         str(tmp_path)],
        capture_output=True, text=True, timeout=280,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout + run.stderr
    for task in ("chief", "worker", "evaluator"):
        assert f"[{task} 0] done {task}" in run.stdout
    losses = re.findall(r"evaluator 0\].*Saving dict.*loss = ([^,\s]+)", run.stdout)
    assert float(losses[-1]) < 1e-3


def test_training_goes_on_when_a_server_is_killed_and_started_again(cluster, tmp_path):
    tasks = cluster(1, 1, f"--checkpoints={tmp_path}", "--steps=100000")
    ps, worker = tasks.start("ps", 0), tasks.start("worker", 0)
    until(worker, r"step 1\d\b")
    ps.kill()
    ps.wait()
    tasks.start("ps", 0)
    # The session is made anew, from the last checkpoint.
    until(worker, "session made")
    again = until(worker, r"step \d+")[-1]
    assert int(again.split()[-1]) >= 5
    assert worker.poll() is None


def test_what_crosses_between_processes_and_what_errors_say(cluster):
    tasks = cluster(1, 1)
    ps = tasks.start("ps", 0)
    addresses = tasks.addresses
    server = tf.train.Server(addresses, job_name="worker", task_index=0)
    with tf.Graph().as_default():
        with tf.device("/job:ps"):
            v = tf.Variable(np.arange(300_000, dtype=np.float32))
            words = tf.placeholder(tf.string, [None])
            longer = tf.string_join([words, "!"])
            index = tf.placeholder(tf.int32, [])
            bad = tf.gather([1, 2], index, name="bad")
        with tf.device("/job:worker"):
            total, result = tf.reduce_sum(v * 2.0), bad + 1
        with tf.Session(server.target) as sess:
            sess.run(v.initializer)
            assert sess.run(total) == pytest.approx(2 * np.arange(3e5).sum(), rel=1e-4)
            assert sess.run(longer, {words: [b"a", b"\xff"]}).tolist() == [b"a!", b"\xff!"]
            with pytest.raises(tf.errors.InvalidArgumentError, match="From /job:ps") as told:
                sess.run(result, {index: 5})
            assert told.value.op is bad.op
            # A task that hangs is given up, and one that died is known to have.
            ps.send_signal(signal.SIGSTOP)
            with pytest.raises(tf.errors.UnavailableError, match="nothing was heard"):
                sess.run(total)
            ps.kill()
            ps.wait()
            with pytest.raises(tf.errors.UnavailableError, match="its process has ended"):
                sess.run(total)
    config = tf.ConfigProto(operation_timeout_in_ms=500)
    with pytest.raises(
        tf.errors.DeadlineExceededError, match=rf"/job:ps.* at {addresses['ps'][0]} has not"
    ):
        tf.Session(server.target, config=config)
    with pytest.raises(tf.errors.UnknownError, match="in use"):
        tf.train.Server(addresses, job_name="worker", task_index=0)


def test_a_task_whose_mailbox_ray_has_ended_gets_another(cluster):
    tasks = cluster(1, 1)
    tasks.start("ps", 0)
    server = tf.train.Server(tasks.addresses, job_name="worker", task_index=0)
    with tf.Graph().as_default():
        with tf.device("/job:ps"):
            v = tf.get_variable("v", initializer=2.0)
        with tf.device("/job:worker"):
            doubled = v * 2.0
        with tf.Session(server.target) as sess:
            sess.run(v.initializer)
            mailbox = ray.get_actor(tasks.addresses["ps"][0], namespace="opdock")
            process = ray.get(mailbox.__ray_call__.remote(lambda _: os.getpid()))
            os.kill(process, signal.SIGKILL)  # as a system does that has no memory left
            with pytest.raises(tf.errors.UnavailableError):
                while sess.run(doubled) == 4.0:
                    pass
        with tf.Session(server.target) as sess:
            assert sess.run(doubled) == 4.0  # the task itself has all that it had


# Python, and JAX where it is installed, warn of forks beside threads: that is what is tried.
@pytest.mark.filterwarnings("ignore:.*fork:RuntimeWarning", "ignore:.*fork:DeprecationWarning")
def test_a_child_of_fork_is_told_that_ray_is_its_parent_s(engine):
    reads, writes = os.pipe()
    child = os.fork()
    if not child:
        try:
            engine.connect("localhost:1")
        except tf.errors.FailedPreconditionError as e:
            os.write(writes, e.message.encode())
        finally:
            os._exit(0)
    os.close(writes)
    os.waitpid(child, 0)
    with os.fdopen(reads) as told:
        assert "'spawn'" in told.read()
    with pytest.raises(tf.errors.UnavailableError, match="no actor"):
        engine.connect("localhost:1")
