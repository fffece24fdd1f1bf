"""What tasks send each other in a step: put by whoever makes it, taken by whoever needs it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

import numpy as np

from opdock import errors
from opdock.compiler.ir.block import Node
from opdock.runtime.cancellation import Cancellation
from opdock.runtime.resources import ResourceManager

__all__ = ["Exchange", "bind_receive", "bind_send"]

_REMEMBERED: Final = 4096
Values = Sequence[Any]
Send = Callable[[str, int, str, Values], None]


class Wait(Protocol):
    """`ResourceManager.wait`."""

    def __call__(self, condition: threading.Condition, ready: Callable[[], bool]) -> None: ...


class Exchange:
    """What has come for the steps of one session in one task.

    Args:
        send: brings values to another task: its name, the step, the key, the values.
    """

    def __init__(self, send: Send) -> None:
        self.send = send
        self._changed = threading.Condition()
        self._steps: dict[int, dict[str, Values]] = {}
        self._running: dict[int, Cancellation] = {}
        # What comes late for a step that was cancelled, or is over, is not kept.
        self._over: OrderedDict[int, bool] = OrderedDict()

    def begin(self, step: int) -> Cancellation:
        """What ends the waiting of a step here; it may have ended already.

        Raises:
            AbortedError: the step has begun before. Whoever asks does so once, so the request was
                carried twice, and what it does must not be done twice.
        """
        with self._changed:
            if step in self._running or self._over.get(step) is False:
                raise errors.AbortedError(
                    None, None, f"Step {step} has begun before: the request for it came twice."
                )
            end = self._running[step] = Cancellation(
                "The step was cancelled: it failed in another task, or its session has ended."
            )
            if self._over.get(step, False):
                end.cancelled = True
            return end

    def end(self, step: int) -> None:
        """Forgets a step, which is over here."""
        with self._changed:
            self._running.pop(step, None)
            self._forget(step, cancelled=False)

    def cancel(self, step: int) -> None:
        """Ends a step that runs here, or is still to come."""
        with self._changed:
            running = self._running.get(step)
            self._forget(step, cancelled=True)
        if running is not None:
            running.cancel()

    def _forget(self, step: int, cancelled: bool) -> None:
        self._steps.pop(step, None)
        self._over[step] = cancelled or self._over.get(step, False)
        while len(self._over) > _REMEMBERED:
            self._over.popitem(last=False)

    def put(self, step: int, key: str, values: Values) -> None:
        """Takes what another task has sent."""
        with self._changed:
            if step not in self._over:
                self._steps.setdefault(step, {})[key] = values
                self._changed.notify_all()

    def take(self, step: int, key: str, wait: Wait) -> Values:
        """What another task sends for a step, as soon as it is there.

        Raises:
            CancelledError: the step was cancelled.
        """
        with self._changed:
            wait(self._changed, lambda: key in self._steps.get(step, ()))
            return self._steps[step].pop(key)


# ---------------------------------------------------------------- the two ops
def bind_send(node: Node, resources: ResourceManager) -> Callable[..., None]:
    """Of a node that sends values to another task."""
    exchange, task, key = _exchange(resources), node.attrs["task"], node.attrs["key"]

    def send(step: Any, *values: Any) -> None:
        exchange.send(task, *_marked(step, key), values)

    return send


def bind_receive(node: Node, resources: ResourceManager) -> Callable[[Any], Any]:
    """Of a node that waits for the values that another task sends."""
    exchange, key = _exchange(resources), node.attrs["key"]
    alone = len(node.out_dtypes) == 1

    def receive(step: Any) -> Any:
        number, place = _marked(step, key)
        values = exchange.take(number, place, resources.wait)
        arrived = np.int64(number)
        return arrived if alone else (arrived, *values)

    return receive


def _marked(step: Any, key: str) -> tuple[int, str]:
    """The number of the step, and the key with the turns of the loops around it."""
    number, *turns = np.ravel(step).tolist()
    return number, ";".join((key, *map(str, turns)))


def _exchange(resources: ResourceManager) -> Exchange:
    found: Exchange = resources.exchange
    return found
