"""Seeds of random ops: TF's rule for combining the graph seed with the op seed."""

from __future__ import annotations

from typing import Any, Final

DEFAULT_GRAPH_SEED: Final = 87654321
_MAXINT32: Final = 2**31 - 1


def get_seed(op_seed: int | None) -> tuple[int | None, int | None]:
    """The (seed, seed2) attributes of a random op.

    With neither seed set, both are None: the op draws a fresh seed when it first runs. A graph
    seed alone numbers the ops by their position, so equal programs draw equal numbers.

    Args:
        op_seed: the seed that the user gave the operation, or None.
    """
    from opdock.graph.nodes.graph import get_default_graph

    graph = get_default_graph()
    if graph.seed is not None:
        if op_seed is None:
            op_seed = graph._operation_seed()
        seeds: tuple[int | None, int | None] = _truncate(graph.seed), _truncate(op_seed)
    elif op_seed is not None:
        seeds = DEFAULT_GRAPH_SEED, _truncate(op_seed)
    else:
        return None, None
    # (0, 0) would ask for a random seed.
    return (0, _MAXINT32) if seeds == (0, 0) else seeds


def _truncate(seed: Any) -> int:
    return int(seed) % _MAXINT32


def set_random_seed(seed: int | None) -> None:
    """Sets the seed of the default graph."""
    from opdock.graph.nodes.graph import get_default_graph

    get_default_graph().seed = seed
