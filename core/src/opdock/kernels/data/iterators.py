"""Iterators as resources: what sessions keep of datasets between steps."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from opdock import errors
from opdock.dtypes import DType
from opdock.kernels.data.base import (
    Dataset,
    DatasetIterator,
    Element,
    Memory,
    check_fits,
    invalid,
    unwrap,
)
from opdock.kernels.data.context import Context
from opdock.kernels.data.memory import moved
from opdock.kernels.data.state import SavedState, load, save
from opdock.kernels.select.cells import Resources
from opdock.shapes import Shape
from opdock.util.locks import Turn, entered_again

__all__ = ["IteratorResource", "iterator_of", "single_element"]

_serial = itertools.count()


class IteratorResource:
    """A place for an iterator over datasets of one kind of elements.

    Args:
        name: for messages.
        types, shapes: of the elements; no types for any elements.
        resources: of the session.
    """

    def __init__(
        self, name: str, types: Sequence[DType], shapes: Sequence[Shape], resources: Resources
    ) -> None:
        self.name, self.types, self.shapes = name, tuple(types), tuple(shapes)
        self.handle = f"{name}/{next(_serial)}".encode()
        self._resources = resources
        self._iterator: DatasetIterator | None = None
        self._dataset: Dataset | None = None
        self._context = Context()
        self._fresh = False
        self._memory: Memory | None = None
        self._condition = threading.Condition()
        self._user = 0  # the thread that it works for
        self._begins = Turn(f"The iterator {name} begins")
        self._begun = False
        self._failed: errors.OpError | None = None

    # ------------------------------------------------------------ one user at a time
    def _enter(self) -> None:
        with self._condition:
            while self._user:
                if self._user == threading.get_ident():
                    raise entered_again(f"The iterator {self.name} is used")
                self._resources.wait(self._condition, lambda: not self._user)
            self._user = threading.get_ident()

    def _leave(self) -> None:
        with self._condition:
            self._user = 0
            self._condition.notify()

    # ------------------------------------------------------------ use
    def begin(self, dataset: Dataset) -> None:
        """Begins to iterate over a dataset, anew.

        Raises:
            InvalidArgumentError: its elements are of another kind.
        """
        if self.types:
            check_fits(self.types, self.shapes, dataset.types, dataset.shapes)
        context = Context(dataset)
        fresh = dataset.iterator(context)
        self._enter()
        try:
            old, self._iterator = self._iterator, fresh
            self._dataset, self._context = dataset, context
            self._fresh, self._memory = dataset.fresh, dataset.memory
        finally:
            self._leave()
        if old is not None:
            old.close()

    def begin_once(self, make: Callable[[], Dataset]) -> None:
        """Begins to iterate over the dataset that `make` gives, the first time."""
        with self._begins.taken():
            if not self._begun:
                self._begun = True
                try:
                    self.begin(make())
                except errors.OpError as e:
                    self._failed = e
        if self._failed is not None:
            raise self._failed.with_traceback(None)

    def next(self, memory: Memory | None = None) -> Element:
        """The next element, of arrays that nobody else holds.

        Args:
            memory: of the device where they are wanted; None for the host.

        Raises:
            FailedPreconditionError: no dataset has been given yet.
            OutOfRangeError: there is no other.
        """
        element = self.next_or_none(memory)
        if element is None:
            raise errors.OutOfRangeError(None, None, "End of sequence")
        return element

    def next_or_none(self, memory: Memory | None = None) -> Element | None:
        """The next element, or None at the end; see `next`."""
        self._enter()
        try:
            if self._iterator is None:
                raise _uninitialized("GetNext", "getting the next element")
            element = self._resources.insist(self._iterator.next, self._iterator.prepare)
            if element is None and self._iterator is None:
                # What ends because the session does is no end of the sequence.
                raise errors.CancelledError(None, None, "The iterator was closed.")
            if element is None:
                return None
            if self._memory is not memory:
                return moved(element, self._memory, memory)
            if self._fresh:
                return element
            return tuple([v.copy() if isinstance(v, np.ndarray) else v for v in element])
        finally:
            self._leave()

    def save(self) -> SavedState:
        """Where the iterator stands.

        Raises:
            FailedPreconditionError: no dataset has been given yet.
                Or a function has state that would not be saved with it.
            UnimplementedError: what it holds cannot be saved.
        """
        self._enter()
        try:
            if self._iterator is None:
                raise _uninitialized("Save", "saving it")
            context = self._context
            outside = context.outside()
            if outside is not None:
                raise errors.FailedPreconditionError(
                    None, None,
                    f"{outside} is stateful: an iterator over a dataset whose function has state "
                    "of that kind cannot be saved, as its state would not be saved with it.",
                )  # fmt: skip
            with context.standing_still():
                state = {**context.save(self._iterator), "streams": context.streams()}
            return save(state)
        finally:
            self._leave()

    def restore(self, saved: Any) -> None:
        """Goes to where an iterator over an equal dataset stood, whatever was taken before.

        Raises:
            FailedPreconditionError: no dataset has been given yet.
            DataLossError: what was saved is damaged, or is of another dataset: the iterator has to
                be initialized again.
        """
        self._enter()
        try:
            if self._iterator is None or self._dataset is None:
                raise _uninitialized("Restore", "restoring it")
            state = load(unwrap(saved))
            # The old one first, as both may keep a file of the same name.
            old, self._iterator = self._iterator, None
            old.close()
            context = Context(self._dataset)
            fresh = self._dataset.iterator(context)
            try:
                context.restore(fresh, state)
                context.resume(state["streams"])
            except BaseException as e:
                fresh.close()
                if not isinstance(e, _MISFITS):
                    raise
                raise errors.DataLossError(
                    None, None, f"The saved state is not one of the dataset of {self.name}: {e!r}"
                ) from e
            self._iterator, self._context = fresh, context
        finally:
            self._leave()

    def close(self) -> None:
        """Ends the iterator's threads; the session is over."""
        iterator, self._iterator = self._iterator, None
        if iterator is not None:
            iterator.close()


_MISFITS: Final = (KeyError, TypeError, ValueError, IndexError, AttributeError)
"""What iterators stumble over in a state of another dataset."""


def _uninitialized(call: str, purpose: str) -> errors.FailedPreconditionError:
    return errors.FailedPreconditionError(
        None, None,
        f"{call}() failed because the iterator has not been initialized. Ensure that you have run "
        f"the initializer operation for this iterator before {purpose}.",
    )  # fmt: skip


def iterator_of(handle: Any) -> IteratorResource:
    """The iterator of a handle.

    Raises:
        InvalidArgumentError: it is a handle of something else.
    """
    found = unwrap(handle)
    if not isinstance(found, IteratorResource):
        raise invalid(f"The handle is not one of an iterator: {type(found).__name__}")
    return found


def single_element(dataset: Dataset) -> Element:
    """The one element of a dataset.

    Raises:
        InvalidArgumentError: it has none, or several.
    """
    iterator = dataset.iterator(Context(dataset))
    try:
        element = iterator.next()
        if element is None:
            raise invalid("Dataset was empty.")
        if iterator.next() is not None:
            raise invalid("Dataset had more than one element.")
        return element
    finally:
        iterator.close()
