"""Which node goes where, so that the sum of computing and copying is least.

With two devices the best assignment is a minimum cut: Stone, "Multiprocessor scheduling with the
aid of network flow algorithms", 1977. With more, moves of any nodes to one device, each a minimum
cut, are made until none gains: Boykov, Veksler, Zabih, "Fast approximate energy minimization via
graph cuts", 2001; the result is then near the best one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, maximum_flow

__all__ = ["Problem", "best", "worthwhile"]

_ROOM: Final = 2**28  # of SciPy's 32-bit capacities: sums of them must fit, too
_TURNS: Final = 20


@dataclass
class Problem:
    """What is to be decided.

    Attributes:
        seconds: of each node, by device; infinity where it cannot run. One is finite.
        edges: pairs of nodes, the second of which takes a value of the first, with the seconds of a
            copy by pairs of devices; what stays where it is costs nothing.
    """

    seconds: Sequence[Sequence[float]]
    edges: Mapping[tuple[int, int], Sequence[Sequence[float]]]

    def cost(self, chosen: Sequence[int]) -> float:
        """Seconds of an assignment."""
        own = sum(of[d] for of, d in zip(self.seconds, chosen, strict=True))
        return own + sum(c[chosen[a]][chosen[b]] for (a, b), c in self.edges.items())

    def together(self) -> list[list[int]]:
        """For each device, all on it; what it cannot run is where that is fastest."""
        pairs = [(of, of.index(min(of))) for of in self.seconds]
        return [
            [device if of[device] < math.inf else other for of, other in pairs]
            for device in range(len(self.seconds[0]) if self.seconds else 0)
        ]


def worthwhile(problem: Problem, margin: float) -> list[int]:
    """The best assignment, or the best device for all where mixing gains less than a share of it.

    What a small gain is made of may be errors of measuring, and each crossing between devices has
    costs that no trace shows: caches that are cold, threads that wait.
    """
    chosen = best(problem)
    whole = min(problem.together(), key=problem.cost, default=chosen)
    return chosen if problem.cost(chosen) < (1 - margin) * problem.cost(whole) else whole


def best(problem: Problem) -> list[int]:
    """The device of each node."""
    if not problem.seconds:
        return []
    devices = len(problem.seconds[0])
    chosen = [of.index(min(of)) for of in problem.seconds]
    # All on one, as far as it goes, is often nearly best.
    chosen = min([chosen, *problem.together()], key=problem.cost)
    for _ in range(_TURNS):
        before = problem.cost(chosen)
        for device in range(devices):
            moved = _moved(problem, chosen, device)
            if problem.cost(moved) < problem.cost(chosen):
                chosen = moved
        if not problem.cost(chosen) < before:
            break
    return chosen


def _moved(problem: Problem, chosen: Sequence[int], device: int) -> list[int]:
    """The best that comes of moving any nodes to one device."""
    gain = [  # what moving a node costs more than to leave it; infinity where it cannot
        of[device] - of[stays] for of, stays in zip(problem.seconds, chosen, strict=True)
    ]
    arcs: dict[tuple[int, int], float] = {}
    for (a, b), copy in problem.edges.items():
        neither, only_a = copy[chosen[a]][chosen[b]], copy[device][chosen[b]]
        only_b, both = copy[chosen[a]][device], copy[device][device]
        # The four as terms of one node each and one of "b moves, a does not". Were that negative,
        # a copy by way of this device would be shorter than the direct one; then it is left out.
        gain[a] += only_a - neither
        gain[b] += both - only_a
        arcs[a, b] = max(only_b + only_a - neither - both, 0.0)
    moves = _beyond_cut(gain, arcs)
    return [device if m else stays for m, stays in zip(moves, chosen, strict=True)]


def _beyond_cut(gain: Sequence[float], arcs: Mapping[tuple[int, int], float]) -> list[bool]:
    """Which nodes are on the sink's side of the least cut, where `gain` is paid."""
    count = len(gain)
    source, sink = count, count + 1
    entries = [(a, b, w) for (a, b), w in arcs.items() if w > 0]
    entries += [(source, i, g) for i, g in enumerate(gain) if g > 0]
    entries += [(i, sink, -g) for i, g in enumerate(gain) if g < 0]
    total = sum(w for _, _, w in entries if w < math.inf)
    if not total:
        return [False] * count
    scale = _ROOM / total
    capacity = [2 * _ROOM if w == math.inf else round(w * scale) for _, _, w in entries]
    ends = [a for a, _, _ in entries], [b for _, b, _ in entries]
    shape = (count + 2, count + 2)
    graph = csr_array((np.array(capacity, np.int32), ends), shape=shape, dtype=np.int32)
    left = graph - maximum_flow(graph, source, sink).flow
    left.eliminate_zeros()
    reached = breadth_first_order(left, source, return_predecessors=False)
    stays = set(reached.tolist())
    return [i not in stays for i in range(count)]
