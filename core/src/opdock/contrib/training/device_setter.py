"""To which parameter server variables go."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from opdock.graph.nodes.operation import Operation
from opdock.shapes import TensorShape

__all__ = ["GreedyLoadBalancingStrategy", "RandomStrategy", "byte_size_load_fn"]


class RandomStrategy:
    """A parameter server for each variable, by a hash of its name.

    Args:
        num_ps_tasks: how many servers there are.
        seed: another one gives other servers.
    """

    def __init__(self, num_ps_tasks: int, seed: int = 0) -> None:
        self._num_tasks = num_ps_tasks
        self._seed = seed

    def __call__(self, op: Operation) -> int:
        """The number of the server for a variable's operation."""
        key = f"{op.name}_{self._seed}".encode()
        return int(hashlib.md5(key, usedforsecurity=False).hexdigest(), 16) % self._num_tasks


class GreedyLoadBalancingStrategy:
    """The parameter server that has the least load so far.

    Args:
        num_tasks: how many servers there are.
        load_fn: the load of a variable's operation.
    """

    def __init__(self, num_tasks: int, load_fn: Callable[[Operation], float]) -> None:
        self._loads = [0.0] * num_tasks
        self._load_fn = load_fn

    def __call__(self, op: Operation) -> int:
        """The number of the server, which from now on has that load too."""
        task = self._loads.index(min(self._loads))
        self._loads[task] += self._load_fn(op)
        return task


def byte_size_load_fn(op: Operation) -> int:
    """How many bytes the variable has that an operation makes.

    Raises:
        ValueError: it has several outputs, or the shape is not known.
    """
    if len(op.outputs) != 1:
        raise ValueError(f"Op {op} must have a single output")
    output = op.outputs[0]
    known = output.shape
    if not known.is_fully_defined():
        known = TensorShape(op.get_attr("shape"))
    known.assert_is_fully_defined()
    return int(known.num_elements() or 0) * output.dtype.size
