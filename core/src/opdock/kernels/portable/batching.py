"""Portable kernels of batches across steps. The steps meet in host memory."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from opdock import errors
from opdock.kernels.array_api import dims, invalid
from opdock.kernels.portable import portable
from opdock.kernels.select.signature import NodeSig

Array = np.ndarray[Any, Any]
Wait = Callable[..., None]
Work = Callable[["_Batch"], None]

_ids = itertools.count(1)
_MICRO: Final = 1e-6


class _Task:
    """What one step puts into a batch.

    Args:
        inputs: tensors with equal numbers of rows.
        captured: what else a function takes.
    """

    def __init__(self, inputs: Sequence[Array], captured: Sequence[Any] = ()) -> None:
        self.inputs, self.captured = inputs, captured
        self.id = next(_ids)
        self.results: tuple[Any, ...] = ()

    @property
    def size(self) -> int:
        """How many rows it has."""
        return len(self.inputs[0])


class _Batch:
    """Tasks that are computed together.

    Args:
        deadline: when it is closed at the latest.
    """

    def __init__(self, deadline: float) -> None:
        self.deadline = deadline
        self.tasks: list[_Task] = []
        self.closed = self.begun = self.done = False
        self.error: BaseException | None = None

    @property
    def size(self) -> int:
        """How many rows it has."""
        return sum(task.size for task in self.tasks)

    @property
    def due(self) -> bool:
        """Whether it has been open for long enough."""
        return self.closed or time.monotonic() >= self.deadline

    def together(self, size: int) -> list[Array]:
        """The tasks' inputs one below the other, the first row repeated up to a size."""
        columns = zip(*(task.inputs for task in self.tasks), strict=True)
        return [self._joined(column, size) for column in columns]

    def _joined(self, column: Sequence[Array], size: int) -> Array:
        first = column[0].shape
        for i, part in enumerate(column):
            if part.ndim != len(first):
                raise invalid(
                    f"Ranks of all input tensors should match: shape[0] = {dims(first)} vs. "
                    f"shape[{i}] = {dims(part.shape)}"
                )
            if part.shape[1:] != first[1:]:
                raise invalid(
                    f"Dimensions of inputs should match: shape[0] = {dims(first)} vs. "
                    f"shape[{i}] = {dims(part.shape)}"
                )
        filling = [column[0][:1]] * (size - self.size)
        return np.concatenate([*column, *filling])


class Batcher:
    """Where steps meet: a batch that is open, and those that wait for their turn.

    Args:
        threads: how many batches may be computed at the same time.
        size: how many rows a batch may have.
        timeout: for how many seconds it stays open.
        waiting: how many batches may wait.
        allowed: the sizes that batches are filled up to; none for any size.

    Raises:
        InvalidArgumentError: one of them is out of range.
    """

    def __init__(
        self, threads: int, size: int, timeout: float, waiting: int, allowed: Sequence[int]
    ) -> None:
        self.changed = threading.Condition()
        self.size, self.timeout, self.allowed = size, timeout, allowed
        self._waiting_at_most, self._threads = waiting, threads
        self._open: _Batch | None = None
        self._waiting = self._running = 0

    def filled(self, size: int) -> int:
        """The size that a batch of a size is filled up to."""
        return next((allowed for allowed in self.allowed if allowed >= size), size)

    def run(self, task: _Task, work: Work, wait: Wait) -> None:
        """Puts a task into a batch, and returns when `work` has given it its results.

        `work` is called by the last task of a batch.

        Raises:
            InvalidArgumentError: the task is larger than a batch.
            UnavailableError: too many batches wait.
            OpError: what `work` raised.
        """
        with self.changed:
            batch = self._join(task)

            def leave() -> None:
                self._withdraw(batch, task)

            def turn() -> bool:
                return batch.done or (
                    not batch.begun and batch.tasks[-1] is task and self._running < self._threads
                )

            try:
                wait(self.changed, lambda: batch.due, leave, deadline=batch.deadline)
                self._close(batch)
                wait(self.changed, turn, leave)
            except BaseException:
                leave()
                raise
            if not batch.done:
                batch.begun = True
                self._running += 1
                self._waiting -= 1
        if batch.begun and batch.tasks[-1] is task:
            self._carry_out(batch, work)
        elif isinstance(batch.error, Exception):
            raise batch.error
        elif batch.error is not None:
            raise errors.AbortedError(
                None, None, "The step that computed the batch was interrupted."
            )

    def _carry_out(self, batch: _Batch, work: Work) -> None:
        try:
            work(batch)
        except BaseException as e:
            batch.error = e
            raise
        finally:
            with self.changed:
                self._running -= 1
                batch.done = True
                self.changed.notify_all()

    def _join(self, task: _Task) -> _Batch:
        if task.size > self.size:
            raise invalid(f"Task size {task.size} is larger than maximum batch size {self.size}")
        batch = self._open
        if batch is not None and batch.size + task.size > self.size:
            if self._waiting >= self._waiting_at_most:
                raise errors.UnavailableError(
                    None, None,
                    "The batch scheduling queue to which this task was submitted is full",
                )  # fmt: skip
            self._close(batch)
            batch = None
        if batch is None:
            batch = self._open = _Batch(time.monotonic() + self.timeout)
            self._waiting += 1
        batch.tasks.append(task)
        if batch.size >= self.size:
            self._close(batch)
        return batch

    def _close(self, batch: _Batch) -> None:
        if self._open is batch:
            self._open = None
        if not batch.closed:
            batch.closed = True
            self.changed.notify_all()

    def _withdraw(self, batch: _Batch, task: _Task) -> None:
        """A task goes before its batch is computed, which is another's to compute if it was its."""
        if batch.begun or task not in batch.tasks:
            return
        batch.tasks.remove(task)
        if not batch.tasks:
            self._close(batch)
            self._waiting -= 1
        self.changed.notify_all()


