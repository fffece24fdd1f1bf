"""The barriers behind TF's handles: incomplete tuples by key, and a queue of those complete."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opdock.plugin import DType, Turn, dtypes, errors
from opdock_cpu import queues
from opdock_cpu.queues import Queue, Shape, Wait

__all__ = ["Barrier"]

Array = np.ndarray[Any, Any]


class _Incomplete:
    """A tuple with gaps.

    Args:
        index: the number of the call that began it.
        size: how many components it has.
    """

    def __init__(self, index: int, size: int) -> None:
        self.index = index
        self.components: list[Array | None] = [None] * size


class Barrier:
    """A map from keys to tuples of tensors, whose components come one by one.

    Args:
        container: where it is.
        name: its own.
        types: the element types of a tuple's components.
        shapes: their shapes; None where nothing is known.
    """

    def __init__(
        self, container: str, name: str, types: Sequence[DType], shapes: Sequence[Shape]
    ) -> None:
        self.container, self.name = container, name
        self.types, self.shapes = tuple(types), tuple(shapes)
        self._ready = Queue(
            "PriorityQueue", f"{name}_queue", [dtypes.int64, dtypes.string, *types],
            [(), (), *shapes], -1, queues.smallest_first(),
        )  # fmt: skip
        # Held while a tuple goes over into the queue, so that the sizes agree.
        self._turn = Turn(f"The barrier {name} is changed")
        self._incomplete: dict[bytes, _Incomplete] = {}
        self._next_index = -(2**63)
        self._closed = self._cancels = False

    def read(self) -> Array:
        """What a reference to it is to those who look at its value: where it is found."""
        return np.array([(self.container or "localhost").encode(), self.name.encode()], object)

    @property
    def ready(self) -> int:
        """How many tuples are complete."""
        return len(self._ready)

    @property
    def incomplete(self) -> int:
        """How many tuples were begun and lack components."""
        return len(self._incomplete)

    # ------------------------------------------------------------ insert
    def insert(self, component: int, keys: Sequence[bytes], values: Array, wait: Wait) -> None:
        """Gives one component to each key; all of them or, with an error, none.

        Raises:
            CancelledError: the barrier is closed, and a key is new.
            InvalidArgumentError: there is no such component, a key has it, or a row does not fit.
        """
        self._check_values(component, keys, values)
        with self._turn.taken():
            self._check_keys(component, keys)
            begun = False
            for key, row in zip(keys, values, strict=False):
                found = self._incomplete.get(key)
                if found is None:
                    found = _Incomplete(self._next_index, len(self.types))
                    self._incomplete[key] = found
                    begun = True
                # A copy: the caller's buffer may be a program's own.
                found.components[component] = np.array(row, values.dtype)
                if all(c is not None for c in found.components):
                    self._complete(key, found, wait)
            self._next_index += begun
            if self._closed and not self._incomplete and not self._ready.closed:
                self._ready.end(False, wait)

    def _check_values(self, component: int, keys: Sequence[bytes], values: Array) -> None:
        if not 0 <= component < len(self.types):
            raise errors.InvalidArgumentError(
                None, None,
                f"The component ID is out of range {component} > num_components "
                f"(= {len(self.types)})",
            )  # fmt: skip
        if not keys:
            return
        if not values.size:
            raise errors.InvalidArgumentError(
                None, None,
                f"Tensors with no elements are not supported {self.name}: received shape "
                f"{list(values.shape)}",
            )  # fmt: skip
        shape = self.shapes[component]
        wanted = (len(keys), *(values.shape[1:] if shape is None else shape))
        if values.shape != wanted:
            raise errors.InvalidArgumentError(
                None, None,
                f"Shape mismatch in component {component} of barrier {self.name}. Expected "
                f"{list(wanted)}, got {list(values.shape)}",
            )  # fmt: skip

    def _check_keys(self, component: int, keys: Sequence[bytes]) -> None:
        about = (
            f"Pending enqueues cancelled: {self._cancels}.  Number of new insertions: {len(keys)}. "
            f" Number of incomplete keys: {len(self._incomplete)}."
        )
        if self._closed and (self._cancels or (keys and not self._incomplete)):
            raise errors.CancelledError(None, None, f"Barrier {self.name} is closed.  {about}")
        given: set[bytes] = set()
        for key in keys:
            found = self._incomplete.get(key)
            if found is None and self._closed:
                raise errors.CancelledError(
                    None, None,
                    f"Barrier {self.name} is closed, but attempted to insert a brand new key: "
                    f"{key.decode(errors='replace')}.  {about}",
                )  # fmt: skip
            # The last component completes a key, which is another one from then on.
            alone = len(self.types) == 1
            taken = found is not None and found.components[component] is not None
            if taken or (key in given and not alone):
                raise errors.InvalidArgumentError(
                    None, None,
                    f"Key {key.decode(errors='replace')} already has a value for component "
                    f"{component} in barrier {self.name}",
                )  # fmt: skip
            given.add(key)

    def _complete(self, key: bytes, found: _Incomplete, wait: Wait) -> None:
        name = np.empty((), object)
        name[()] = key
        del self._incomplete[key]
        components = (c for c in found.components if c is not None)
        self._ready.enqueue((np.array(found.index, np.int64), name, *components), wait)

    # ------------------------------------------------------------ take
    def take(self, count: int, small: bool, wait: Wait) -> tuple[Array, ...]:
        """Tuples that are complete, as rows of indices, keys and components.

        Args:
            count: how many.
            small: whether fewer will do once the barrier is closed.
            wait: waits until a condition holds.

        Raises:
            OutOfRangeError: the barrier is closed, and there will be too few.
        """
        with self._turn.taken():
            if self._closed:
                there = self.ready if small else self.ready + self.incomplete
                count = min(count, there) if small else count
                if there < max(count, 1):
                    raise errors.OutOfRangeError(
                        None, None,
                        f"Barrier '{self.name}' is closed and has insufficient elements "
                        f"(requested {count}, total size {there})",
                    )  # fmt: skip
        return self._ready.dequeue_many(count, small, wait)

    # ------------------------------------------------------------ the end
    def end(self, cancels: bool, wait: Wait) -> None:
        """No key is new from now on.

        Args:
            cancels: whether what was begun is dropped.
            wait: waits until a condition holds.

        Raises:
            CancelledError: the barrier is closed already, and drops no less.
        """
        with self._turn.taken():
            if self._closed and (self._cancels or not cancels):
                raise errors.CancelledError(None, None, f"Barrier '{self.name}' is already closed.")
            self._closed, self._cancels = True, cancels
            if cancels:
                self._incomplete.clear()
            if not self._incomplete and not self._ready.closed:
                self._ready.end(cancels, wait)
