"""`tf.FIFOQueue` and its like: queues of tuples of tensors, as programs use them."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from opdock import dtypes
from opdock.graph.nodes.constant_value import constant_value
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.graph.nodes.seeds import get_seed
from opdock.ops import queues as raw
from opdock.ops.registry import get
from opdock.shapes import TensorShape, as_dimension

__all__ = [
    "FIFOQueue", "PaddingFIFOQueue", "PriorityQueue", "QueueBase", "RandomShuffleQueue",
]  # fmt: skip


class QueueBase:
    """A queue, as a handle of it and what is known of its elements.

    Args:
        dtypes: the types of an element's components.
        shapes: their shapes; None where they are not known.
        names: keys of the components, if elements are dictionaries.
        queue_ref: the handle.

    Raises:
        ValueError: there is another number of shapes or names than of types.
    """

    def __init__(self, dtypes: Any, shapes: Any, names: Any, queue_ref: Tensor) -> None:
        self._dtypes = dtypes
        for what, given in (("shapes", shapes), ("names", names)):
            if given is not None and len(given) != len(dtypes):
                raise ValueError(
                    f"Queue {what} must have the same length as dtypes, got {len(given)} "
                    f"for {len(dtypes)}"
                )
        self._shapes = [TensorShape(s) for s in shapes or [None] * len(dtypes)]
        self._names = names
        self._queue_ref = queue_ref
        self._name = queue_ref.op.name.rpartition("/")[2]

    @staticmethod
    def from_list(index: Any, queues: Any) -> QueueBase:
        """The queue of a list that an integer tensor chooses.

        Raises:
            TypeError: `queues` is no list of queues, or their components differ in type or name.
        """
        if not queues or not isinstance(queues, list):
            raise TypeError("A list of queues expected")
        if not all(isinstance(q, QueueBase) for q in queues):
            raise TypeError("A list of queues expected")
        first = queues[0]
        for what in ("dtypes", "names"):
            if any(getattr(q, what) != getattr(first, what) for q in queues):
                word = what.replace("dtypes", "dtype") if what == "dtypes" else "name"
                raise TypeError(f"Queues do not have matching component {word}s.")
        common = [functools.reduce(_common, s) for s in zip(*(q.shapes for q in queues))]
        handles = get("Pack")([q.queue_ref for q in queues], axis=0)
        chosen = get("GatherV2")(handles, index, 0)
        return QueueBase(first.dtypes, common, first.names, chosen)

    # ------------------------------------------------------------ facts
    @property
    def queue_ref(self) -> Tensor:
        """The handle."""
        return self._queue_ref

    @property
    def name(self) -> str:
        """The name of the operation that makes the queue."""
        return self._queue_ref.op.name

    @property
    def dtypes(self) -> Any:
        """The types of the components."""
        return self._dtypes

    @property
    def shapes(self) -> list[TensorShape]:
        """The shapes of the components."""
        return self._shapes

    @property
    def names(self) -> Any:
        """The keys of the components, or None."""
        return self._names

    # ------------------------------------------------------------ enqueue
    def enqueue(self, vals: Any, name: str | None = None) -> Operation:
        """Adds one element: waits while the queue is full.

        Args:
            vals: a tensor, or a list, tuple or dictionary of them.
            name: a name for the operation.

        Raises:
            ValueError: keys or static shapes do not fit.
        """
        with name_scope(name, f"{self._name}_enqueue", _values(vals)) as scope:
            tensors = self._check_enqueue_dtypes(vals)
            for tensor, shape in zip(tensors, self._shapes, strict=False):
                tensor.get_shape().assert_is_compatible_with(shape)
            return raw.queue_enqueue_op(  # type: ignore[no-any-return]
                self._queue_ref, tensors, Tcomponents=[t.dtype for t in tensors], name=scope
            )

    def enqueue_many(self, vals: Any, name: str | None = None) -> Operation:
        """Adds an element for each row of the components; waits where the queue is full.

        Raises:
            ValueError: keys, static shapes or numbers of rows do not fit.
        """
        with name_scope(name, f"{self._name}_EnqueueMany", _values(vals)) as scope:
            tensors = self._check_enqueue_dtypes(vals)
            rows = as_dimension(tensors[0].get_shape().with_rank_at_least(1)[0])
            for tensor, shape in zip(tensors, self._shapes, strict=False):
                given = tensor.get_shape().with_rank_at_least(1)
                rows = rows.merge_with(given[0])
                given[1:].assert_is_compatible_with(shape)
            return raw.queue_enqueue_many_op(  # type: ignore[no-any-return]
                self._queue_ref, tensors, Tcomponents=[t.dtype for t in tensors], name=scope
            )

    def _check_enqueue_dtypes(self, vals: Any) -> list[Tensor]:
        """The components as tensors of the queue's types, in order."""
        if isinstance(vals, dict):
            if not self._names:
                raise ValueError("Queue must have names to enqueue a dictionary")
            if sorted(self._names, key=str) != sorted(vals, key=str):
                raise ValueError(
                    "Keys in dictionary to enqueue do not match names of Queue.  "
                    f"Dictionary: ({sorted(vals)}), Queue: ({sorted(self._names)})"
                )
            vals = [vals[k] for k in self._names]
        elif self._names:
            raise ValueError("You must enqueue a dictionary in a Queue with names")
        elif not isinstance(vals, (list, tuple)):
            vals = [vals]
        return [
            convert_to_tensor(v, dtype, f"component_{i}")
            for i, (v, dtype) in enumerate(zip(vals, self._dtypes, strict=False))
        ]

    # ------------------------------------------------------------ dequeue
    def dequeue(self, name: str | None = None) -> Any:
        """The next element: waits while the queue is empty.

        Returns:
            A tensor, a list of them, or a dictionary if the components have names.
        """
        out = self._dequeued(raw.queue_dequeue_op, (), name or f"{self._name}_Dequeue")
        for tensor, shape in zip(out, self._shapes, strict=True):
            tensor.set_shape(shape)
        return self._dequeue_return_value(out)

    def dequeue_many(self, n: Any, name: str | None = None) -> Any:
        """The next `n` elements as rows: waits until there are as many."""
        return self._rows(raw.queue_dequeue_many_op, n, name or f"{self._name}_DequeueMany", True)

    def dequeue_up_to(self, n: Any, name: str | None = None) -> Any:
        """As `dequeue_many`, but fewer once the queue is closed."""
        return self._rows(raw.queue_dequeue_up_to_op, n, name or f"{self._name}_DequeueUpTo", False)

    def _rows(self, op: Callable[..., Any], n: Any, name: str, all_of_them: bool) -> Any:
        given = convert_to_tensor(n, dtypes.int32, "n")
        out = self._dequeued(op, (given,), name)
        count = constant_value(given) if all_of_them else None
        for tensor, shape in zip(out, self._shapes, strict=True):
            tensor.set_shape(
                TensorShape([None if count is None else int(count)]).concatenate(shape)
            )
        return self._dequeue_return_value(out)

    def _dequeued(self, op: Callable[..., Any], args: Sequence[Any], name: str) -> list[Tensor]:
        out = op(self._queue_ref, *args, component_types=self._dtypes, name=name)
        return list(out) if isinstance(out, (list, tuple)) else [out]

    def _dequeue_return_value(self, tensors: list[Tensor]) -> Any:
        if self._names:
            return dict(zip(self._names, tensors, strict=True))
        return tensors[0] if len(tensors) == 1 else tensors

    # ------------------------------------------------------------ the rest
    def close(self, cancel_pending_enqueues: bool = False, name: str | None = None) -> Operation:
        """Ends the queue: nothing more is enqueued, what is there can be dequeued.

        Args:
            cancel_pending_enqueues: whether those who wait for room give up.
            name: a name for the operation.
        """
        return raw.queue_close_op(  # type: ignore[no-any-return]
            self._queue_ref, cancel_pending_enqueues=cancel_pending_enqueues,
            name=name or f"{self._name}_Close",
        )  # fmt: skip

    def is_closed(self, name: str | None = None) -> Tensor:
        """Whether the queue is closed."""
        return raw.queue_is_closed_op(  # type: ignore[no-any-return]
            self._queue_ref, name=name or f"{self._name}_Is_Closed"
        )

    def size(self, name: str | None = None) -> Tensor:
        """The number of elements, an int32."""
        return raw.queue_size_op(  # type: ignore[no-any-return]
            self._queue_ref, name=name or f"{self._name}_Size"
        )


