"""The queues behind TF's handles: elements in order, in random order, padded, or by priority.

Who wants something of a queue is an attempt in a line. Whoever changes the queue carries on all
attempts that can be, as TensorFlow's do, so a dequeue that makes room has let the next enqueue in
before it returns. A dequeue of many takes what there is and waits for the rest, where the order
allows it; what it took goes back if it does not get all of it, so no element is lost.
"""

from __future__ import annotations

import functools
import heapq
import itertools
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Protocol

import numpy as np

from opdock.plugin import DType, RandomStream, errors
from opdock_cpu.philox import Philox

__all__ = ["Queue", "first_come", "shuffled", "smallest_first", "texts"]

Array = np.ndarray[Any, Any]
Element = tuple[Array, ...]
Shape = tuple[int | None, ...] | None
_BLOCKS: Final = 16
"""Blocks of random words that are computed at a time."""
Wait = Callable[[threading.Condition, Callable[[], bool], Callable[[], None]], None]


class _Store(Protocol):
    """What holds the elements of a queue.

    Attributes:
        together: whether all elements of a batch must be there at once, or it would be out of
            order.
    """

    together: bool

    def __len__(self) -> int: ...

    def put(self, element: Element) -> None:
        """Adds an element."""

    def take(self) -> Element:
        """Takes the next element."""

    def untake(self, elements: Sequence[Element]) -> None:
        """Puts back what was taken last, in the order in which it was taken."""


class _Attempt:
    """What somebody wants of a queue.

    Args:
        what: for messages.
        work: does what can be done; whether that was all.
        undo: takes back what was done, where it cannot be finished.

    Attributes:
        over: whether it is finished or given up.
        error: why it was given up.
        cancelled: what is said of one that waits for no longer.
    """

    def __init__(
        self, what: str, work: Callable[[], bool], undo: Callable[[], None] = lambda: None
    ) -> None:  # fmt: skip
        self.over = False
        self.error: BaseException | None = None
        self.cancelled = f"{what} operation was cancelled"
        self._work, self._undo = work, undo

    def advance(self) -> bool:
        """Does what can be done; whether it is over."""
        try:
            self.over = self._work()
        except errors.OpError as e:
            self.end(e)
        return self.over

    def end(self, error: BaseException | None) -> None:
        """Gives it up."""
        self._undo()
        self.over, self.error = True, error


