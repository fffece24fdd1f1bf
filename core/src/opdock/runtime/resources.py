"""Session state: variables and whatever else outlives a step (queues, random counters)."""

from __future__ import annotations

import copy
import functools
import os
import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Final, Self, TypeVar

from opdock import errors
from opdock.devices.segment import Loan
from opdock.dtypes import DType
from opdock.kernels.select.streams import RandomStream
from opdock.runtime import background
from opdock.runtime.cancellation import Cancellation, insist, wait
from opdock.runtime.handing import apart
from opdock.runtime.meetings import Coming, Meetings, Place
from opdock.util.lazy import lazy

T = TypeVar("T")
NO_BUFFER: Final = frozenset({type(None), Loan})
"""The types of what a variable's box may have in place of a buffer of its own."""


def _holders(box: list[Any]) -> tuple[int, int]:
    """How many references there are to a box, and to what is in it."""
    return sys.getrefcount(box), sys.getrefcount(box[0])


def _of_nobody() -> tuple[int, int]:
    """What `_holders` counts if only a local variable and a list of who asks have the box."""
    box = [object()]
    now = [box]  # noqa: F841
    return _holders(box)


_ALONE: Final = _of_nobody()
_guard: Final = threading.RLock()
"""Held while what is in a box is looked at and replaced. One for all variables, so that many can be
written in a moment; never held while anything is computed, so an assignment waits for no update."""
if hasattr(os, "register_at_fork"):  # a child must not find it held by a thread that it lacks
    os.register_at_fork(
        before=_guard.acquire, after_in_parent=_guard.release, after_in_child=_guard.release
    )


class View:
    """What some variables hold, kept for as long as nobody writes any variable.

    It keeps no value longer than the variable does: whoever writes finds buffers that nobody else
    holds, as without it.

    Attributes:
        values: in the order of the variables; None where it would have to be looked for.
    """

    __slots__ = ("__weakref__", "values")

    def __init__(self) -> None:
        self.values: tuple[Any, ...] | None = None

    def look(self, cells: Sequence[Cell]) -> tuple[Any, ...]:
        """What they hold by now; kept if all of it are buffers of their own."""
        me = weakref.ref(self, _views.discard)
        with _guard:
            _views.add(me)
            found = tuple([cell.box[0] for cell in cells])
            # A signal handler that has written meanwhile has struck the view off.
            if NO_BUFFER.isdisjoint(map(type, found)) and me in _views:
                self.values = found
        return found


_views: Final[set[weakref.ref[View]]] = set()
"""Those that have values."""


def _forget() -> None:
    """Whoever has replaced a box calls this, with the guard, if there are views.

    Not before: a signal handler may come in between, and have a view look at what is replaced.
    """
    for ref in tuple(_views):
        if (view := ref()) is not None:
            view.values = None
    _views.clear()


