"""Tensor arrays: what their kernels work on. An array lives for one step."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opdock import shapes
from opdock.dtypes import DType, proto_name
from opdock.kernels.array_api import dims, invalid
from opdock.kernels.expr.elements import Element
from opdock.kernels.expr.turns import CLEARED, READ, WRITTEN, Rows
from opdock.shapes import Shape

__all__ = ["TensorArrayState", "shape_of"]


class TensorArrayState:
    """An array with the arrays of its gradients.

    What is known of the places stands in lists: a loop makes, writes and reads an array of as many
    as it has turns.

    Args:
        name: for messages.
        dtype: of the elements.
        size: the number of places.
        element_shape: what every element must fit.
        device: where most elements are.
        dynamic: whether writing beyond the end makes it longer.
        clear: whether reading an element drops it.
        alike: whether every element must fit the first.
        adds: whether writing an element again adds to it, as gradients do.

    Attributes:
        lock: of whoever works on the elements.
    """

    def __init__(
        self, name: str, dtype: DType, size: int, element_shape: Shape, device: Any,
        dynamic: bool = False, clear: bool = False, alike: bool = False, adds: bool = False,
    ) -> None:  # fmt: skip
        self.name, self.dtype, self.element_shape = name, dtype, element_shape
        self.dynamic, self.clear, self.alike, self.adds = dynamic, clear, alike, adds
        self.closed = False
        self._marked: int | None = None
        self._device = device
        # A buffer, or an `Element` that another device holds; None where there is nothing.
        self._values: list[Any] = [None] * size
        self._shapes: list[tuple[int, ...] | None] = [None] * size
        self._marks = bytearray(size)
        # All elements as one array, while a loop has them so: then the lists above say nothing, and
        # the marks say as well what is there. Others may hold what is lent.
        self._rows: np.ndarray[Any, Any] | None = None
        self._lent = False
        self.lock = threading.RLock()
        self._gradients: dict[str, TensorArrayState] = {}

    def __len__(self) -> int:
        return len(self._marks)

    @property
    def filled(self) -> int:
        """How many elements belong together as one tensor.

        Of an array of gradients they are as many as one tensor gave to the array itself, which may
        have grown since.
        """
        return len(self) if self._marked is None or not self.adds else self._marked

    @property
    def first_shape(self) -> Shape:
        """The shape of the elements, as far as the first one that is there says; None if none."""
        if self._rows is not None:
            return tuple(self._rows.shape[1:])
        return next((s for s in self._shapes if s is not None), None)

    def mark(self) -> None:
        """One tensor gave all elements that there are."""
        if not self.adds:
            self._marked = len(self)

    def read(self) -> TensorArrayState:
        """What a reference refers to, where an op takes it as a string: still the array."""
        return self

    def close(self) -> None:
        """Drops the elements; further use is an error."""
        self._values, self._shapes, self._marks, self._rows = [], [], bytearray(), None
        self.closed = True

    def gradient(
        self, source: str, prepend: tuple[int, ...] = (), anew: bool = False
    ) -> TensorArrayState:
        """The array of gradients that one computation collects.

        Args:
            source: which computation.
            prepend: dimensions that its elements have in front of those of the array's.
            anew: whether the computation begins, and has none yet.
        """
        with self.lock:
            found = self._gradients.get(source)
            if found is None or anew:
                fits = None if self.element_shape is None else (*prepend, *self.element_shape)
                found = TensorArrayState(
                    f"{self.name}@{source}", self.dtype, len(self), fits, self._device, adds=True
                )
                found._marked = self._marked
                self._list()
                found._shapes = [None if s is None else (*prepend, *s) for s in self._shapes]
                self._gradients[source] = found
            return found

    # ------------------------------------------------------------ all elements as one array
    def adopt(self, places: Sequence[int], values: Any, device: Any, dtype: DType) -> bool:
        """Takes a host array's rows as all its elements, if that is all there is to it.

        Args:
            places: where they go.
            values: the array; nobody changes it during the step.
            device: has the array.
            dtype: its element type.

        Returns:
            Whether it did; otherwise `write_all` does.
        """
        count = len(places)
        if not isinstance(values, np.ndarray) or values.dtype.hasobject:
            return False
        with self.lock:
            if not (count == len(self) and list(places) == list(range(count))):
                return False
            shape = values.shape[1:]
            if self._rows is not None or any(self._marks) or not self._is_empty():
                return False
            if dtype is not self.dtype or device is not self._device or not self._fits(shape):
                return False
            if self.alike:
                self.element_shape = shape
            self._rows, self._lent = values, True
            self._marks = bytearray([WRITTEN]) * count
            return True

    def rows(self, dtype: DType, shape: tuple[int, ...], writes: bool, adds: bool) -> Rows | None:
        """The elements one after the other in host memory, for a loop that has the lock.

        Args:
            dtype, shape: of the elements.
            writes: whether the loop writes elements, rather than read them.
            adds: whether it takes what it writes where an element is for a sum.

        Returns:
            The very elements of the array; None if they are others, elsewhere, or none to be had.
        """
        alike = dtype is self.dtype and self._fits(shape) and not self.closed
        if not alike or (writes and adds is not self.adds):
            return None
        if self._device is not None and not self._device.is_host:
            return None
        if self._rows is None and not self._gather(shape):
            return None
        assert self._rows is not None
        if self._rows.shape[1:] != shape or self._rows.dtype != dtype.np:
            return None
        if writes and self.alike:
            self.element_shape = shape
        if (writes and self._lent) or not self._rows.flags.c_contiguous:
            self._rows, self._lent = self._rows.copy(order="C"), False
        mark = WRITTEN if writes else WRITTEN | READ | (CLEARED if self.clear else 0)
        return Rows(self._rows, np.frombuffer(self._marks, np.uint8), mark)

    def take_rows(self, places: Sequence[int], device: Any, dtype: DType) -> Any:
        """All elements as one array, if they are one; None otherwise: `take_all` has them then."""
        count = len(places)
        with self.lock:
            rows = self._rows
            if rows is None or dtype is not self.dtype or device is not self._device:
                return None
            there = all(m & (WRITTEN | CLEARED) == WRITTEN for m in set(self._marks))
            if not (there and count == len(self) and list(places) == list(range(count))):
                return None
            mark = WRITTEN | READ | (CLEARED if self.clear else 0)
            self._marks = bytearray([mark]) * count
            # Nobody asks again for what is cleared.
            return rows if self.clear and not self._lent else rows.copy()

    def _gather(self, shape: tuple[int, ...]) -> bool:
        """Puts the elements into one array, where all have the shape and are in host memory."""
        there = [v is not None for v in self._values]
        taken = [v for v in self._values if v is not None]
        if any(not isinstance(v, (np.ndarray, np.generic)) or v.shape != shape for v in taken):
            return False
        rows = np.empty((len(self), *shape), self.dtype.np)
        if taken:
            rows[there] = taken
        self._rows, self._lent = rows, False
        # What is cleared was there.
        self._marks = bytearray(
            m | WRITTEN if t or m & CLEARED else m for m, t in zip(self._marks, there, strict=True)
        )
        return True

    def _list(self) -> None:
        """Back from one array to single elements."""
        if self._rows is None:
            return
        rows, marks = self._rows, self._marks
        shape = rows.shape[1:]
        self._values = [
            rows[i, ...] if m & (WRITTEN | CLEARED) == WRITTEN else None
            for i, m in enumerate(marks)
        ]
        self._shapes = [
            shape if m & WRITTEN else s for m, s in zip(marks, self._shapes, strict=True)
        ]
        self._marks, self._rows = bytearray(m & ~WRITTEN for m in marks), None

    def _is_empty(self) -> bool:
        return set(map(type, self._values)) <= {type(None)}

    def _fits(self, shape: tuple[int, ...]) -> bool:
        return shapes.is_compatible(self.element_shape, shape)

    # ------------------------------------------------------------ writing
    def write(
        self, index: int, value: Any, device: Any, dtype: DType, add: Callable[[Any, Any], Any]
    ) -> None:
        """Stores an element; where the place is taken and the array adds, the sum by `add`.

        Args:
            index: where.
            value: its buffer.
            device: has the buffer.
            dtype: its element type.
            add: of two buffers.

        Raises:
            InvalidArgumentError: the index, the type or the shape does not fit, or the place is
                taken.
        """
        if dtype is not self.dtype:
            raise self._mistyped(dtype)
        shape = shape_of(value)
        with self.lock:
            self._list()
            if not 0 <= index < len(self._values):
                self._grow(index)
            if shape != self.element_shape:
                self._fit(index, shape)
            if self._marks[index] or self._values[index] is not None:
                value = self._sum(index, value, device, add)
            self._values[index] = value if device is self._device else Element(value, device)
            self._shapes[index] = shape

    def write_all(
        self, places: Sequence[int], values: list[Any], device: Any, dtype: DType,
        add: Callable[[Any, Any], Any],
    ) -> None:  # fmt: skip
        """Stores elements; see `write`."""
        count = len(values)
        if count < 2 or count != len(self) or list(places) != list(range(count)):
            for index, value in zip(places, values, strict=True):
                self.write(index, value, device, dtype, add)
            return
        shape = shape_of(values[0])
        with self.lock:
            self._list()
            # Rows of one array to an array that is empty.
            fresh = not any(self._marks) and self._is_empty()
            alike = device is self._device and all(shape_of(v) == shape for v in values)
            if fresh and alike and dtype is self.dtype:
                self._fit(0, shape)
                self._values, self._shapes = values[:], [shape] * count
                return
            for index, value in enumerate(values):
                self.write(index, value, device, dtype, add)

    def _mistyped(self, dtype: DType) -> Exception:
        return invalid(
            f"TensorArray dtype is {proto_name(self.dtype)} but Op is trying to write dtype "
            f"{proto_name(dtype)}."
        )

    def _fit(self, index: int, shape: tuple[int, ...]) -> None:
        if not self._fits(shape):
            raise self._error(
                f"Could not write to TensorArray index {index} because the value shape is "
                f"{dims(shape)} which is incompatible with the TensorArray's inferred element "
                f"shape: {shapes.text(self.element_shape)} (consider setting "
                "infer_shape=False)."
            )
        if self.alike:
            self.element_shape = shape

    def _sum(
        self, index: int, value: Any, device: Any, add: Callable[[Any, Any], Any]
    ) -> Any:  # fmt: skip
        """What a place that was written or read before has when a value is written there."""
        if self._marks[index] or not self.adds:
            raise self._error(
                f"Could not write to TensorArray index {index} because it has already been "
                f"{'read' if self._marks[index] else 'written to'}."
            )
        old = self._here(self._values[index], device)
        if shape_of(old) != shape_of(value):
            raise self._error(
                f"Could not aggregate to TensorArray index {index} because the existing shape is "
                f"{dims(shape_of(old))} but the new input shape is {dims(shape_of(value))}."
            )
        return add(old, value)

    def _grow(self, index: int) -> None:
        if index < 0 or not self.dynamic:
            raise self._error(
                f"Tried to write to index {index} but array is not resizeable and size is: "
                f"{len(self)}"
            )
        more = index + 1 - len(self)
        self._values += [None] * more
        self._shapes += [None] * more
        self._marks += bytes(more)

    # ------------------------------------------------------------ reading
    def _here(self, value: Any, device: Any) -> Any:
        """The buffer of an element where a device can use it."""
        if type(value) is Element:
            return value.on(device)
        return value if device is self._device else Element(value, self._device).on(device)

    def take(
        self, index: int, device: Any, dtype: DType, zeros: Callable[[tuple[int, ...]], Any]
    ) -> Any:
        """An element, or zeros for one that was not written.

        Args:
            index: which.
            device: where it is wanted.
            dtype: the type that is expected.
            zeros: makes them, of a shape.

        Raises:
            InvalidArgumentError: the type is another, there is no such element, or it was read
                before.
        """
        if dtype is not self.dtype:
            raise self.unexpected(dtype)
        with self.lock:
            self._list()
            if not 0 <= index < len(self._values):
                raise self._error(
                    f"Tried to read from index {index} but array size is: {len(self)}"
                )
            if self._marks[index] & CLEARED:
                raise self._error(
                    f"Could not read index {index} twice because it was cleared after a previous "
                    "read (perhaps try setting clear_after_read = false?)."
                )
            value = self._values[index]
            shape = self._unwritten(index) if value is None else ()
            self._marks[index] = READ
            if value is None:
                return zeros(shape)
            if self.clear:
                self._values[index], self._marks[index] = None, READ | CLEARED
        return value if device is self._device and type(value) is not Element else (
            self._here(value, device)
        )  # fmt: skip

    def unexpected(self, dtype: DType) -> Exception:
        """The error of an op that expects elements of another type."""
        return invalid(
            f"TensorArray dtype is {proto_name(self.dtype)} but Op requested dtype "
            f"{proto_name(dtype)}."
        )

    def take_all(
        self, places: Sequence[int], device: Any, dtype: DType,
        zeros: Callable[[tuple[int, ...]], Any],
    ) -> list[Any]:  # fmt: skip
        """Elements; see `take`."""
        count = len(places)
        with self.lock:
            self._list()
            whole = count == len(self) and list(places) == list(range(count))
            if whole and dtype is self.dtype and device is self._device and self._is_full():
                taken, self._marks = self._values, bytearray([READ]) * count
                if self.clear:
                    self._marks = bytearray([READ | CLEARED]) * count
                    self._values = [None] * count
                return taken[:]
            return [self.take(i, device, dtype, zeros) for i in places]

    def _is_full(self) -> bool:
        """Whether all elements are there, and on the array's device."""
        kinds = set(map(type, self._values))
        return kinds.isdisjoint((type(None), Element))

    def _unwritten(self, index: int) -> tuple[int, ...]:
        """The shape of the zeros that stand for an element."""
        found = self._shapes[index]
        if found is not None:
            return found
        known = self.element_shape
        if known is None or None in known:
            raise self._error(
                f"Could not read from TensorArray index {index}.  Furthermore, the element shape "
                f"is not fully defined: {shapes.text(known)}.  It is possible you are working with "
                "a resizeable TensorArray and stop_gradients is not allowing the gradients to be "
                "written.  If you set the full element_shape property on the forward TensorArray, "
                "the proper all-zeros tensor will be returned instead of incurring this error."
            )
        return tuple(int(d) for d in known if d is not None)

    def _error(self, text: str) -> Exception:
        return invalid(f"TensorArray {self.name}: {text}")


def shape_of(value: Any) -> tuple[int, ...]:
    """That of an element; a list of tensors, or another variant, is one thing."""
    return tuple(getattr(value, "shape", ()))
