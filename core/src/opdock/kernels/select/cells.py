"""State as kernels see it: variables, and what else a session keeps between steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from threading import Condition
from typing import Any, Protocol, TypeVar

from opdock.dtypes import DType

__all__ = ["Background", "Cell", "Resources", "UserCall", "UserFunction"]

T = TypeVar("T")


class Cell(Protocol):
    """A variable, as a kernel gets it for an input of a reference or a resource type.

    The value is a buffer of the kernel's device, wherever the variable lives. A buffer that was
    read stays as it is when the variable is written: kernels write another one, and never change
    what they read; `change` finds out whether anybody has. An update holds the lock from its read
    to its write:

        def add(cell, value):
            with cell.lock:
                cell.write(cell.read() + value)
    """

    @property
    def name(self) -> str:
        """The variable's name, for messages."""

    @property
    def dtype(self) -> DType | None:
        """The element type, where the op that made the variable says it."""

    @property
    def lock(self) -> AbstractContextManager[Any]:
        """Keeps other updates out; the thread that holds it may take it again."""

    @property
    def initialized(self) -> bool:
        """Whether there is a value."""

    def read(self) -> Any:
        """The value's buffer.

        Raises:
            FailedPreconditionError: the variable has no value yet.
            NotFoundError: it is a resource variable, and has none yet.
            UnavailableError: the value was lost with the device that held it.
        """

    def write(self, buffer: Any) -> None:
        """Makes a buffer the value; the caller does not change it afterwards."""

    @staticmethod
    def write_all(cells: Sequence[Any], buffers: Sequence[Any], /) -> None:
        """Writes several variables of this one's device, itself among them or not."""

    def change(self, own: Callable[[Any, bool], Any], write: Callable[[Any], None]) -> None:
        """Has a part of the value written, without a copy of the rest where nobody would see it.

        The caller holds the lock. Until this ends, whoever else reads the value waits.

        Args:
            own: the buffer to write, from that of the value and whether nobody else holds that: the
                same then if it can be written, else a copy.
            write: changes what has to be changed, and raises nothing once it has begun.

        Raises:
            OpError: as `read`.
        """

    def clear(self) -> None:
        """Takes the value away."""


class UserCall(Protocol):
    """A call of a user's function, from host arrays to host arrays."""

    def __call__(self, values: Sequence[Any], places: Sequence[Any] = (), /) -> Sequence[Any]:
        """The results, whose arrays nobody else holds.

        Args:
            values: the arguments.
            places: for each result an array of its type and shape, or None. A result may be written
                there: if it was, the array is the result.
        """

    def streams(self) -> dict[str, tuple[int, int]]:
        """Where the function's random streams stand, by the names of their ops."""

    def resume(self, streams: Mapping[str, tuple[int, int]], /) -> None:
        """Has the function's random streams go on where others stood."""


class UserFunction(Protocol):
    """A function of the user's that an op's attribute names."""

    @property
    def name(self) -> str:
        """What its graph calls it."""

    def instance(self, last: bool = False) -> UserCall:
        """The function, its random streams at their beginning.

        It is compiled when it is called first. Several threads may call it at once.

        Args:
            last: it is called when all is over, to clean up. Other calls raise CancelledError once
                the session or the step is to end.
        """

    def by_rows(self) -> UserFunction | None:
        """The function of many elements at once; None where it has to be called for each.

        Parameters that are no captures, and results, have a row for each element. It has neither
        state nor effects: where it fails, the elements can be had one by one.
        """

    def reads_files(self) -> bool:
        """Whether it makes a dataset of the files that its first argument names."""

    @property
    def stateful(self) -> bool:
        """Whether an op of it is stateful, one that draws random numbers among them."""

    def outside(self) -> str | None:
        """An op type of it whose state lies elsewhere, and is not saved with the function.

        None where there is none. Random streams are the function's own.
        """


class Background(Protocol):
    """Work that goes on beside the steps of a session, in a thread of its own."""

    def stop(self) -> None:
        """Ends what the thread waits for, and has whatever it waits for later end at once."""

    def join(self) -> None:
        """Waits until the thread has ended, unless this is it."""


class Resources(Protocol):
    """What a session keeps between steps: `NodeSig.resources`."""

    @property
    def lasting(self) -> Resources:
        """The same for what lives as long as the state that the session shares with others.

        Sessions with one server share what has a name. What one of them has made there, such as an
        iterator, is to wait through this: the end of that session ends no waiting here.
        """

    def get_or_create(
        self, kind: str, container: str, name: str, factory: Callable[[], Any]
    ) -> Any:
        """The resource of that kind, container and name, made by `factory` when missing.

        One with a `close` method is closed when its container is cleared or the session ends.
        """

    def get_or_create_own(
        self, kind: str, container: str, name: str, factory: Callable[[], Any]
    ) -> Any:
        """The same for a resource that no other session is to find, and that ends with this one."""

    def get(self, kind: str, container: str, name: str) -> Any:
        """The resource, or None."""

    def delete(self, kind: str, container: str, name: str) -> bool:
        """Forgets a resource; whether there was one."""

    def wait(
        self,
        condition: Condition,
        ready: Callable[[], bool],
        give_up: Callable[[], None] = lambda: None,
        deadline: float | None = None,
    ) -> None:
        """Waits until `ready()`: how a kernel waits for another step.

        The caller holds the condition, and whoever changes what `ready` looks at notifies it.
        `give_up` is called, under the condition too, in the moment in which the waiting is
        cancelled, so that nothing is handed to somebody who is no longer there. Where `ready` holds
        from some time on, `deadline` is that time, in seconds of the monotonic clock.

        Raises:
            CancelledError: the session was closed, or the step's time is over.
        """

    def insist(self, work: Callable[[], T], prepare: Callable[[], None]) -> T:
        """The result of some work that waits wherever it has to.

        A kernel that would wait while the rest of its step could go on is stopped, and called again
        later. What has taken something by then has to go on instead.

        Args:
            work: takes something, and waits.
            prepare: waits for as much as it can before anything is taken; called if need be.
        """

    def meet(self, key: tuple[int, int], node: str, size: int, how: str, value: Any) -> Any:
        """What the values of a group's members are together, as soon as all have come.

        Args:
            key: group and instance.
            node: the node's name.
            size: how many members there are.
            how: what is made of the values: `kernels/portable/collective.py`.
            value: the member's own, in host memory; None if it only receives.
        """

    def apart(self, call: Callable[[], T]) -> T:
        """The result of a user's function: the step can leave it behind, as long as it may take.

        Raises:
            CancelledError: the session was closed before the function returned.
        """

    def background(self, work: Callable[[], None], name: str) -> Background:
        """Starts `work` in a thread that the end of the session or the interpreter stops."""

    def node_state(self, node_name: str, factory: Callable[[], Any]) -> Any:
        """What belongs to one node, made by `factory` when missing, such as a random stream."""
