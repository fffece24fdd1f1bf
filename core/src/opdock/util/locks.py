"""A lock that the members of one group hold together, and what `fork` leaves of locks."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from opdock import errors

__all__ = ["GroupLock", "Turn", "entered_again", "renew"]


def renew(condition: threading.Condition) -> None:
    """Makes a condition one that nobody holds, in a child of `fork` where who did is not there.

    All who know the condition go on with it.
    """
    threading.Condition.__init__(condition)


class GroupLock:
    """Lets threads of one group in at the same time, and of no other group.

    Args:
        num_groups: how many groups there are.

    Raises:
        ValueError: there is no group.
    """

    def __init__(self, num_groups: int = 2) -> None:
        if num_groups < 1:
            raise ValueError(f"num_groups must be a positive integer, got {num_groups}")
        self._changed = threading.Condition()
        self._group_member_counts = [0] * num_groups

    @contextmanager
    def group(self, group_id: int) -> Iterator[None]:
        """Holds the lock for a group while it is open."""
        self.acquire(group_id)
        try:
            yield
        finally:
            self.release(group_id)

    def acquire(self, group_id: int) -> None:
        """Waits until no other group holds the lock, and joins those of the group that do.

        Raises:
            ValueError: there is no such group.
        """
        self._check(group_id)
        with self._changed:
            self._changed.wait_for(
                lambda: sum(self._group_member_counts) == self._group_member_counts[group_id]
            )
            self._group_member_counts[group_id] += 1

    def release(self, group_id: int) -> None:
        """Leaves the lock to whoever waits, if none of the group is left.

        Raises:
            ValueError: there is no such group.
        """
        self._check(group_id)
        with self._changed:
            self._group_member_counts[group_id] -= 1
            if not self._group_member_counts[group_id]:
                self._changed.notify_all()

    def _check(self, group_id: int) -> None:
        count = len(self._group_member_counts)
        if not 0 <= group_id < count:
            raise ValueError(f"group_id={group_id} should be between 0 and num_groups={count}")


class Turn:
    """A lock around what cannot be entered again before it is left.

    A thread that has it and comes again, as in a signal handler, would wait for itself.

    Args:
        what: what is done in a turn, for the error.
    """

    def __init__(self, what: str) -> None:
        self._what, self._lock, self._taken = what, threading.RLock(), False

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Has the lock while it is open.

        Raises:
            AbortedError: this thread has it already.
        """
        with self._lock:
            if self._taken:
                raise entered_again(self._what)
            try:
                self._taken = True
                yield
            finally:
                self._taken = False


def entered_again(what: str) -> errors.AbortedError:
    """The error of a thread that comes into the middle of what it is doing itself."""
    return errors.AbortedError(
        None, None,
        f"{what} in this thread already, and can neither go on nor begin anew before what came in "
        "between is over: a signal handler, or a function that is part of it.",
    )  # fmt: skip