class Cell:
    """A variable's storage: a buffer that is replaced, or changed while nobody else holds it.

    A step that has read a value keeps it, whatever is written later.

    Attributes:
        box: holds the buffer, a `Loan` of one, or None. Whoever gives another value puts another
            box here, so who kept the box of what it has read can tell whether somebody has.
        lock: held by whoever reads the value and writes what follows from it as one update.
        home: the device that holds the value; empty until a program has been bound to it.
        lost: why the value is gone, when the device that held it was lost.
    """

    __slots__ = (
        "box", "dtype", "home", "lock", "lost", "name", "resource",
    )  # fmt: skip

    def __init__(self, name: str, dtype: DType | None = None, resource: bool = False) -> None:
        self.name = name
        self.dtype = dtype
        self.resource = resource
        self.box: list[Any] = [None]
        self.home = ""
        self.lost = ""
        self.lock = threading.RLock()

    @property
    def initialized(self) -> bool:
        """Whether a value has been written."""
        return self.box[0] is not None

    @property
    def held_shape(self) -> tuple[int, ...] | None:
        """The shape of the value; None if there is none, or whoever has it borrowed decides."""
        value = self.box[0]
        return None if value is None or type(value) is Loan else tuple(value.shape)

    def read(self) -> Any:
        """The current buffer.

        Raises:
            FailedPreconditionError: nothing has been written yet.
            NotFoundError: nothing has been written yet to a resource variable.
            UnavailableError: the value was lost with the device that held it.
        """
        value = self.box[0]
        if type(value) is Loan:
            value = self.settle(value)
        if value is None and self.lost:
            raise errors.UnavailableError(
                None, None,
                f"The value of variable {self.name} is gone: {self.lost}. Initialize the variable "
                "again, or restore it from a checkpoint.",
            )  # fmt: skip
        if value is None and self.resource:
            what = f"Resource localhost/{self.name}/N10tensorflow3VarE does not exist."
            raise errors.NotFoundError(None, None, what)
        if value is None:
            what = f"Attempting to use uninitialized value {self.name}"
            raise errors.FailedPreconditionError(None, None, what)
        return value

    def settle(self, loan: Loan) -> Any:
        """A copy of what is lent, which is the value from now on if nobody has given another."""
        value = loan.settle()
        with _guard:
            if self.box[0] is loan:
                self.box[0] = value
        return value

    def write(self, buffer: Any) -> None:
        """Replaces the buffer."""
        with _guard:
            self.box = [buffer]
            if _views:
                _forget()

    @staticmethod
    def write_all(cells: Sequence[Cell], buffers: Sequence[Any]) -> None:
        """Replaces the buffers of several variables."""
        replace(cells, buffers, [None] * len(cells))

    def change(self, own: Callable[[Any, bool], Any], write: Callable[[Any], None]) -> None:
        """Has a part of the value written, in its own buffer if `own` so decides.

        Args:
            own: the buffer to write, from that of the value and whether nobody else holds that.
            write: changes what has to be changed.
        """
        self.read()  # an error if there is nothing, a copy of what is lent
        closed, now = threading.RLock(), list[list[Any]]()
        # An assignment comes in between or it does not: no thread that reads sees half of a change.
        loan = Loan(None, lambda _: self._read_after(closed, now, own), self)
        with closed:
            with _guard:
                box = self.box
                if box[0] is None or type(box[0]) is Loan:
                    raise errors.AbortedError(
                        None, None, f"Variable {self.name} was taken away while it was updated."
                    )
                now.append(box)
                self.box = lent = [loan]
                if _views:
                    _forget()
            try:
                alone = _holders(box) == _ALONE
                buffer = own(box[0], alone)
                now[0] = box = [buffer]
                write(buffer)
            finally:
                now.clear()
                with _guard:
                    # The box, as a signal handler that reads leaves a copy in it.
                    if self.box is lent:
                        self.box = box

    def _read_after(self, closed: Any, now: list[list[Any]], own: Callable[..., Any]) -> Any:
        with closed:
            # A signal handler in the middle of its own thread's change cannot wait for the rest.
            return own(now[0][0], False) if now else self.read()

    def clear(self) -> None:
        """Returns to the uninitialized state."""
        self.write(None)
        self.lost = ""

    def lose(self, reason: str) -> None:
        """Gives the value up: it was in the memory of a device that was lost."""
        self.write(None)
        self.lost = reason

    def __repr__(self) -> str:
        return f"<variable {self.name}>"


def replace(
    cells: Sequence[Cell], buffers: Sequence[Any], boxes: Sequence[list[Any] | None]
) -> None:
    """Gives variables the values that follow from what was in their boxes.

    What somebody has written since came later, and stays. Without a box a value is an assignment.
    """
    with _guard:
        for cell, buffer, box in zip(cells, buffers, boxes, strict=True):
            if box is None or cell.box is box:
                cell.box = [buffer]
        if _views:
            _forget()


