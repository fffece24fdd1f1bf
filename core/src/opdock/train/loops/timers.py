"""When a hook acts: every so many steps, or every so many seconds."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod

__all__ = ["HookTimer", "NeverTriggerTimer", "SecondOrStepTimer", "speed"]


def speed(steps: int, seconds: float) -> float:
    """Steps a second; infinite where the clock has stood still, or was set back."""
    return steps / seconds if seconds > 0 else float("inf")


class HookTimer(ABC):
    """Says at which steps a hook acts."""

    @abstractmethod
    def reset(self) -> None:
        """Forgets when it acted last."""

    @abstractmethod
    def should_trigger_for_step(self, step: int) -> bool:
        """Whether to act at this step."""

    @abstractmethod
    def update_last_triggered_step(self, step: int) -> tuple[float | None, int | None]:
        """Notes that the hook acts now, at `step`.

        Returns:
            The seconds and the steps since the last time; two Nones the first time.
        """

    @abstractmethod
    def last_triggered_step(self) -> int | None:
        """The step at which it acted last, or None."""


class SecondOrStepTimer(HookTimer):
    """Acts at the first step, and then every N seconds or every N steps.

    Args:
        every_secs: the seconds between two times.
        every_steps: the steps between two times.

    Raises:
        ValueError: not exactly one of them is given.
    """

    def __init__(self, every_secs: float | None = None, every_steps: int | None = None) -> None:
        self.reset()
        self._every_secs = every_secs
        self._every_steps = every_steps
        if every_secs is None and every_steps is None:
            raise ValueError("Either every_secs or every_steps should be provided.")
        if every_secs is not None and every_steps is not None:
            raise ValueError("Can not provide both every_secs and every_steps.")

    def reset(self) -> None:
        """Forgets when it acted last."""
        self._last_step: int | None = None
        self._last_time: float | None = None

    def should_trigger_for_step(self, step: int) -> bool:
        """Whether the time, or the steps, are over since the hook acted last."""
        if self._last_step is None or self._last_time is None:
            return True
        if self._last_step == step:
            return False
        if self._every_secs is not None:
            # A clock that was set back says nothing of the time that has gone by.
            return not 0 <= time.time() - self._last_time < self._every_secs
        return self._every_steps is not None and step >= self._last_step + self._every_steps

    def update_last_triggered_step(self, step: int) -> tuple[float | None, int | None]:
        """Notes that the hook acts now, at `step`; see `HookTimer`."""
        now = time.time()
        last_step, last_time = self._last_step, self._last_time
        self._last_step, self._last_time = step, now
        if last_step is None or last_time is None:
            return None, None
        return now - last_time, step - last_step

    def last_triggered_step(self) -> int | None:
        """The step at which it acted last, or None."""
        return self._last_step


class NeverTriggerTimer(HookTimer):
    """Never acts."""

    def reset(self) -> None:
        """Does nothing."""

    def should_trigger_for_step(self, step: int) -> bool:
        """False."""
        return False

    def update_last_triggered_step(self, step: int) -> tuple[float | None, int | None]:
        """Two Nones."""
        return None, None

    def last_triggered_step(self) -> int | None:
        """None."""
        return None