def _batcher(sig: NodeSig) -> Callable[[], Batcher]:
    """What gives the batcher of a node, or the one that it shares by name."""
    attrs, resources = sig.attrs, sig.resources
    assert resources is not None
    allowed = [int(size) for size in attrs["allowed_batch_sizes"]]
    if any(a >= b for a, b in itertools.pairwise(allowed)):
        raise invalid("allowed_batch_sizes entries must be monotonically increasing")
    if allowed and allowed[-1] != attrs["max_batch_size"]:
        raise invalid("final entry in allowed_batch_sizes must equal max_batch_size")
    for name in ("num_batch_threads", "max_batch_size"):
        if attrs[name] <= 0:
            raise invalid(f"{name} must be positive; was {attrs[name]}")
    for name in ("batch_timeout_micros", "max_enqueued_batches"):
        if attrs[name] < 0:
            raise invalid(f"{name} must be non-negative; was {attrs[name]}")
    shared = f"{attrs['shared_name'] or sig.name}\n{attrs['batching_queue']}"

    def make() -> Batcher:
        return Batcher(
            attrs["num_batch_threads"], attrs["max_batch_size"],
            attrs["batch_timeout_micros"] * _MICRO, attrs["max_enqueued_batches"], allowed,
        )  # fmt: skip

    return lambda: resources.get_or_create("batcher", attrs["container"], shared, make)


def _checked(values: Sequence[Any]) -> list[Array]:
    arrays = [np.asarray(v) for v in values]
    for array in arrays:
        if not array.ndim:
            raise invalid("Batching input tensors must have at least one dimension")
        if len(array) != len(arrays[0]):
            raise invalid(
                "Batching input tensors supplied in a given op invocation must have equal "
                "0th-dimension size"
            )
    return arrays


@portable(
    "Batch", host_inputs=("in_tensors",), host_outputs=("batched_tensors", "batch_index", "id")
)
def batch(xp: Any, sig: NodeSig) -> Any:
    """Puts tensors together with those of other steps: the last of them gets all."""
    found = _batcher(sig)
    assert sig.resources is not None
    wait = sig.resources.wait

    def run(*values: Any) -> tuple[Any, ...]:
        batcher, task = found(), _Task(_checked(values))

        def work(batch: _Batch) -> None:
            rows = batch.together(batcher.filled(batch.size))
            ends = list(itertools.accumulate(t.size for t in batch.tasks))
            index = [(t.id, end - t.size, end) for t, end in zip(batch.tasks, ends, strict=True)]
            for other in batch.tasks:
                none = (*(v[:0] for v in other.inputs), np.zeros((0, 3), np.int64))
                other.results = (*none, np.array(other.id, np.int64))
            batch.tasks[-1].results = (*rows, np.array(index, np.int64), task.results[-1])

        batcher.run(task, work, wait)
        return task.results

    return run


@portable(
    "BatchFunction", host_inputs=("in_tensors", "captured_tensors"), host_outputs=("out_tensors",)
)
def batch_function(xp: Any, sig: NodeSig) -> Any:
    """Calls a function of the tensors of several steps, and gives each its rows of the results."""
    found, call, count = _batcher(sig), sig.function("f").instance(), len(sig.attrs["Tin"])
    assert sig.resources is not None
    wait = sig.resources.wait

    def run(*values: Any) -> Any:
        batcher, task = found(), _Task(_checked(values[:count]), values[count:])

        def work(batch: _Batch) -> None:
            size = batcher.filled(batch.size)
            outputs = [np.asarray(y) for y in call([*batch.together(size), *task.captured])]
            for output in outputs:
                if not output.ndim:
                    raise _failed("Batched output tensor has 0 dimensions")
                if len(output) != size:
                    raise _failed(
                        "Batched output tensor's 0th dimension does not equal the sum of the 0th "
                        "dimension sizes of the input tensors"
                    )
            start = 0
            for other in batch.tasks:
                other.results = tuple(y[start : start + other.size] for y in outputs)
                start += other.size

        batcher.run(task, work, wait)
        return task.results if len(task.results) != 1 else task.results[0]

    return run


