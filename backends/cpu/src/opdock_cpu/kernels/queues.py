"""Queues, in the host's memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.plugin import DType, KernelTable, NodeSig, dtypes, errors, random_stream
from opdock_cpu import queues
from opdock_cpu.queues import Queue

__all__ = ["queue_of", "table"]

Array = npt.NDArray[Any]

table = KernelTable()


# ---------------------------------------------------------------- queues
def _shared(sig: NodeSig, make: Callable[[str], Queue]) -> Callable[[], Any]:
    """The queue of a node: its own, or the one that it shares by name."""
    attrs, resources = sig.attrs, sig.resources
    name = attrs["shared_name"] or sig.name
    wanted = make(name)
    known: Queue | None = None

    def run() -> Any:
        nonlocal known
        assert resources is not None
        found: Queue = resources.get_or_create(
            "queue", attrs["container"], name, lambda: make(name)
        )
        if found is not known:
            found.same(wanted)
            known = found
        return found

    return run


def _arguments(sig: NodeSig) -> tuple[list[DType], list[Any], int]:
    types = [t.base_dtype for t in sig.attrs["component_types"]]
    shapes = [s.as_tuple() if hasattr(s, "as_tuple") else s for s in sig.attrs["shapes"]]
    if shapes and len(shapes) != len(types):
        raise errors.InvalidArgumentError(
            None, None,
            f"{sig.op} '{sig.name}': {len(types)} component types, but {len(shapes)} shapes",
        )  # fmt: skip
    return types, shapes, int(sig.attrs["capacity"])


@table.binder("FIFOQueue", "FIFOQueueV2")
def fifo_queue(sig: NodeSig) -> Callable[[], Any]:
    """First in, first out."""
    parts = _arguments(sig)
    return _shared(sig, lambda name: Queue("FIFOQueue", name, *parts, queues.first_come()))


@table.binder("PaddingFIFOQueue", "PaddingFIFOQueueV2")
def padding_fifo_queue(sig: NodeSig) -> Callable[[], Any]:
    """The same, and batches of what differs in shape are padded."""
    parts = _arguments(sig)
    return _shared(
        sig, lambda name: Queue("PaddingFIFOQueue", name, *parts, queues.first_come(), pads=True)
    )


@table.binder("RandomShuffleQueue", "RandomShuffleQueueV2")
def random_shuffle_queue(sig: NodeSig) -> Callable[[], Any]:
    """In an order that the seeds decide."""
    parts, keeps = _arguments(sig), int(sig.attrs["min_after_dequeue"])
    if keeps < 0 or 0 <= parts[2] <= keeps:
        raise errors.InvalidArgumentError(
            None, None,
            f"min_after_dequeue must be >= 0 and < capacity ({parts[2]}), got {keeps} "
            f"in RandomShuffleQueue '{sig.name}'",
        )  # fmt: skip
    seeds = int(sig.attrs["seed"]), int(sig.attrs["seed2"])
    return _shared(
        sig,
        lambda name: Queue(
            "RandomShuffleQueue", name, *parts, queues.shuffled(random_stream(sig)), keeps,
            seeds=seeds,
        ),
    )  # fmt: skip


@table.binder("PriorityQueue", "PriorityQueueV2")
def priority_queue(sig: NodeSig) -> Callable[[], Any]:
    """By an integer that leads each element."""
    types, shapes, capacity = _arguments(sig)
    parts = [dtypes.int64, *types], [(), *shapes] if shapes or not types else [], capacity
    return _shared(sig, lambda name: Queue("PriorityQueue", name, *parts, queues.smallest_first()))


# ---------------------------------------------------------------- use
def queue_of(handle: Any, sig: NodeSig) -> Queue:
    """The queue behind a handle."""
    found = handle.item() if isinstance(handle, np.ndarray) else handle
    if not isinstance(found, Queue):
        raise errors.InvalidArgumentError(
            None, None, f"{sig.op} '{sig.name}': the handle is not one of a queue"
        )
    return found


@table.binder("FakeQueue", keeps=())
def fake_queue(sig: NodeSig) -> Callable[..., Any]:
    """A queue for the older ops: handles and references are the queue itself."""
    return lambda handle: queue_of(handle, sig)


def _timeless(sig: NodeSig) -> None:
    if sig.attrs["timeout_ms"] != -1:
        raise errors.InvalidArgumentError(None, None, "Timeout not supported yet.")


def _enqueue(sig: NodeSig, many: bool) -> Callable[..., tuple[()]]:
    _timeless(sig)
    types, resources = sig.attrs["Tcomponents"], sig.resources
    assert resources is not None
    kinds = [t.base_dtype.np for t in types]

    def run(handle: Any, *components: Array) -> tuple[()]:
        queue = queue_of(handle, sig)
        queue.check("EnqueueMany" if many else "Enqueue", types)
        put = queue.enqueue_many if many else queue.enqueue
        put(tuple(map(np.asarray, components, kinds)), resources.wait)
        return ()

    return run


@table.binder("QueueEnqueue", "QueueEnqueueV2")
def enqueue(sig: NodeSig) -> Callable[..., tuple[()]]:
    """Adds an element."""
    return _enqueue(sig, many=False)


@table.binder("QueueEnqueueMany", "QueueEnqueueManyV2")
def enqueue_many(sig: NodeSig) -> Callable[..., tuple[()]]:
    """Adds an element for each row."""
    return _enqueue(sig, many=True)


@table.binder("QueueDequeue", "QueueDequeueV2")
def dequeue(sig: NodeSig) -> Callable[..., Any]:
    """Takes the next element."""
    _timeless(sig)
    types, resources = sig.attrs["component_types"], sig.resources
    assert resources is not None

    def run(handle: Any) -> Any:
        queue = queue_of(handle, sig)
        queue.check("Dequeue", types)
        element = queue.dequeue(resources.wait)
        return element[0] if len(element) == 1 else element

    return run


def _dequeue_rows(sig: NodeSig, up_to: bool) -> Callable[..., Any]:
    _timeless(sig)
    types, resources = sig.attrs["component_types"], sig.resources
    assert resources is not None

    def run(handle: Any, count: Any) -> Any:
        queue = queue_of(handle, sig)
        queue.check("DequeueUpTo" if up_to else "DequeueMany", types)
        batch = queue.dequeue_many(int(count), up_to, resources.wait)
        return batch[0] if len(batch) == 1 else batch

    return run


@table.binder("QueueDequeueMany", "QueueDequeueManyV2")
def dequeue_many(sig: NodeSig) -> Callable[..., Any]:
    """Takes elements as rows."""
    return _dequeue_rows(sig, False)


@table.binder("QueueDequeueUpTo", "QueueDequeueUpToV2")
def dequeue_up_to(sig: NodeSig) -> Callable[..., Any]:
    """Takes elements as rows, fewer if the queue is closed."""
    return _dequeue_rows(sig, True)


@table.binder("QueueClose", "QueueCloseV2")
def close(sig: NodeSig) -> Callable[..., tuple[()]]:
    """Ends a queue."""
    cancels, resources = bool(sig.attrs["cancel_pending_enqueues"]), sig.resources
    assert resources is not None

    def run(handle: Any) -> tuple[()]:
        queue_of(handle, sig).end(cancels, resources.wait)
        return ()

    return run


@table.binder("QueueIsClosed", "QueueIsClosedV2")
def is_closed(sig: NodeSig) -> Callable[..., Any]:
    """Whether a queue has ended."""
    return lambda handle: np.asarray(queue_of(handle, sig).closed)


@table.binder("QueueSize", "QueueSizeV2")
def size(sig: NodeSig) -> Callable[..., Any]:
    """How many elements a queue holds."""
    return lambda handle: np.asarray(len(queue_of(handle, sig)), np.int32)