def _values(vals: Any) -> Iterable[Any]:
    if isinstance(vals, dict):
        return list(vals.values())
    return vals if isinstance(vals, (list, tuple)) else [vals]


def _common(a: TensorShape, b: TensorShape) -> TensorShape:
    """The most that can be said of a tensor that has one shape or the other."""
    if a.ndims is None or a.ndims != b.ndims:
        return TensorShape(None)
    return TensorShape(
        [x if x == y else None for x, y in zip(a.as_list(), b.as_list(), strict=True)]
    )


# ---------------------------------------------------------------- arguments
def as_types(given: Any) -> list[dtypes.DType]:
    """A type or a list of them as a list."""
    return [dtypes.as_dtype(t) for t in (given if isinstance(given, (list, tuple)) else [given])]


def as_shapes(given: Any, partial: bool = False) -> list[TensorShape] | None:
    """A shape or a list of them as a list.

    Args:
        given: what the user says.
        partial: whether dimensions may be unknown; then only a list is understood.

    Raises:
        ValueError: a shape is not known as far as it must be.
        TypeError: these are no shapes.
    """
    single = isinstance(given, (list, tuple)) and all(
        s is None or isinstance(s, int) for s in given
    )
    if partial and (not isinstance(given, (list, tuple)) or not given or single):
        raise ValueError("When providing partial shapes, a list of shapes must be provided.")
    if given is None:
        return None
    if isinstance(given, TensorShape):
        given = [given]
    if not isinstance(given, (list, tuple)):
        raise TypeError("shapes must be a TensorShape or a list or tuple of TensorShapes.")
    found = [TensorShape(s) for s in ([given] if single and not partial else given)]
    if not partial and not all(s.is_fully_defined() for s in found):
        raise ValueError(f"All shapes must be fully defined: {found}")
    if any(s.dims is None for s in found):
        raise ValueError(f"All shapes must have a defined rank: {found}")
    return found


