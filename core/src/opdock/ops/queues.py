"""Queues: tensors that one step leaves for another.

A queue is a resource of the host. Whoever dequeues waits until there are elements, whoever
enqueues until there is room; a queue that is closed, a session that closes or a step whose time is
over ends the waiting.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opdock import shapes
from opdock.graph.nodes.traits import PLAIN
from opdock.ops.registry import Cost, OpSpec, ShapeSig, Traits, define_op
from opdock.ops.support.common_shapes import no_outputs, scalar, unknown
from opdock.ops.support.handles import HANDLES, handle_shape
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


def _both(
    name: str, signature: str, attrs: str, shape: Callable[[ShapeSig], Any],
    traits: Traits = PLAIN,
) -> OpSpec:  # fmt: skip
    """An op on a reference and the one on a handle; the latter, which new programs have."""
    for suffix, handle in HANDLES:
        op = define_op(
            f"{name}{suffix}", signature.format(handle), attrs,
            # As in TF, an op on a handle has state by that alone.
            stateful=suffix == "V2" or signature.startswith("->"),
        )  # fmt: skip
        op.declare(traits).not_differentiable()
        op.shape(shape)
    return op


def _many_shape(sig: ShapeSig) -> list[Shape]:
    count = sig.const(1)
    if count is not None and int(count) < 0:
        raise ValueError(f"Shape must be non-negative, got {int(count)} elements to dequeue")
    shapes.with_rank(sig.shapes[1], 0)
    return [None] * sig.n_outputs


# ---------------------------------------------------------------- queues
_MAKES = "-> handle: {}"
fifo_queue_op = _both("FIFOQueue", _MAKES, _QUEUE + _SHARED, handle_shape)
padding_fifo_queue_op = _both("PaddingFIFOQueue", _MAKES, _QUEUE + _SHARED, handle_shape)
random_shuffle_queue_op = _both(
    "RandomShuffleQueue", _MAKES, _QUEUE + _SHUFFLE + _SHARED, handle_shape
)
priority_queue_op = _both("PriorityQueue", _MAKES, _PRIORITY + _SHARED, handle_shape)
fake_queue_op = define_op(
    "FakeQueue", "resource: resource -> handle: Ref(string)", stateful=True
).not_differentiable()
fake_queue_op.shape(handle_shape)

# ---------------------------------------------------------------- what is done with them
_WAITS = Traits(cost=Cost.WAIT, blocks=True)
_TAKES = Traits(cost=Cost.WAIT, blocks=True, takes=True)
_ENQUEUES = "handle: {}, components: Tcomponents ->"
_TAKEN = f"Tcomponents: list(type) >= 1, {_TIMEOUT}"
queue_enqueue_op = _both("QueueEnqueue", _ENQUEUES, _TAKEN, no_outputs, _WAITS)
queue_enqueue_many_op = _both("QueueEnqueueMany", _ENQUEUES, _TAKEN, no_outputs, _WAITS)
_ROWS = "handle: {}, n: int32 -> components: component_types"
_GIVEN = f"component_types: list(type) >= 1, {_TIMEOUT}"
queue_dequeue_op = _both(
    "QueueDequeue", "handle: {} -> components: component_types", _GIVEN, unknown, _TAKES
)
queue_dequeue_many_op = _both("QueueDequeueMany", _ROWS, _GIVEN, _many_shape, _TAKES)
queue_dequeue_up_to_op = _both("QueueDequeueUpTo", _ROWS, _GIVEN, _many_shape, _TAKES)
queue_close_op = _both(
    "QueueClose", "handle: {} ->", "cancel_pending_enqueues: bool = false", no_outputs
)
queue_is_closed_op = _both("QueueIsClosed", "handle: {} -> is_closed: bool", "", scalar)
queue_size_op = _both("QueueSize", "handle: {} -> size: int32", "", scalar)