def _failed(text: str) -> errors.FailedPreconditionError:
    return errors.FailedPreconditionError(None, None, text)


class Meeting:
    """Where parts of batches wait for the steps that they belong to."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self._parts: dict[int, tuple[float, Array]] = {}
        self._awaited: set[int] = set()

    def take(self, own: int, parts: dict[int, Array], timeout: float, wait: Wait) -> Array:
        """Leaves the parts of a batch, and waits for the own one.

        Raises:
            AlreadyExistsError: another step has the same number, or a part came twice.
            DeadlineExceededError: it does not come in time.
        """
        with self.changed:
            now = time.monotonic()
            deadline = now + timeout
            # Those whose steps have given up.
            self._parts = {k: p for k, p in self._parts.items() if p[0] >= now}
            if own in self._awaited:
                raise errors.AlreadyExistsError(
                    None, None, "Multiple session runs with the same batch key."
                )
            if own not in self._parts:
                self._leave(parts, deadline)
            self._awaited.add(own)
            try:
                wait(
                    self.changed,
                    lambda: own in self._parts or time.monotonic() >= deadline,
                    deadline=deadline,
                )
            finally:
                self._awaited.discard(own)
            if own not in self._parts:
                raise errors.DeadlineExceededError(
                    None, None, "Batched data did not arrive within timeout window."
                )
            return self._parts.pop(own)[1]

    def _leave(self, parts: dict[int, Array], deadline: float) -> None:
        if not self._parts.keys().isdisjoint(parts):
            raise errors.AlreadyExistsError(
                None, None, "Multiple tensors returned for same batch key."
            )
        self._parts.update((key, (deadline, part)) for key, part in parts.items())
        self.changed.notify_all()


@portable(
    "Unbatch", host_inputs=("batched_tensor", "batch_index", "id"),
    host_outputs=("unbatched_tensor",),
)  # fmt: skip
def unbatch(xp: Any, sig: NodeSig) -> Any:
    """The part of a batch that is the step's own, whichever step has the batch."""
    resources, timeout = sig.resources, sig.attrs["timeout_micros"] * _MICRO
    container, name = sig.attrs["container"], sig.attrs["shared_name"] or sig.name
    assert resources is not None

    def run(batched: Any, index: Any, own: Any) -> Any:
        data, rows = np.asarray(batched), np.asarray(index)
        if rows.ndim != 2 or rows.shape[1] != 3:
            raise invalid(
                "Wrong shape for index tensor. Expected 1st dimension size to be 3 ; Got: "
                f"{rows.shape[-1] if rows.ndim > 1 else dims(rows.shape)}."
            )
        if len(rows) > len(data):
            raise invalid(
                "Wrong shape for index tensor. Expected 0th dimension size to be no greater than "
                f"{len(data)}; Got: {len(rows)}."
            )
        if sum(int(end - start) for _, start, end in rows) > len(data):
            raise invalid("Sum of split sizes must not exceed dim0-size of input tensor")
        parts = {int(key): data[int(start) : int(end)] for key, start, end in rows}
        meeting = resources.get_or_create("unbatch", container, name, Meeting)
        return meeting.take(int(own), parts, timeout, resources.wait)

    return run


class Gathering:
    """Where the gradients of the parts of batches come together."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self._grads: dict[int, Array] = {}

    def give(self, own: int, grad: Array, members: Sequence[int], wait: Wait) -> Array:
        """Leaves the gradient of a part; whoever has a batch waits for those of all its members.

        Raises:
            InvalidArgumentError: there is one of that number.
        """
        with self.changed:
            if own in self._grads:
                raise invalid("Two runs with the same batch key.")
            self._grads[own] = grad
            self.changed.notify_all()
            if not members:
                return grad[:0]
            give_up = lambda: self._grads.pop(own, None)
            wait(self.changed, lambda: self._grads.keys() >= set(members), give_up)
            return np.concatenate([self._grads.pop(member) for member in members])


@portable(
    "UnbatchGrad", host_inputs=("original_input", "batch_index", "grad", "id"),
    host_outputs=("batched_grad",),
)  # fmt: skip
def unbatch_grad(xp: Any, sig: NodeSig) -> Any:
    """The gradient of a batch, where the step has one, of those of its parts."""
    resources = sig.resources
    container, name = sig.attrs["container"], sig.attrs["shared_name"] or sig.name
    assert resources is not None

    def run(batched: Any, index: Any, grad: Any, own: Any) -> Any:
        members = [int(row[0]) for row in np.asarray(index)] if np.size(batched) else []
        if np.size(batched) and not members:
            raise invalid("batch_index is empty while the tensor isn't.")
        gathering = resources.get_or_create("unbatch_grad", container, name, Gathering)
        return gathering.give(int(own), np.asarray(grad), members, resources.wait)

    return run


__all__ = ["Batcher", "Gathering", "Meeting"]