def as_names(given: Any, types: Sequence[Any]) -> list[str] | None:
    """A name or a list of them as a list.

    Raises:
        ValueError: there is another number of names than of types.
    """
    if given is None:
        return None
    names = list(given) if isinstance(given, (list, tuple)) else [given]
    if len(names) != len(types):
        raise ValueError("List of names must have the same length as the list of dtypes")
    return names


# ---------------------------------------------------------------- queues
class FIFOQueue(QueueBase):
    """A queue that gives elements in the order in which they came.

    Args:
        capacity: how many elements there may be.
        dtypes: the types of an element's components.
        shapes: their shapes, fully known; without them elements may differ, and `dequeue_many`
            is an error.
        names: keys of the components: elements are dictionaries then.
        shared_name: sessions' nodes with one such name share one queue.
        name: a name for the operation.
    """

    def __init__(
        self, capacity: int, dtypes: Any, shapes: Any = None, names: Any = None,
        shared_name: str | None = None, name: str = "fifo_queue",
    ) -> None:  # fmt: skip
        types, known = as_types(dtypes), as_shapes(shapes)
        keys = as_names(names, types)
        handle = raw.fifo_queue_op(
            component_types=types, shapes=known or [], capacity=capacity,
            shared_name=shared_name or "", name=name,
        )  # fmt: skip
        super().__init__(types, known, keys, handle)


class PaddingFIFOQueue(QueueBase):
    """A FIFO queue whose batches pad what differs in shape.

    Args:
        capacity: how many elements there may be.
        dtypes: the types of an element's components.
        shapes: their shapes, whose ranks are known.
        names, shared_name, name: as for `FIFOQueue`.

    Raises:
        ValueError: a component has no shape.
    """

    def __init__(
        self, capacity: int, dtypes: Any, shapes: Any, names: Any = None,
        shared_name: str | None = None, name: str = "padding_fifo_queue",
    ) -> None:  # fmt: skip
        types, known = as_types(dtypes), as_shapes(shapes, partial=True)
        keys = as_names(names, types)
        if known is None or len(known) != len(types):
            raise ValueError(
                "Shapes must be provided for all components, but received "
                f"{len(types)} dtypes and {len(known or ())} shapes."
            )
        handle = raw.padding_fifo_queue_op(
            component_types=types, shapes=known, capacity=capacity, shared_name=shared_name or "",
            name=name,
        )  # fmt: skip
        super().__init__(types, known, keys, handle)


class RandomShuffleQueue(QueueBase):
    """A queue that gives elements in random order.

    Args:
        capacity: how many elements there may be.
        min_after_dequeue: how many are left at least while the queue is open, which is how well
            they are mixed.
        dtypes, shapes, names: as for `FIFOQueue`.
        seed: for the order; see `tf.set_random_seed`.
        shared_name, name: as for `FIFOQueue`.
    """

    def __init__(
        self, capacity: int, min_after_dequeue: int, dtypes: Any, shapes: Any = None,
        names: Any = None, seed: int | None = None, shared_name: str | None = None,
        name: str = "random_shuffle_queue",
    ) -> None:  # fmt: skip
        types, known = as_types(dtypes), as_shapes(shapes)
        keys = as_names(names, types)
        seed1, seed2 = get_seed(seed)
        if seed1 is None and seed2 is None:
            seed1, seed2 = 0, 0
        elif seed is None and shared_name is not None:
            # Nodes that share a queue have to agree on its order, wherever they stand in the graph.
            digest = hashlib.md5(f"{seed1}{shared_name}".encode(), usedforsecurity=False)
            seed2 = int(digest.hexdigest()[:8], 16) & 0x7FFFFFFF
        handle = raw.random_shuffle_queue_op(
            component_types=types, shapes=known or [], capacity=capacity,
            min_after_dequeue=min_after_dequeue, seed=seed1, seed2=seed2,
            shared_name=shared_name or "", name=name,
        )  # fmt: skip
        super().__init__(types, known, keys, handle)


class PriorityQueue(QueueBase):
    """A queue that gives the element with the smallest priority first.

    An element is enqueued as an int64, its priority, and the components; it comes out likewise.

    Args:
        capacity: how many elements there may be.
        types: the types of the components without the priority.
        shapes: their shapes.
        names: keys, that of the priority among them as the first.
        shared_name, name: as for `FIFOQueue`.
    """

    def __init__(
        self, capacity: int, types: Any, shapes: Any = None, names: Any = None,
        shared_name: str | None = None, name: str = "priority_queue",
    ) -> None:  # fmt: skip
        kinds, known = as_types(types), as_shapes(shapes)
        handle = raw.priority_queue_op(
            component_types=kinds, shapes=known or [], capacity=capacity,
            shared_name=shared_name or "", name=name,
        )  # fmt: skip
        every = None if kinds and not known else [TensorShape([]), *(known or ())]
        super().__init__([dtypes.int64, *kinds], every, as_names(names, [0, *kinds]), handle)
