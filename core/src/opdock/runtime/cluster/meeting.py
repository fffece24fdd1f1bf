"""Members of groups in several tasks: all come to one of them, the leader."""

from __future__ import annotations

import contextlib
import functools
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final

from opdock import errors
from opdock.plugins.clusters import while_asked
from opdock.runtime.cancellation import Cancellation, PostponedError, check, postponable, wait
from opdock.runtime.cluster.messages import Message
from opdock.runtime.cluster.peers import Peer
from opdock.runtime.meetings import Coming, Meetings, Wait

__all__ = ["Far", "Visitors"]

_REMEMBERED: Final = 4096


class Far:
    """A place in another task.

    Args:
        connect: gives the way to it.
    """

    def __init__(self, connect: Callable[[], Peer]) -> None:
        self._connect = connect

    def meet(self, coming: Coming, wait: Wait) -> Any:
        """What all values are together.

        Raises:
            OpError: as for `Place.meet`; or the leader is gone.
        """
        if postponable.get():
            raise PostponedError
        leader, ticket = self._connect(), secrets.token_hex(8)
        fields = coming._asdict()
        value = fields.pop("value")
        values = [] if value is None else [value]
        changed = threading.Condition()

        def arrived(_: Any) -> None:
            with changed:
                changed.notify_all()

        def leave() -> None:
            with contextlib.suppress(errors.OpError):  # it is gone, and the meeting with it
                leader.tell(Message("leave", {"ticket": ticket}))

        answer = leader.ask(Message("meet", {"ticket": ticket, **fields}, values))
        answer.add_done_callback(arrived)
        with changed:
            wait(changed, answer.done, leave)
        return answer.result().tensors[0]


class Visitors:
    """Members in other tasks that come to the meetings of this one.

    Args:
        meetings: the task's.
    """

    def __init__(self, meetings: Meetings) -> None:
        self._meetings = meetings
        self._lock = threading.RLock()
        self._ends: OrderedDict[str, Cancellation] = OrderedDict()

    def _end(self, ticket: str) -> tuple[Cancellation, bool]:
        """What ends the waiting of a visitor, and whether it was known before."""
        with self._lock:
            known = ticket in self._ends
            if not known:
                self._ends[ticket] = Cancellation("The step was cancelled in its task.")
                while len(self._ends) > _REMEMBERED:
                    self._ends.popitem(last=False)
            return self._ends[ticket], known

    def meet(self, request: Message) -> Message:
        """Has a visitor wait for the others.

        Raises:
            AbortedError: it has come before: the request was carried twice.
            OpError: as for `Place.meet`.
        """
        fields = dict(request.fields)
        end, known = self._end(fields.pop("ticket"))
        check((end,))
        if known:
            raise errors.AbortedError(
                None, None,
                f"{fields['node']} of {fields['task']} has come before: its request came twice.",
            )  # fmt: skip
        group, instance = fields.pop("key")
        value = request.tensors[0] if request.tensors else None
        coming = Coming((group, instance), value=value, **fields)
        with while_asked(end.cancel):
            return Message("met", {}, [self._meetings.meet(coming, functools.partial(wait, end))])

    def leave(self, request: Message) -> Message:
        """Takes a visitor back, be it that it is still to come."""
        self._end(request.fields["ticket"])[0].cancel()
        return Message("left")
