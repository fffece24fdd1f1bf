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
SLIDES = Path(__file__).with_name("slides.py")
SEEDS = Path(__file__).parents[2] / "programs" / "seeds"
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


def launched(*arguments: str | Path) -> str:
    """What the tasks of a cluster print, all of which have to end well."""
    run = subprocess.run(
        [sys.executable, "-m", "opdock.cli.main", "launch", *map(str, arguments)],
        capture_output=True, text=True,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


def test_a_program_of_three_processes_as_it_stands():
    printed = launched("--ps", 1, "--workers", 2, "--flags", TRAIN, "--steps=12")
    assert "[worker 0] done" in printed
    assert "[worker 1] done" in printed
    # Both took steps of one count.
    assert max(map(int, re.findall(r"step (\d+)", printed))) >= 11


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("000_supervisor", r"W: \[1\.999\d*\] b: \[-0\.499\d*\]"),
        ("000_multiple_gpus", r"98\. 128\.\]\]"),
        ("003_data_parallelism", None),
        ("003_model_parallelism", None),
    ],
)
def test_the_slides_programs_in_three_processes(program, words):
    """They know nothing of clusters: each process runs the whole of them."""
    printed = launched("--ps", 0, "--workers", 3, SEEDS / f"{program}.py")
    for index in range(3) if words else ():
        assert re.search(rf"\[worker {index}\].*{words}", printed), printed


@pytest.mark.parametrize(
    ("pattern", "results"),
    [
        ("data_parallelism", "/job:ps/task:1 True"),
        ("model_parallelism", "[[31.0, 31.0], [1.0, 1.0]] True"),
    ],
)
def test_one_program_spreads_over_tasks_as_in_the_slides(pattern, results):
    printed = launched("--ps", 2, "--workers", 1, "--flags", SLIDES, f"--pattern={pattern}")
    assert f"[worker 0] done {results}" in printed


def replicas(pattern: str, steps: int) -> tuple[list[int], list[np.ndarray]]:
    """How far the count of steps and the weights are for each of two workers when it ends."""
    printed = launched(
        "--ps", 1, "--workers", 2, "--flags", SLIDES, f"--pattern={pattern}", f"--steps={steps}"
    )
    ended = re.findall(r"\[worker \d\] done (\d+) \[(.*)\]", printed)
    assert len(ended) == 2, printed
    return [int(n) for n, _ in ended], [np.array(w.split(", "), float) for _, w in ended]


def test_workers_in_step_train_as_one_with_the_whole_batch():
    steps = 40
    counts, weights = replicas("synchronous", steps)
    x, w = np.random.RandomState(0).randn(64, 3), np.zeros(3)
    for _ in range(steps):
        w -= 0.1 * 2 * x.T @ (x @ w - x.sum(1)) / len(x)
    assert counts == [steps] * 2
    np.testing.assert_allclose(weights, [w] * 2, rtol=1e-5)


def test_workers_train_one_model_each_at_its_own_pace():
    counts, weights = replicas("asynchronous", 100)
    assert max(counts) == 200
    # Who ends first may see what the other's first step has added late: its gradient was taken when
    # nothing was learned yet. After all steps of both it is made up for.
    ended = [w for count, w in zip(counts, weights, strict=True) if count == 200]
    np.testing.assert_allclose(ended, np.ones([len(ended), 3]), rtol=1e-4)


def test_an_estimator_trains_and_evaluates(tmp_path):
    program = Path(__file__).with_name("estimate.py")
    printed = launched("--chief", "--evaluator", program, tmp_path)
    for task in ("chief", "worker", "evaluator"):
        assert f"[{task} 0] done {task}" in printed
    losses = re.findall(r"evaluator 0\].*Saving dict.*loss = ([^,\s]+)", printed)
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


def mailbox_of(address: str) -> int:
    """The process that takes a task's mail."""
    mailbox = ray.get_actor(address, namespace="opdock")
    process: int = ray.get(mailbox.__ray_call__.remote(lambda _: os.getpid()))
    return process


def test_a_mailbox_gets_a_processor_as_soon_as_its_task():
    addresses = {"ps": free_addresses(1), "worker": free_addresses(1)}
    server = tf.train.Server(addresses, job_name="worker")
    process = mailbox_of(server.target.removeprefix("grpc://"))
    assert os.getpriority(os.PRIO_PROCESS, process) == os.getpriority(os.PRIO_PROCESS, 0)


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
            process = mailbox_of(tasks.addresses["ps"][0])
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
