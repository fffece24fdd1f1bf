"""Where the members of groups bring their values, and get what these are together."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import field
from typing import Any, NamedTuple, Protocol

from opdock import errors
from opdock.kernels.portable.collective import together
from opdock.late import record

__all__ = ["Coming", "Meetings", "Place", "Wait"]

Wait = Callable[[threading.Condition, Callable[[], bool], Callable[[], None]], None]
"""`ResourceManager.wait`."""


class Coming(NamedTuple):
    """A member that comes to a meeting.

    Attributes:
        key: group and instance.
        task: where the member is.
        node: what it is called there.
        size: how many are to come.
        how: what is made of the values.
        value: its own; None if it only receives.
    """

    key: tuple[int, int]
    task: str
    node: str
    size: int
    how: str
    value: Any

    @property
    def order(self) -> tuple[str, int, str]:
        """By task, and there in the order in which nodes of one name were made."""
        return self.task, len(self.node), self.node


class Place(Protocol):
    """Where members meet."""

    def meet(self, coming: Coming, wait: Wait) -> Any:
        """What all values are together, as soon as all have come.

        Raises:
            InvalidArgumentError: members do not agree on what they meet for.
            CancelledError: the member's step was cancelled; it is not there any more.
        """
        ...


@record(slots=True)
class _Meeting:
    size: int
    how: str
    there: dict[tuple[str, int, str], Any] = field(default_factory=dict)
    over: bool = False
    result: Any = None
    error: errors.OpError | None = None

    def end(self) -> None:
        try:
            self.result = together(self.how, [self.there[member] for member in sorted(self.there)])
        except errors.OpError as e:
            self.error = e
        except MemoryError as e:  # the others wait, and must hear of it
            text = f"What {len(self.there)} members have does not fit into memory: {e}"
            self.error = errors.ResourceExhaustedError(None, None, text)


class Meetings:
    """A place in this process."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._open: dict[tuple[int, int], _Meeting] = {}

    def meet(self, coming: Coming, wait: Wait) -> Any:
        """What all values are together: whoever comes last works it out."""
        with self._changed:
            meeting = self._open.setdefault(coming.key, _Meeting(coming.size, coming.how))
            if (meeting.size, meeting.how) != (coming.size, coming.how):
                raise errors.InvalidArgumentError(
                    None, None,
                    f"{coming.node} of {coming.task} comes to group and instance {coming.key} as "
                    f"one of {coming.size} for {coming.how}, others as of {meeting.size} for "
                    f"{meeting.how}",
                )  # fmt: skip
            meeting.there[coming.order] = coming.value
            last = len(meeting.there) == coming.size
            if last:
                del self._open[coming.key]
            else:
                wait(self._changed, lambda: meeting.over, lambda: self._leave(meeting, coming))
        if last:
            meeting.end()
            with self._changed:
                meeting.over = True
                self._changed.notify_all()
        if meeting.error is not None:
            raise type(meeting.error)(None, None, meeting.error.message)
        return meeting.result if last else meeting.result.copy()

    def _leave(self, meeting: _Meeting, coming: Coming) -> None:
        """A member goes before all have come, unless it has come again since."""
        if self._open.get(coming.key) is meeting:
            if meeting.there.get(coming.order) is coming.value:
                del meeting.there[coming.order]
            if not meeting.there:
                del self._open[coming.key]