class CellProxy:
    """A variable of another device: reads and writes copy."""

    __slots__ = ("_cell", "_to_home", "_to_local")

    def __init__(
        self, cell: Any, to_local: Callable[[Any], Any], to_home: Callable[[Any], Any]
    ) -> None:
        self._cell = cell
        self._to_local = to_local
        self._to_home = to_home

    @property
    def initialized(self) -> bool:
        """Whether a value has been written."""
        return bool(self._cell.initialized)

    @property
    def held_shape(self) -> tuple[int, ...] | None:
        """The shape of the value, if there is one."""
        found: tuple[int, ...] | None = self._cell.held_shape
        return found

    @property
    def lock(self) -> Any:
        """The lock of the variable itself."""
        return self._cell.lock

    @property
    def name(self) -> str:
        """The variable's name."""
        return str(self._cell.name)

    @property
    def dtype(self) -> Any:
        """The element type."""
        return self._cell.dtype

    def read(self) -> Any:
        """The value, copied to this device."""
        return self._to_local(self._cell.read())

    def write(self, buffer: Any) -> None:
        """Copies `buffer` to the variable's device and stores it."""
        self._cell.write(self._to_home(buffer))

    @staticmethod
    def write_all(cells: Sequence[Any], buffers: Sequence[Any]) -> None:
        """Writes several variables."""
        for cell, buffer in zip(cells, buffers, strict=True):
            cell.write(buffer)

    def change(self, own: Callable[[Any, bool], Any], write: Callable[[Any], None]) -> None:
        """Copies the value to this device, has it changed, and stores it."""
        buffer = own(self.read(), False)
        write(buffer)
        self.write(buffer)

    def clear(self) -> None:
        """Returns to the uninitialized state."""
        self._cell.clear()

    @property
    def home(self) -> Any:
        """The variable itself."""
        return self._cell


class Store:
    """Resources by kind, container and name, of one session or of all sessions of a server.

    Args:
        container: where resources are that name none.

    Attributes:
        cancellation: ends the waiting of what lasts as long as the store does.
    """

    def __init__(self, container: str = "localhost") -> None:
        self.container = container
        self.cancellation = Cancellation("Session was closed.", final=True)
        self.lock = threading.RLock()
        self.items: dict[tuple[str, str, str], Any] = {}

    def clear(self, containers: Sequence[str] = ()) -> bool:
        """Forgets everything, or everything in `containers`; whether there was anything."""
        with self.lock:
            doomed = [k for k in self.items if not containers or k[1] in containers]
            for key in doomed:
                # What was closed before may have taken others of them away with it.
                close = getattr(self.items.pop(key, None), "close", None)
                if callable(close):
                    close()
        return bool(doomed)


