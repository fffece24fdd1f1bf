"""The actor of a task: it takes what others send, and the task's process comes for it.

Ray calls actors, not the processes that started them. A task has to be the process that the user
started, which has the program's Python functions and its devices; so its actor only passes on. It
belongs to that process, and Ray ends it when the process ends, however it does.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any, Final

__all__ = ["Letter", "Mailbox"]

Letter = tuple[int, bytes, tuple[Any, ...]]
"""A number, by which it is answered (0: by nobody), and a packet."""

_LOOK: Final = 1.0


class Mailbox:
    """Mail for one task.

    Args:
        silence: seconds without a word of the task after which nobody waits for it any more.
        turn: seconds after which `take` comes back, with nothing if nothing has come.
        door: where processes of its machine find the task's own process.
    """

    def __init__(self, silence: float, turn: float, door: Any) -> None:
        self._silence, self._turn, self._door = silence, turn, door
        self._come: asyncio.Queue[Letter | None] = asyncio.Queue()
        self._taking = asyncio.Lock()
        self._taken: tuple[int, list[Letter]] = (0, [])
        self._waiting: dict[int, asyncio.Future[tuple[bytes, tuple[Any, ...]]]] = {}
        self._last = 0
        self._heard = time.monotonic()

    async def post(self, header: bytes, parts: tuple[Any, ...]) -> tuple[bytes, tuple[Any, ...]]:
        """Takes a packet for the task and gives its answer.

        Raises:
            TimeoutError: nothing was heard of the task for too long.
        """
        self._last += 1
        number = self._last
        answer: asyncio.Future[tuple[bytes, tuple[Any, ...]]]
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        self._come.put_nowait((number, header, parts))
        try:
            while True:
                done, _ = await asyncio.wait([answer], timeout=min(_LOOK, self._silence))
                if done:
                    return answer.result()
                self._check()
        finally:
            del self._waiting[number]

    async def door(self) -> Any:
        """Where processes of its machine find the task's own process."""
        return self._door

    async def watch(self) -> None:
        """Ends when nobody should wait for the task any more.

        Raises:
            TimeoutError: nothing was heard of it for too long.
        """
        while True:
            await asyncio.sleep(min(_LOOK, self._silence))
            self._check()

    def _check(self) -> None:
        silent = time.monotonic() - self._heard
        if silent > self._silence:
            raise TimeoutError(f"nothing was heard of its process for {silent:.0f} s")

    async def leave(self, header: bytes, parts: tuple[Any, ...]) -> None:
        """Takes a packet for the task that wants no answer."""
        self._come.put_nowait((0, header, parts))

    async def take(self, number: int) -> list[Letter]:
        """What has come for the task, as soon as anything has.

        Args:
            number: another each time; with the last one again, its letters are handed out again,
                as Ray may have lost them on their way.
        """
        self._heard = time.monotonic()
        async with self._taking:
            if number != self._taken[0]:
                self._taken = number, await self._next()
            self._heard = time.monotonic()
            return self._taken[1]

    async def _next(self) -> list[Letter]:
        try:
            found = [await asyncio.wait_for(self._come.get(), self._turn)]
        except TimeoutError:
            return []
        while not self._come.empty():
            found.append(self._come.get_nowait())
        return [letter for letter in found if letter is not None]

    async def rouse(self) -> None:
        """Has `take` come back, with nothing if nothing has come."""
        self._come.put_nowait(None)

    async def answer(self, number: int, header: bytes, parts: tuple[Any, ...]) -> None:
        """Takes the task's answer to what came with a number."""
        self._heard = time.monotonic()
        waiting = self._waiting.get(number)
        if waiting is not None and not waiting.done():
            waiting.set_result((header, parts))
