"""Queues: tensors that one step leaves for another.

A handle is a resource of the host. Whoever dequeues waits until there are elements, whoever
enqueues until there is room; a queue that is closed, a session that closes or a step whose time is
over ends the waiting.
"""

from __future__ import annotations

from opdock import shapes
from opdock.ops.registry import Cost, ShapeSig, Traits, define_op
from opdock.ops.support.common_shapes import no_outputs, scalar, unknown
from opdock.shapes import Shape

__all__: list[str] = []

_SHARED = 'container: string = "", shared_name: string = ""'
_QUEUE = (
    "component_types: list(type) >= 1, shapes: list(shape) >= 0 = [], capacity: int = -1, "
)  # fmt: skip
_PRIORITY = (
    "component_types: list(type) >= 0 = [], shapes: list(shape) >= 0, capacity: int = -1, "
)  # fmt: skip
_SHUFFLE = "min_after_dequeue: int = 0, seed: int = 0, seed2: int = 0, "
_TIMEOUT = "timeout_ms: int = -1"

fifo_queue_op = define_op("FIFOQueueV2", "-> handle: resource", _QUEUE + _SHARED, stateful=True)
padding_fifo_queue_op = define_op(
    "PaddingFIFOQueueV2", "-> handle: resource", _QUEUE + _SHARED, stateful=True
)
random_shuffle_queue_op = define_op(
    "RandomShuffleQueueV2", "-> handle: resource", _QUEUE + _SHUFFLE + _SHARED, stateful=True
)
priority_queue_op = define_op(
    "PriorityQueueV2", "-> handle: resource", _PRIORITY + _SHARED, stateful=True
)
_CREATORS = (fifo_queue_op, padding_fifo_queue_op, random_shuffle_queue_op, priority_queue_op)

queue_enqueue_op = define_op(
    "QueueEnqueueV2", "handle: resource, components: Tcomponents ->",
    f"Tcomponents: list(type) >= 1, {_TIMEOUT}", stateful=True,
)  # fmt: skip
queue_enqueue_many_op = define_op(
    "QueueEnqueueManyV2", "handle: resource, components: Tcomponents ->",
    f"Tcomponents: list(type) >= 1, {_TIMEOUT}", stateful=True,
)  # fmt: skip
queue_dequeue_op = define_op(
    "QueueDequeueV2", "handle: resource -> components: component_types",
    f"component_types: list(type) >= 1, {_TIMEOUT}", stateful=True,
)  # fmt: skip
queue_dequeue_many_op = define_op(
    "QueueDequeueManyV2", "handle: resource, n: int32 -> components: component_types",
    f"component_types: list(type) >= 1, {_TIMEOUT}", stateful=True,
)  # fmt: skip
queue_dequeue_up_to_op = define_op(
    "QueueDequeueUpToV2", "handle: resource, n: int32 -> components: component_types",
    f"component_types: list(type) >= 1, {_TIMEOUT}", stateful=True,
)  # fmt: skip
queue_close_op = define_op(
    "QueueCloseV2", "handle: resource ->", "cancel_pending_enqueues: bool = false", stateful=True
)
queue_is_closed_op = define_op(
    "QueueIsClosedV2", "handle: resource -> is_closed: bool", stateful=True
)
queue_size_op = define_op("QueueSizeV2", "handle: resource -> size: int32", stateful=True)

for _op in _CREATORS:
    _op.shape(scalar)
for _op in (queue_is_closed_op, queue_size_op):
    _op.shape(scalar)
for _op in (queue_enqueue_op, queue_enqueue_many_op, queue_close_op):
    _op.shape(no_outputs)
queue_dequeue_op.shape(unknown)
_WAITING = (
    queue_enqueue_op, queue_enqueue_many_op, queue_dequeue_op, queue_dequeue_many_op,
    queue_dequeue_up_to_op,
)  # fmt: skip
for _op in _WAITING:
    _op.declare(Traits(cost=Cost.WAIT, blocks=True))
for _op in (*_CREATORS, *_WAITING, queue_close_op, queue_is_closed_op, queue_size_op):
    _op.not_differentiable()


@queue_dequeue_many_op.shape
@queue_dequeue_up_to_op.shape
def _many_shape(sig: ShapeSig) -> list[Shape]:
    count = sig.const(1)
    if count is not None and int(count) < 0:
        raise ValueError(f"Shape must be non-negative, got {int(count)} elements to dequeue")
    shapes.with_rank(sig.shapes[1], 0)
    return [None] * sig.n_outputs