class ResourceManager:
    """Everything that a session keeps between steps, by container and name.

    Args:
        shared: what the session shares with others; without it all is its own.

    Attributes:
        cancellation: ends all waiting in the session.
        exchange: what comes from other tasks, where the session spans several.
        place: where the members of groups meet.
        task: what the session calls the task that this is.
    """

    def __init__(self, shared: Store | None = None) -> None:
        self._own = Store()
        self._store = self._own if shared is None else shared
        self.cancellation = self._own.cancellation
        self.exchange: Any = None
        self.place: Place = Meetings()
        self.task = ""
        self._lock = threading.RLock()
        self._node_state: dict[str, Any] = {}

    def cell(self, container: str, name: str, dtype: DType | None, resource: bool = False) -> Cell:
        """The variable of that name, made when missing."""
        factory = functools.partial(Cell, name, dtype, resource)
        return self.get_or_create("variable", container, name, factory)  # type: ignore[no-any-return]

    def get_or_create(
        self, kind: str, container: str, name: str, factory: Callable[[], Any]
    ) -> Any:
        """The resource of that kind, container and name, made by `factory` when missing."""
        key = (kind, container or self._store.container, name)
        with self._store.lock:
            found = self._store.items.get(key)
            if found is None:
                found = self._store.items[key] = factory()
            return found

    def get_or_create_own(
        self, kind: str, container: str, name: str, factory: Callable[[], Any]
    ) -> Any:
        """The same for a resource that is the session's own, and ends with it."""
        with self._own.lock:
            key = (kind, container or self._store.container, name)
            found = self._own.items.get(key)
            if found is None:
                found = self._own.items[key] = factory()
            return found

    def get(self, kind: str, container: str, name: str) -> Any:
        """The resource, or None."""
        return self._store.items.get((kind, container or self._store.container, name))

    def delete(self, kind: str, container: str, name: str) -> bool:
        """Forgets a resource; whether there was one."""
        with self._store.lock:
            return (
                self._store.items.pop((kind, container or self._store.container, name), None)
                is not None
            )

    def key_of(self, resource: Any) -> tuple[str, str, str] | None:
        """The kind, container and name of a resource; those made last are found first."""
        with self._store.lock:
            items = reversed(self._store.items.items())
            return next((key for key, found in items if found is resource), None)

    def node_state(self, node_name: str, factory: Callable[[], Any]) -> Any:
        """State that belongs to one node, such as the counter of a random op."""
        with self._lock:
            found = self._node_state.get(node_name)
            if found is None:
                found = self._node_state[node_name] = factory()
            return found

    def streams(self) -> dict[str, RandomStream]:
        """The random streams of the session's nodes, by name."""
        with self._lock:
            return {k: v for k, v in self._node_state.items() if isinstance(v, RandomStream)}

    @property
    def shares(self) -> bool:
        """Whether there is state that outlives the session."""
        return self._store is not self._own

    @property
    def lasting(self) -> ResourceManager:
        """The same for what lives as long as the state that the session shares with others.

        The end of the session ends no waiting there. Who waits there in a step of a session is
        told of its end by `current`.
        """
        return self if self.cancellation is self._store.cancellation else self._lasting

    @lazy
    def _lasting(self) -> ResourceManager:
        view = copy.copy(self)
        view.cancellation = self._store.cancellation
        return view

    def with_own_streams(self) -> Self:
        """The same resources, and random streams that begin anew."""
        view = copy.copy(self)
        view._node_state = {}
        return view

    def background(self, work: Callable[[], None], name: str) -> background.BackgroundThread:
        """Starts `work` in a thread that the end of the session or the interpreter stops."""
        return background.start(work, name, self.cancellation)

    def wait(
        self,
        condition: threading.Condition,
        ready: Callable[[], bool],
        give_up: Callable[[], None] = lambda: None,
        deadline: float | None = None,
    ) -> None:
        """Waits until `ready()`, as a kernel does; the caller holds the condition.

        Raises:
            CancelledError: the session was closed, or the step's time is over; `give_up` was
                called.
        """
        wait(self.cancellation, condition, ready, give_up, deadline)

    def meet(self, key: tuple[int, int], node: str, size: int, how: str, value: Any) -> Any:
        """What the values of a group's members are together, as soon as all have come.

        Raises:
            InvalidArgumentError: members do not agree, or their values do not fit each other.
            CancelledError: the session was closed, or the step's time is over.
        """
        return self.place.meet(Coming(key, self.task, node, size, how, value), self.wait)

    def insist(self, work: Callable[[], T], prepare: Callable[[], None]) -> T:
        """The result of some work that waits wherever it has to, rather than be done again."""
        return insist(work, prepare)

    def apart(self, call: Callable[[], T]) -> T:
        """The result of a user's function, which may outlast the session: then it is left behind.

        Raises:
            CancelledError: the session was closed before the function returned.
        """
        return apart(call, self.cancellation)

    def items(self, kind: str) -> list[Any]:
        """All resources of a kind."""
        return list(self.named(kind).values())

    def named(self, kind: str) -> dict[tuple[str, str], Any]:
        """All resources of a kind, by container and name."""
        with self._store.lock:
            return {key[1:]: v for key, v in self._store.items.items() if key[0] == kind}

    def close(self) -> None:
        """Ends all waiting, and forgets what is the session's own."""
        self.cancellation.cancel()
        with self._lock:
            self._node_state.clear()
        self._own.clear()
