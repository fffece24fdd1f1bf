"""How far each pattern of training on a cluster scales, on paper: to 1,024 workers.

    python benchmarks/scale.py                        # tables for docs/how-to/clusters.md
    python benchmarks/scale.py --measured 1=250 2=249 --mb 0.94 --ms 3.2 --cores 2 --gbits 20

A step computes, moves as many bytes as the model has, and meets others: at the links of parameter
servers, which are a queue each, or at the end of a round, which is the slowest worker's. That is
all that is simulated. `--measured` holds what the simulator says of one machine against steps a
second that `benchmarks/clusters.py` has measured with so many workers.
"""

from __future__ import annotations

import argparse
import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

WORKERS = (1, 4, 16, 64, 256, 1024)
ROUNDS = 200


@dataclass(frozen=True, slots=True)
class Cluster:
    """What a pattern runs on.

    Attributes:
        workers, servers: how many; each has a link of its own.
        compute: seconds that a step computes.
        spread: how the time of a step varies: the standard deviation of its logarithm.
        size: bytes of the model's variables, and of their gradients.
        latency: seconds that a message takes, however small.
        bandwidth: bytes a second of a link, each way.
        applying: bytes a second that a server applies.
        sent: the part of the gradients' bytes that is sent, if they are compressed.
        backups: workers whose gradients a synchronous round does not wait for.
        cores: of one machine that all workers share; 0 where each has its own.
    """

    workers: int = 1
    servers: int = 1
    compute: float = 0.1
    spread: float = 0.1
    size: float = 1e8
    latency: float = 1e-4
    bandwidth: float = 1.25e9
    applying: float = 5e9
    sent: float = 1.0
    backups: int = 0
    cores: int = 0

    def times(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Seconds that so many steps compute."""
        crowd = max(1.0, self.workers / self.cores) if self.cores else 1.0
        varied: np.ndarray = crowd * self.compute * rng.lognormal(0.0, self.spread, count)
        return varied


def asynchronous(cluster: Cluster) -> float:
    """Steps a second with parameter servers that apply whatever comes.

    Each worker pulls, computes and pushes; a server hands out and takes in one shard at a time.
    """
    rng = np.random.default_rng(0)
    shard = cluster.size / cluster.servers
    pull = shard / cluster.bandwidth
    push = shard * cluster.sent / cluster.bandwidth + shard / cluster.applying
    out, into = np.zeros(cluster.servers), np.zeros(cluster.servers)
    times = cluster.times(rng, cluster.workers * ROUNDS)
    # Events in the order of their time: a worker wants variables, or has gradients.
    due = [
        (float(t), w, False) for w, t in enumerate(rng.uniform(0, cluster.compute, cluster.workers))
    ]
    heapq.heapify(due)
    done, now = 0, 0.0
    while done < len(times):
        now, worker, pushing = heapq.heappop(due)
        free, length = (into, push) if pushing else (out, pull)
        np.maximum(free, now, out=free)
        free += length
        # A shard of each server: they come at the same time, but through one link of the worker.
        ready = max(float(free.max()), now + length * cluster.servers) + cluster.latency
        if pushing:
            done += 1
            heapq.heappush(due, (ready, worker, False))
        else:
            heapq.heappush(due, (ready + float(times[done]), worker, True))
    return done / now


def synchronous(cluster: Cluster) -> float:
    """Steps a second, of all workers, with servers that wait for a round's gradients."""
    counted = cluster.workers - cluster.backups
    shard = cluster.size / cluster.servers
    each = cluster.size / cluster.bandwidth  # a worker's own link
    pull = max(each, cluster.workers * shard / cluster.bandwidth)
    push = max(each, counted * shard / cluster.bandwidth) * cluster.sent
    meeting = pull + push + counted * shard / cluster.applying + 4 * cluster.latency
    return _rounds(cluster, meeting, counted)


def ring(cluster: Cluster) -> float:
    """Steps a second, of all workers, with an all-reduce around a ring."""
    turns = 2 * (cluster.workers - 1)
    chunk = cluster.size * cluster.sent / cluster.workers
    return _rounds(cluster, turns * (chunk / cluster.bandwidth + cluster.latency), cluster.workers)


def tree(cluster: Cluster) -> float:
    """Steps a second, of all workers, with an all-reduce up and down a binary tree, in pieces."""
    depth = math.ceil(math.log2(cluster.workers)) if cluster.workers > 1 else 0
    size = cluster.size * cluster.sent
    pieces = max(1.0, math.sqrt(size / cluster.bandwidth * depth / cluster.latency))
    turn = size / pieces / cluster.bandwidth * 2 + cluster.latency  # from both children
    return _rounds(cluster, 2 * (depth + pieces - 1) * turn if depth else 0.0, cluster.workers)


def _rounds(cluster: Cluster, meeting: float, counted: int) -> float:
    """A round ends when as many workers as count have computed, and met."""
    rng = np.random.default_rng(0)
    times = cluster.times(rng, cluster.workers * ROUNDS).reshape(ROUNDS, cluster.workers)
    times.sort(axis=1)
    round_ = float(times[:, counted - 1].mean()) + meeting
    return counted / round_


Pattern = Callable[[Cluster], float]
PATTERNS: dict[str, tuple[Pattern, Callable[[Cluster], Cluster]]] = {
    "asynchronous, 1 server": (asynchronous, lambda c: c),
    "asynchronous, a server for 4 workers": (
        asynchronous, lambda c: replace(c, servers=math.ceil(c.workers / 4))
    ),
    "synchronous, 1 server": (synchronous, lambda c: c),
    "synchronous, a server for 4 workers": (
        synchronous, lambda c: replace(c, servers=math.ceil(c.workers / 4))
    ),
    "the same, 5% backup workers": (
        synchronous,
        lambda c: replace(c, servers=math.ceil(c.workers / 4), backups=c.workers // 20),
    ),
    "ring": (ring, lambda c: c),
    "ring, gradients of 16 bits": (ring, lambda c: replace(c, sent=0.5)),
    "tree": (tree, lambda c: c),
}  # fmt: skip
MODELS = {
    "a perceptron (0.9 MB, 3 ms)": Cluster(compute=0.003, size=0.94e6),
    "a ResNet-50 (102 MB, 250 ms)": Cluster(compute=0.25, size=102e6),
}


def efficiency(pattern: str, model: Cluster, workers: int) -> float:
    """Steps a second as a part of what as many workers would take that meet nobody."""
    rate, shape = PATTERNS[pattern]
    cluster = shape(replace(model, workers=workers))
    return rate(cluster) * float(cluster.times(np.random.default_rng(0), 10_000).mean()) / workers


def table(model: Cluster, counts: Sequence[int] = WORKERS) -> str:
    """Efficiencies as Markdown."""
    lines = [
        f"| workers | {' | '.join(str(n) for n in counts)} |",
        f"| --- |{' --- |' * len(counts)}",
    ]
    for pattern in PATTERNS:
        cells = [f"{efficiency(pattern, model, n):.0%}" for n in counts]
        lines.append(f"| {pattern} | {' | '.join(cells)} |")
    return "\n".join(lines)


def compared(measured: Sequence[str], cluster: Cluster) -> str:
    """Simulated and measured steps a second by the number of workers."""
    lines = ["| workers | measured | simulated |", "| --- | --- | --- |"]
    for told in measured:
        count, _, rate = told.partition("=")
        found = asynchronous(replace(cluster, workers=int(count)))
        lines.append(f"| {count} | {float(rate):.0f} | {found:.0f} |")
    return "\n".join(lines)


def main() -> None:
    """The command."""
    p = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    p.add_argument("--measured", nargs="+", metavar="WORKERS=RATE")
    p.add_argument("--mb", type=float, default=0.94, help="of the model's variables")
    p.add_argument("--ms", type=float, default=3.0, help="that a step computes")
    p.add_argument("--cores", type=int, default=2, help="of the machine")
    p.add_argument("--gbits", type=float, default=20.0, help="between two processes, a second")
    args = p.parse_args()
    if args.measured:
        cluster = Cluster(
            compute=args.ms / 1e3, size=args.mb * 1e6, cores=args.cores,
            bandwidth=args.gbits / 8 * 1e9, latency=2e-4,
        )  # fmt: skip
        print(compared(args.measured, cluster))
        return
    for name, model in MODELS.items():
        print(f"\n{name}\n\n{table(model)}")


if __name__ == "__main__":
    main()
