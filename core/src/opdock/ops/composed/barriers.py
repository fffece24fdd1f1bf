"""`Barrier`: a map from keys to tuples of tensors whose components come one by one."""

from __future__ import annotations

from typing import Any

from opdock.graph.nodes.constant_value import constant_value
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.ops import barriers as raw
from opdock.ops.composed.queues import as_shapes, as_types
from opdock.shapes import TensorShape


class Barrier:
    """A map that outlives steps: what is complete is taken, in the order in which it was begun.

    Args:
        types: the types of the components of a value.
        shapes: their shapes, fully known; without them nothing can be taken.
        shared_name: sessions' nodes with one such name share one barrier.
        name: a name for the operation.

    Raises:
        ValueError: a shape is one of no elements, or not fully known.
    """

    def __init__(
        self, types: Any, shapes: Any = None, shared_name: str | None = None, name: str = "barrier"
    ) -> None:
        self._types = as_types(types)
        known = as_shapes(shapes)
        for i, shape in enumerate(known or ()):
            if shape.num_elements() == 0:
                raise ValueError(
                    f"Empty tensors are not supported, but received shape '{shape}' at index {i}"
                )
        self._shapes = known or [TensorShape(None)] * len(self._types)
        self._barrier_ref: Tensor = raw.barrier_op(
            component_types=self._types, shapes=self._shapes, shared_name=shared_name or "",
            name=name,
        )  # fmt: skip
        self._name = self._barrier_ref.op.name.rpartition("/")[2]

    @property
    def barrier_ref(self) -> Tensor:
        """The handle."""
        return self._barrier_ref

    @property
    def name(self) -> str:
        """The name of the operation that makes the barrier."""
        return self._barrier_ref.op.name

    def insert_many(
        self, component_index: int, keys: Any, values: Any, name: str | None = None
    ) -> Operation:
        """Gives one component to each of several keys.

        Args:
            component_index: which component.
            keys: a vector of strings.
            values: a row for each key.
            name: a name for the operation.

        Returns:
            The operation. It raises InvalidArgumentError if a key has the component, and
            CancelledError if the barrier is closed and a key is new.
        """
        return raw.insert_many_op(  # type: ignore[no-any-return]
            self._barrier_ref, keys, values, component_index=component_index,
            name=name or f"{self._name}_BarrierInsertMany",
        )  # fmt: skip

    def take_many(
        self, num_elements: Any, allow_small_batch: bool = False, timeout: int | None = None,
        name: str | None = None,
    ) -> Any:  # fmt: skip
        """Takes tuples that are complete; waits until there are as many.

        Args:
            num_elements: how many.
            allow_small_batch: whether fewer will do once the barrier is closed.
            timeout: TF has none yet: None.
            name: a name for the operation.

        Returns:
            (indices, keys, values): in which call each key was begun, from -2**63; the keys; for
            each component the rows.
        """
        found = raw.take_many_op(
            self._barrier_ref, num_elements, component_types=self._types,
            allow_small_batch=allow_small_batch, timeout_ms=-1 if timeout is None else timeout,
            name=name or f"{self._name}_BarrierTakeMany",
        )  # fmt: skip
        op = found[0].op
        count = None if allow_small_batch else constant_value(op.inputs[1])
        rows = TensorShape([None if count is None else int(count)])
        scalars = [TensorShape([])] * 2
        for output, shape in zip(op.outputs, [*scalars, *self._shapes], strict=True):
            output.set_shape(rows.concatenate(shape))
        return found

    def close(self, cancel_pending_enqueues: bool = False, name: str | None = None) -> Operation:
        """Ends the barrier: there are no new keys, what was begun can be completed and taken.

        Args:
            cancel_pending_enqueues: whether what was begun is dropped.
            name: a name for the operation.
        """
        return raw.close_op(  # type: ignore[no-any-return]
            self._barrier_ref, cancel_pending_enqueues=cancel_pending_enqueues,
            name=name or f"{self._name}_BarrierClose",
        )  # fmt: skip

    def ready_size(self, name: str | None = None) -> Tensor:
        """How many tuples are complete, an int32."""
        return raw.ready_size_op(  # type: ignore[no-any-return]
            self._barrier_ref, name=name or f"{self._name}_BarrierReadySize"
        )

    def incomplete_size(self, name: str | None = None) -> Tensor:
        """How many tuples were begun and lack components, an int32."""
        return raw.incomplete_size_op(  # type: ignore[no-any-return]
            self._barrier_ref, name=name or f"{self._name}_BarrierIncompleteSize"
        )