class Queue:
    """A bounded queue of tuples of tensors.

    Args:
        kind: the op that makes it, for messages.
        name: its own.
        types: the element types of a tuple's components.
        shapes: their shapes; empty where nothing is known.
        capacity: how many elements there may be; negative for any number.
        store: holds the elements.
        keeps: how many elements a dequeue leaves while the queue is open.
        pads: whether components of a batch are padded to one shape.
        seeds: what the order was drawn from, if it was.
    """

    def __init__(
        self, kind: str, name: str, types: Sequence[DType], shapes: Sequence[Shape], capacity: int,
        store: _Store, keeps: int = 0, pads: bool = False, seeds: tuple[int, int] | None = None,
    ) -> None:  # fmt: skip
        self.kind, self.name = kind, name
        self.types, self.shapes = tuple(types), tuple(shapes)
        self.capacity, self.keeps, self.pads, self.seeds = capacity, keeps, pads, seeds
        self._store = store
        self._changed = threading.Condition()
        self._closed = False
        self._moves = 0
        self._enqueuing: deque[_Attempt] = deque()
        self._dequeuing: deque[_Attempt] = deque()

    # ------------------------------------------------------------ facts
    def __len__(self) -> int:
        return len(self._store)

    @property
    def closed(self) -> bool:
        """Whether nothing more may be enqueued."""
        return self._closed

    def read(self) -> Array:
        """What a reference to it is to those who look at its value: where it is found."""
        return np.array([b"localhost", self.name.encode()], object)

    def check(self, op: str, types: Sequence[DType]) -> None:
        """Whether an op's components have the queue's types.

        Raises:
            InvalidArgumentError: they have not.
        """
        if tuple(t.base_dtype for t in types) != self.types:
            mine, theirs = (", ".join(t.name for t in ts) for ts in (self.types, types))
            raise errors.InvalidArgumentError(
                None, None,
                f"{op} on {self.kind} '{self.name}': expected component types ({mine}), "
                f"got ({theirs})",
            )  # fmt: skip

    def same(self, other: Queue) -> None:
        """Whether a node that shares the queue asks for one like it.

        Raises:
            InvalidArgumentError: it does not.
        """
        facts = [
            ("type", self.kind, other.kind),
            ("capacity", self.capacity, other.capacity),
            ("min_after_dequeue", self.keeps, other.keeps),
            ("component types", [t.name for t in self.types], [t.name for t in other.types]),
            ("component shapes", texts(self.shapes), texts(other.shapes)),
        ]
        if other.seeds != (0, 0):  # else it asks for any
            facts.append(("random seeds", self.seeds, other.seeds))
        for what, have, want in facts:
            if have != want:
                raise errors.InvalidArgumentError(
                    None, None,
                    f"Shared queue '{self.name}' has {what} {_plain(have)} but requested {what} "
                    f"was {_plain(want)}",
                )  # fmt: skip

    # ------------------------------------------------------------ enqueue
    def enqueue(self, element: Element, wait: Wait) -> None:
        """Adds an element when there is room.

        Raises:
            CancelledError: the queue is closed.
            InvalidArgumentError: a component has another shape than the queue's.
        """
        self._check_shapes(element)
        self._enqueue([element], wait)

    def enqueue_many(self, batches: Element, wait: Wait) -> None:
        """Adds an element for each row of the components, one by one.

        Raises:
            CancelledError: the queue was closed.
            InvalidArgumentError: the components have differing numbers of rows, or rows of a
                wrong shape.
        """
        counts = {a.shape[0] if a.ndim else None for a in batches}
        if None in counts or len(counts) != 1:
            found = ", ".join(_text(a.shape) for a in batches)
            raise errors.InvalidArgumentError(
                None, None,
                f"All input tensors must have the same size in the 0th dimension, got {found}",
            )  # fmt: skip
        self._check_shapes(batches, many=True)
        (count,) = counts
        self._enqueue([tuple(a[i] for a in batches) for i in range(count or 0)], wait)

    def _enqueue(self, elements: Sequence[Element], wait: Wait) -> None:
        # Copies: the caller's buffers may be a program's own. Of a type that is told: NumPy's own
        # type of strings would take the zero bytes at their ends away.
        types = [dtype.np for dtype in self.types]
        left = deque(
            tuple(np.array(a, dtype) for a, dtype in zip(element, types, strict=True))
            for element in elements
        )

        def advance() -> bool:
            if self._closed:
                raise errors.CancelledError(None, None, self._says("is closed."))
            while left and (self.capacity < 0 or len(self._store) < self.capacity):
                self._store.put(left.popleft())
                self._moves += 1
            return not left

        self._carry_out(self._enqueuing, _Attempt("Enqueue", advance), wait)

    # ------------------------------------------------------------ dequeue
    def dequeue(self, wait: Wait) -> Element:
        """The next element, when there is one.

        Raises:
            OutOfRangeError: the queue is closed and empty.
        """
        (element,) = self._take(1, False, wait)
        return element

    def dequeue_many(self, count: int, up_to: bool, wait: Wait) -> Element:
        """The next elements as rows of the components.

        Args:
            count: how many.
            up_to: whether fewer will do once the queue is closed.
            wait: waits until a condition holds.

        Raises:
            OutOfRangeError: the queue is closed and has too few.
            InvalidArgumentError: the queue does not know the shapes of its components.
        """
        if count < 0:
            op = "DequeueUpTo" if up_to else "DequeueMany"
            raise errors.InvalidArgumentError(
                None, None, f"{op} requires a non-negative number of elements, got {count}"
            )
        known = len(self.shapes) == len(self.types) and None not in self.shapes
        if not known or not (self.pads or all(None not in (s or ()) for s in self.shapes)):
            raise errors.InvalidArgumentError(
                None, None,
                f"{self.kind}'s DequeueMany and DequeueUpTo require the components to have "
                "specified shapes.",
            )  # fmt: skip
        rows = self._take(count, up_to, wait) if count else []
        return tuple(
            self._batch([row[i] for row in rows], dtype, shape or ())
            for i, (dtype, shape) in enumerate(zip(self.types, self.shapes, strict=True))
        )

    def _take(self, count: int, up_to: bool, wait: Wait) -> list[Element]:
        taken: list[Element] = []

        def advance() -> bool:
            if not self._closed and self._store.together and len(self._store) < count:
                return False
            while len(taken) < count and len(self._store) > (0 if self._closed else self.keeps):
                taken.append(self._store.take())
                self._moves += 1
            if len(taken) == count or (self._closed and up_to and taken):
                return True
            if self._closed:
                size = len(self._store) + len(taken)
                raise errors.OutOfRangeError(
                    None, None,
                    self._says(
                        "is closed and has insufficient elements "
                        f"(requested {count}, current size {size})"
                    ),
                )  # fmt: skip
            return False

        undo = functools.partial(self._store.untake, taken)
        self._carry_out(self._dequeuing, _Attempt("Dequeue", advance, undo), wait)
        return taken

    def _batch(self, rows: Sequence[Array], dtype: DType, shape: tuple[int | None, ...]) -> Array:
        if not self.pads or None not in shape:
            full = tuple(n or 0 for n in shape)
            return np.stack(rows) if rows else np.empty((0, *full), dtype.np)
        sizes = [max((r.shape[d] for r in rows), default=0) for d in range(len(shape))]
        filler = b"" if dtype.np.kind == "O" else 0
        out = np.full((len(rows), *sizes), filler, dtype.np)
        for i, row in enumerate(rows):
            out[i][tuple(map(slice, row.shape))] = row
        return out

    # ------------------------------------------------------------ the end
    def end(self, cancel_pending: bool, wait: Wait) -> None:
        """Nothing more is enqueued; what is there can be dequeued.

        Args:
            cancel_pending: whether those who wait for room give up; else they come first.
            wait: waits until a condition holds.

        Raises:
            CancelledError: the queue is closed already.
        """

        def advance() -> bool:
            if self._closed:
                raise errors.CancelledError(None, None, self._says("is already closed."))
            self._closed = True
            return True

        with self._changed:
            while cancel_pending and self._enqueuing:
                given_up = self._enqueuing.popleft()
                given_up.end(errors.CancelledError(None, None, given_up.cancelled))
        self._carry_out(self._enqueuing, _Attempt("Close", advance), wait)

    # ------------------------------------------------------------ helpers
    def _carry_out(self, line: deque[_Attempt], attempt: _Attempt, wait: Wait) -> None:
        """Joins a line, and waits until the attempt is over."""

        def give_up() -> None:
            if attempt in line:
                line.remove(attempt)
            attempt.end(None)
            self._carry_on()

        with self._changed:
            try:
                line.append(attempt)
                self._carry_on()
                wait(self._changed, lambda: attempt.over, give_up)
            except errors.CancelledError as e:
                text = f"{attempt.cancelled}: {e.message}"
                raise errors.CancelledError(None, None, text) from None
            except BaseException:
                # An interrupt from the keyboard.
                if not attempt.over:
                    give_up()
                raise
        if attempt.error is not None:
            raise attempt.error

    def _carry_on(self) -> None:
        """Carries on the attempts until no more can be done; the caller holds the condition."""
        moves = -1
        while moves != self._moves:
            moves = self._moves
            for line in (self._enqueuing, self._dequeuing):
                while line and line[0].advance():
                    line.popleft()
        self._changed.notify_all()

    def _says(self, text: str) -> str:
        return f"{self.kind} '{self.name}' {text}"

    def _check_shapes(self, element: Element, many: bool = False) -> None:
        for i, (array, shape) in enumerate(zip(element, self.shapes)):
            if shape is None:
                continue
            wanted = (array.shape[0], *shape) if many else shape
            if len(array.shape) != len(wanted) or any(
                n not in (None, m) for n, m in zip(wanted, array.shape, strict=True)
            ):
                raise errors.InvalidArgumentError(
                    None, None,
                    f"Shape mismatch in tuple component {i}. Expected {_text(wanted)}, "
                    f"got {_text(array.shape)}",
                )  # fmt: skip


