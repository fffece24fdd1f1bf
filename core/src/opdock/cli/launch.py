"""`opdock launch`: starts the tasks of a cluster on this machine, one process each."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Final

import click

from opdock.cli._command import Command

_PATIENCE: Final = 10.0


@click.command(
    "launch", cls=Command, options_metavar="[OPTIONS]",
    context_settings={"ignore_unknown_options": True},
    example="opdock launch --ps 0 --workers 1 train.py --steps 3",
    status="0 if all workers ended well; that of the first task that failed; 2 for a wrong option; "
    "130 after Ctrl-C.",
)  # fmt: skip
@click.option("--ps", default=1, show_default=True, help="How many parameter servers.")
@click.option("--workers", default=1, show_default=True, help="How many workers.")
@click.option("--chief", is_flag=True, help="A chief beside the workers, as estimators want it.")
@click.option("--evaluator", is_flag=True, help="A task that evaluates, and is not of the cluster.")
@click.option(
    "--flags", is_flag=True,
    help="Append --job_name, --task_index, --ps_hosts and --worker_hosts to the arguments.",
)  # fmt: skip
@click.argument("script")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(
    ps: int, workers: int, chief: bool, evaluator: bool, flags: bool, script: str,
    arguments: tuple[str, ...],
) -> None:  # fmt: skip
    """Run a distributed program: `opdock launch --ps 1 --workers 2 train.py --steps 100`.

    Each task is a process that runs the program as `opdock run` does, and finds in TF_CONFIG the
    cluster and which task it is. Programs that want flags get them with --flags. What the tasks
    print has their names in front.

    The cluster ends when all tasks but the parameter servers have, or as soon as one fails; its
    exit status is that task's. Tasks reach each other through a cluster engine, which a plugin
    brings.
    """
    cluster = {
        "ps": free_addresses(ps),
        "chief": free_addresses(chief),
        "worker": free_addresses(workers),
    }
    cluster = {job: tasks for job, tasks in cluster.items() if tasks}
    if not workers + chief:
        raise click.UsageError("a cluster needs a worker")
    line = [sys.executable, "-m", "opdock.cli._launched", str(os.getpid()), script, *arguments]
    tasks = [
        _Task(job, index, [*line, *(_flags(cluster, job, index) if flags else ())], cluster)
        for job, addresses in cluster.items()
        for index in range(len(addresses))
    ]
    if evaluator:
        tasks.append(_Task("evaluator", 0, line, cluster))
    sys.exit(_watch(tasks))


def free_addresses(count: int) -> list[str]:
    """Addresses of this machine that nobody has."""
    sockets = [socket.socket() for _ in range(count)]
    for found in sockets:
        found.bind(("localhost", 0))
    names = [f"localhost:{found.getsockname()[1]}" for found in sockets]
    for found in sockets:
        found.close()
    return names


def _flags(cluster: Mapping[str, Sequence[str]], job: str, index: int) -> list[str]:
    hosts = [f"--{name}_hosts={','.join(cluster.get(name, ()))}" for name in ("ps", "worker")]
    return [f"--job_name={job}", f"--task_index={index}", *hosts]


class _Task:
    """A process of the cluster."""

    def __init__(
        self, job: str, index: int, line: Sequence[str], cluster: Mapping[str, Sequence[str]]
    ) -> None:
        self.job, self.name = job, f"{job} {index}"
        config = {"cluster": cluster, "task": {"type": job, "index": index}}
        self.process = subprocess.Popen(
            line, env={**os.environ, "TF_CONFIG": json.dumps(config)}, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def follow(self, ended: Any) -> None:
        """Prints what the task prints, and tells when it is over."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            click.echo(f"[{self.name}] {line.decode(errors='replace')}", nl=False)
        self.process.wait()
        ended(self)


def _watch(tasks: Sequence[_Task]) -> int:
    """The exit status of the cluster, when it is over."""
    changed = threading.Condition()
    over: list[_Task] = []

    def ended(task: _Task) -> None:
        with changed:
            over.append(task)
            changed.notify_all()

    threads = [threading.Thread(target=t.follow, args=(ended,), daemon=True) for t in tasks]
    for thread in threads:
        thread.start()
    workers = [task for task in tasks if task.job != "ps"]
    try:
        with changed:
            while not any(t.process.returncode for t in over) and not set(workers) <= set(over):
                changed.wait(1.0)
            failed = [t for t in over if t.process.returncode]
    finally:
        _end(tasks)
    for thread in threads:
        thread.join(_PATIENCE)
    for task in failed:
        click.echo(f"opdock launch: {task.name} ended with {task.process.returncode}", err=True)
    return 0 if not failed else abs(failed[0].process.returncode)


def _end(tasks: Sequence[_Task]) -> None:
    for task in tasks:
        if task.process.poll() is None:
            task.process.terminate()
    for task in tasks:
        try:
            task.process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            task.process.kill()
