"""Training on a cluster beside TensorFlow's own runtime: a parameter server and two workers.

    python benchmarks/clusters.py mlp_async --turns 3

Each task is a process. The very same program (`work`) runs on opdock over Ray and on TensorFlow's
`tensorflow.compat.v1` over gRPC, in turns. A worker trains for some seconds after the steps that
compile; what counts is the steps of all workers together, the bytes that cross for each, and the
time that all tasks have a processor for each, which says more where a machine has other work.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

WARM = 20
LONGEST = 300


# ---------------------------------------------------------------- the program
def dense(tf: Any, x: Any, width: int, activation: Callable[[Any], Any] = lambda y: y) -> Any:
    """A layer, of what every version of TensorFlow has."""
    with tf.variable_scope(f"dense{width}"):
        w = tf.get_variable("w", [int(x.shape[-1]), width])
        b = tf.get_variable("b", [width], initializer=tf.zeros_initializer())
        return activation(tf.matmul(x, w) + b)


def mlp(tf: Any) -> Any:
    """The loss of a multilayer perceptron on a batch of 64: 0.9 MB of variables."""
    x, y = tf.random_normal([64, 784], seed=1), tf.zeros([64], tf.int32)
    hidden = dense(tf, dense(tf, x, 256, tf.nn.relu), 128, tf.nn.relu)
    logits = dense(tf, hidden, 10)
    return tf.reduce_mean(tf.losses.sparse_softmax_cross_entropy(y, logits))


def convnet(tf: Any) -> Any:
    """The loss of a convolutional network on a batch of 32: 1.7 MB of variables."""
    x, y = tf.random_normal([32, 28, 28, 1], seed=1), tf.zeros([32], tf.int32)
    for channels in (32, 64):
        shape = [3, 3, int(x.shape[-1]), channels]
        kernel = tf.get_variable(f"kernel{channels}", shape)
        bias = tf.get_variable(f"bias{channels}", [channels], initializer=tf.zeros_initializer())
        x = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, kernel, [1, 1, 1, 1], "SAME"), bias))
        x = tf.nn.max_pool(x, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
    hidden = dense(tf, tf.reshape(x, [32, 7 * 7 * 64]), 128, tf.nn.relu)
    return tf.reduce_mean(tf.losses.sparse_softmax_cross_entropy(y, dense(tf, hidden, 10)))


def empty(tf: Any, device: Callable[[], Any]) -> Any:
    """A step that goes to the server and back, and does nothing."""
    with tf.device("/job:ps/task:0"):
        return tf.no_op()


def trained(tf: Any, loss: Any, synchronous: bool, workers: int) -> tuple[Any, list[Any], Any]:
    """The op of a step, hooks and the count of the steps."""
    step = tf.train.get_or_create_global_step()
    optimizer = tf.train.GradientDescentOptimizer(0.001)
    if not synchronous:
        return optimizer.minimize(loss, global_step=step), [], step
    together = tf.train.SyncReplicasOptimizer(optimizer, workers, workers)
    train = together.minimize(loss, global_step=step)
    return train, [together], step


MODELS = {"mlp": mlp, "convnet": convnet}
WORKLOADS = ("empty", "mlp_async", "mlp_sync", "convnet_async", "convnet_sync")


def work(tf: Any, workload: str, cluster: Any, job: str, index: int, seconds: float) -> None:
    """What each task runs: as a program of one process a task is written."""
    server = tf.train.Server(cluster, job_name=job, task_index=index)
    if job == "ps":
        server.join()
    name, _, kind = workload.partition("_")
    workers = cluster.num_tasks("worker")
    setter = tf.train.replica_device_setter(
        cluster=cluster, worker_device=f"/job:worker/task:{index}"
    )
    hooks: list[Any] = []
    with tf.device(setter):
        if name == "empty":
            train = empty(tf, setter)
            tf.train.get_or_create_global_step()
        else:
            train, optimizers, _ = trained(tf, MODELS[name](tf), kind == "sync", workers)
            hooks = [o.make_session_run_hook(index == 0, num_tokens=0) for o in optimizers]
        ready = tf.get_variable("ready", [], tf.int32, tf.zeros_initializer(), trainable=False)
        arrive = ready.assign_add(1, use_locking=True)
        missing = tf.report_uninitialized_variables(tf.global_variables())
    config = tf.ConfigProto(device_filters=["/job:ps", f"/job:worker/task:{index}"])
    if index:  # the chief makes the variables; looked for sooner than sessions do by themselves
        with tf.Session(server.target, config=config) as early:
            while len(early.run(missing)):
                time.sleep(0.1)
    with tf.train.MonitoredTrainingSession(
        server.target, index == 0, hooks=hooks, config=config, save_summaries_steps=None,
        save_summaries_secs=None, log_step_count_steps=None,
    ) as session:  # fmt: skip
        for _ in range(WARM):
            session.run(train)
        plain = session if kind == "sync" else session._tf_sess()
        plain.run(arrive)
        while plain.run(ready) < workers:  # all measure at the same time
            time.sleep(0.01)
        crossed, cpu, begin = crossing(), spent(), time.monotonic()
        count, took = counted(lambda: plain.run(train), seconds)
        bytes_ = [now - then for now, then in zip(crossing(), crossed, strict=True)]
        found = {"steps": count, "seconds": took - begin, "bytes": bytes_, "cpu": spent() - cpu}
        print(json.dumps(found), flush=True)
        os._exit(0)  # the other may still be waiting for gradients


def counted(step: Callable[[], object], seconds: float) -> tuple[int, float]:
    """How many steps end within so many seconds, and when the last of them did.

    They are taken by another thread: a synchronous step that the others no longer take part in
    does not end.
    """
    ended = [time.monotonic()]

    def take() -> None:
        while True:
            step()
            ended.append(time.monotonic())

    threading.Thread(target=take, daemon=True).start()
    time.sleep(seconds)
    found = list(ended)
    return len(found) - 1, found[-1]


def spent() -> float:
    """Seconds of a processor that all tasks of the cluster have had, whose parent is one."""
    total = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it ends meanwhile
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[1]) == os.getppid():
                total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


def crossing() -> tuple[int, int]:
    """Bytes by now over the loopback interface, of all tasks, and by this task's reads and writes.

    Ray's links are read and written; what gRPC sends goes over the interface and is not in there.
    """
    counts = [line.split() for line in Path("/proc/net/dev").read_text().splitlines()]
    own = dict(line.split(":") for line in Path("/proc/self/io").read_text().splitlines())
    return sum(int(c[1]) for c in counts if c[0] == "lo:"), int(own["rchar"]) + int(own["wchar"])


# ---------------------------------------------------------------- many processes
def run(library: str, python: str, workload: str, seconds: float, workers: int) -> dict[str, float]:
    """Steps a second of the whole cluster, milliseconds a step of a worker, and bytes a step."""
    from opdock.cli.launch import free_addresses

    cluster = {"ps": free_addresses(1), "worker": free_addresses(workers)}
    env = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
    line = [python, __file__, "--work", library, workload, json.dumps(cluster)]
    tasks: list[subprocess.Popen[str]] = []
    with tempfile.TemporaryFile("w+") as told:
        try:
            for job, addresses in cluster.items():
                for index in range(len(addresses)):
                    tasks.append(
                        subprocess.Popen(
                            [*line, job, str(index), str(seconds)], env=env, text=True,
                            stdin=subprocess.DEVNULL, stderr=told,
                            stdout=subprocess.DEVNULL if job == "ps" else subprocess.PIPE,
                        )
                    )  # fmt: skip
            answers = [t.communicate(timeout=LONGEST)[0] for t in reversed(tasks[1:])]
        finally:
            for task in tasks:
                task.kill()
                task.wait()
        told.seek(0)
        if any(t.returncode for t in tasks[1:]):
            raise SystemExit(f"{library} {workload} has failed:\n{told.read()[-4000:]}")
    found = [json.loads(a.splitlines()[-1]) for a in answers]
    steps = sum(f["steps"] / f["seconds"] for f in found)
    count = sum(f["steps"] for f in found)
    crossed = statistics.mean(f["bytes"][0] for f in found) + sum(f["bytes"][1] for f in found)
    cpu = statistics.mean(f["cpu"] for f in found)
    return {
        "rate": steps, "ms": workers * 1e3 / steps, "bytes": crossed / count,
        "cpu": 1e3 * cpu / count,
    }  # fmt: skip


def table(rows: dict[str, dict[str, dict[str, float]]]) -> str:
    """The results as Markdown."""
    kinds = {"ms": "ms a step", "cpu": "processor ms a step", "bytes": "kB a step"}
    head = ["workload", *(f"{side}, {what}" for what in kinds.values()
                          for side in ("opdock", "TensorFlow")), "times as fast",
            "processor time"]  # fmt: skip
    lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    for name, found in rows.items():
        own, peer = found["opdock"], found.get("tensorflow")
        cells = [name]
        for kind in kinds:
            scale = 1e3 if kind == "bytes" else 1.0
            cells += [f"{f[kind] / scale:,.2f}" if f else "" for f in (own, peer)]
        if peer is not None:
            cells += [f"{own['rate'] / peer['rate']:.2f}", f"{own['cpu'] / peer['cpu']:.2f}"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """The command."""
    p = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    p.add_argument("workloads", nargs="*", default=[], help=", ".join(WORKLOADS))
    p.add_argument("--peer", metavar="tensorflow=PYTHON")
    p.add_argument("--turns", type=int, default=3)
    p.add_argument("--seconds", type=float, default=5.0)
    p.add_argument("--workers", type=int, default=2)
    p.add_argument("--work", nargs=6, help=argparse.SUPPRESS)
    args = p.parse_args()
    if args.work:
        _work(*args.work)
        return
    sides = {"opdock": sys.executable}
    if args.peer:
        library, _, python = args.peer.partition("=")
        sides[library] = python
    rows: dict[str, dict[str, dict[str, float]]] = {}
    for workload in args.workloads or WORKLOADS:
        found: dict[str, list[dict[str, float]]] = {side: [] for side in sides}
        for _ in range(args.turns):
            for side, python in sides.items():
                found[side].append(run(side, python, workload, args.seconds, args.workers))
        rows[workload] = {
            side: {key: statistics.median(f[key] for f in all_) for key in all_[0]}
            for side, all_ in found.items()
        }
        print(workload, json.dumps(rows[workload]), flush=True)
    print(table(rows))


def _work(*told: str) -> None:
    library, workload, cluster, job, index, seconds = told
    if library == "opdock":
        import opdock as tf
    else:
        import tensorflow.compat.v1 as tf

        tf.disable_v2_behavior()
    np.random.seed(int(index))
    tf.logging.set_verbosity(tf.logging.ERROR)
    work(tf, workload, tf.train.ClusterSpec(json.loads(cluster)), job, int(index), float(seconds))


if __name__ == "__main__":
    main()
