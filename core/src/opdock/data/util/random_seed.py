"""Seeds of datasets, which may be tensors."""

from __future__ import annotations

from typing import Any

from opdock import dtypes
from opdock.graph.nodes.constant import constant
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.seeds import get_seed as graph_seeds
from opdock.ops.compare import equal, logical_and
from opdock.ops.select import where

__all__ = ["get_seed"]


def get_seed(seed: Any) -> tuple[Tensor, Tensor]:
    """The pair of seeds for a dataset, as scalars of int64.

    Args:
        seed: an integer or a tensor; None for the graph's.
    """
    first, second = graph_seeds(None if isinstance(seed, Tensor) else seed)
    if isinstance(seed, Tensor):
        # The graph's seed leads, as for a number, and the number is known at run time alone.
        first, _ = graph_seeds(0)
        second_tensor = convert_to_tensor(seed, dtype=dtypes.int64, name="seed2")
        first_tensor: Tensor = constant(0 if first is None else first, dtypes.int64, name="seed")
        zero = logical_and(equal(first_tensor, 0), equal(second_tensor, 0))
        largest = constant(2**31 - 1, dtypes.int64)
        return first_tensor, where(zero, largest, second_tensor)
    pair = (0 if first is None else first, 0 if second is None else second)
    return constant(pair[0], dtypes.int64, name="seed"), constant(
        pair[1], dtypes.int64, name="seed2"
    )
