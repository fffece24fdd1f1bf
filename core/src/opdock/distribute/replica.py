"""What a program knows of the replica that it is in."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from opdock.autodiff.custom import custom_gradient
from opdock.distribute import device_util
from opdock.distribute.modes import require_replica_context
from opdock.distribute.reductions import ReduceOp
from opdock.graph.nodes.composite import IndexedSlices
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.replication import Mode, inside
from opdock.util import nest

__all__ = ["ReplicaContext"]


class ReplicaContext:
    """The replica for which operations are made, a context manager.

    Args:
        strategy: whose replica it is.
        replica_id_in_sync_group: its number, an int or a constant.
    """

    def __init__(self, strategy: Any, replica_id_in_sync_group: Any) -> None:
        self._strategy = strategy
        self._replica_id_in_sync_group = replica_id_in_sync_group
        self._entered: list[contextlib.AbstractContextManager[None]] = []

    def __enter__(self) -> None:
        self._entered.append(inside(Mode(self._strategy, self)))
        self._entered[-1].__enter__()

    def __exit__(self, *error: object) -> None:
        self._entered.pop().__exit__(None, None, None)

    def merge_call(
        self, merge_fn: Callable[..., Any], args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Calls a function once, with the strategy and the arguments of all replicas.

        Args:
            merge_fn: a function of the strategy, and of arguments in which tensors are values of
                each replica.
            args, kwargs: this replica's arguments.

        Returns:
            What is this replica's of what the function gives.

        Raises:
            RuntimeError: the program is not in this replica.
        """
        require_replica_context(self)
        return self._merge_call(merge_fn, args, kwargs or {})

    def _merge_call(
        self, merge_fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        with inside(Mode(self._strategy, None)):
            return merge_fn(self._strategy, *args, **kwargs)

    @property
    def num_replicas_in_sync(self) -> int:
        """How many replicas update together."""
        found: int = self._strategy.num_replicas_in_sync
        return found

    @property
    def replica_id_in_sync_group(self) -> Any:
        """The number of the replica among those that update together."""
        require_replica_context(self)
        return self._replica_id_in_sync_group

    @property
    def strategy(self) -> Any:
        """The strategy."""
        return self._strategy

    @property
    def devices(self) -> tuple[str, ...]:
        """The devices of the replica."""
        require_replica_context(self)
        return (device_util.current(),)

    def all_reduce(self, reduce_op: Any, value: Any) -> Any:
        """Values reduced over all replicas, each of which calls it with the same structure.

        Args:
            reduce_op: a `tf.distribute.ReduceOp`, or its name.
            value: a tensor or a structure of them.

        Returns:
            The structure, of tensors with a gradient: that of a sum is the sum of the gradients.
            Where an IndexedSlices is among the values, they stay rows, and there is no gradient.
        """
        op = ReduceOp.of(reduce_op)

        def reduced(strategy: Any, *values: Any) -> Any:
            return strategy.extended.batch_reduce_to(op, [(v, _place(v)) for v in values])

        @custom_gradient
        def through(*xs: Any) -> Any:
            ys = self.merge_call(reduced, args=xs)
            return ys, lambda *dys: self.all_reduce(op, list(dys))

        flat = nest.flatten(value)
        if any(isinstance(x, IndexedSlices) for x in flat):
            return nest.pack_sequence_as(value, self.merge_call(reduced, args=tuple(flat)))
        return nest.pack_sequence_as(value, nest.flatten(through(*flat)))


def _place(value: Any) -> Any:
    return value.device if isinstance(value, (Tensor, IndexedSlices)) else value