def _text(shape: Sequence[int | None]) -> str:
    return "[" + ",".join("?" if n is None else str(n) for n in shape) + "]"


def texts(shapes: Sequence[Shape]) -> list[str]:
    """Shapes as messages write them."""
    return ["<unknown>" if s is None else _text(s) for s in shapes]


def _plain(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(value) + "]"
    return f"'{value}'" if isinstance(value, str) else str(value)


# ---------------------------------------------------------------- stores
class _First:
    """First in, first out."""

    together = False

    def __init__(self) -> None:
        self._elements: deque[Element] = deque()

    def __len__(self) -> int:
        return len(self._elements)

    def put(self, element: Element) -> None:
        self._elements.append(element)

    def take(self) -> Element:
        return self._elements.popleft()

    def untake(self, elements: Sequence[Element]) -> None:
        self._elements.extendleft(reversed(elements))


class _Random:
    """Any, with equal chances: the one that is taken is replaced by the last.

    Args:
        stream: where the choices come from: a word each.
    """

    together = False

    def __init__(self, stream: RandomStream) -> None:
        self._elements: list[Element] = []
        self._words = _words(stream)

    def __len__(self) -> int:
        return len(self._elements)

    def put(self, element: Element) -> None:
        self._elements.append(element)

    def take(self) -> Element:
        elements = self._elements
        i = next(self._words) % len(elements)
        elements[i], elements[-1] = elements[-1], elements[i]
        return elements.pop()

    def untake(self, elements: Sequence[Element]) -> None:
        self._elements.extend(elements)


def _words(stream: RandomStream) -> Iterator[int]:
    while True:
        yield from Philox(*stream.reserve(_BLOCKS)).blocks(_BLOCKS).reshape(-1).tolist()


class _Sorted:
    """The smallest number first; of equal ones that which came first."""

    together = True

    def __init__(self) -> None:
        self._elements: list[tuple[int, int, Element]] = []
        self._count = itertools.count()

    def __len__(self) -> int:
        return len(self._elements)

    def put(self, element: Element) -> None:
        heapq.heappush(self._elements, (int(element[0]), next(self._count), element))

    def take(self) -> Element:
        return heapq.heappop(self._elements)[2]

    def untake(self, elements: Sequence[Element]) -> None:
        before = -len(elements)
        for i, element in enumerate(elements):
            # Before all that have the same priority now.
            heapq.heappush(self._elements, (int(element[0]), before + i, element))


def first_come() -> _Store:
    """Keeps the order."""
    return _First()


def shuffled(stream: RandomStream) -> _Store:
    """Gives elements in an order that a random stream decides."""
    return _Random(stream)


def smallest_first() -> _Store:
    """Gives the element whose first component, an integer, is smallest."""
    return _Sorted()
