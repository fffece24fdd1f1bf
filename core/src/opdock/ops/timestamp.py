"""The time at which a step comes to a node."""

from __future__ import annotations

from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Tensor
from opdock.ops.registry import Traits, define_op
from opdock.ops.support.common_shapes import scalar

__all__ = ["timestamp"]

timestamp_op = define_op("Timestamp", "-> ts: double", stateful=True)
timestamp_op.shape(scalar)
timestamp_op.declare(Traits(fold=False, merge=False))
timestamp_op.not_differentiable()


@extensible
def timestamp(name: str | None = None) -> Tensor:
    """The seconds since 1970, as float64, when the operation runs.

    What the time is to be taken after has to be among its control inputs.
    """
    return timestamp_op(name=name)  # type: ignore[no-any-return]
