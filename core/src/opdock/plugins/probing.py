"""Probing: asks backends what devices there are, all at once, and waits while they go on."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Sequence
from typing import Any, Final

from opdock.plugins.loading import resolve
from opdock.plugins.records import Probe
from opdock.plugins.state import Backend, Quarantine

_log = logging.getLogger("opdock.plugins")

DEFAULT_TIMEOUT: Final = 10.0


def time_limit() -> float:
    """Seconds of `Patience` with probes: OPDOCK_PROBE_TIMEOUT, or 10."""
    text = os.environ.get("OPDOCK_PROBE_TIMEOUT", "")
    if not text:
        return DEFAULT_TIMEOUT
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if value > 0:
        return value
    _log.warning("OPDOCK_PROBE_TIMEOUT=%r is no positive number; using %g", text, DEFAULT_TIMEOUT)
    return DEFAULT_TIMEOUT


def probe(backends: Sequence[Backend], limit: float | None = None) -> None:
    """Brings loaded backends to state "probed" or "quarantined".

    Every probe runs in a daemon thread: one that hangs costs the time limit once, however many
    hang, and does not keep the program from ending. A result that comes too late is ignored, so
    device numbers do not change under a running program.
    """
    limit = time_limit() if limit is None else limit
    asked = [_Asked(b) for b in backends]
    patience = Patience(limit, time.monotonic())
    for one in asked:
        one.start()
    # Nobody waits any more for who has answered, or has had its share.
    while waiting := [a for a in asked if a.thread.is_alive() and a.spent() <= limit]:
        if patience.is_over(time.monotonic(), sum(a.spent() for a in waiting)):
            break
        waiting[0].thread.join(limit / _LOOKS)
    # Taken at one moment: what comes later goes where nobody reads.
    for backend, answer in [(a.backend, a.answer) for a in asked]:
        _conclude(backend, answer, limit)


_LATE: Final = object()
_LOOKS: Final = 100
"""How often in a time limit the probes are looked after."""
_PROGRESS: Final = 0.01
"""The share of the time that a probe needs of a processor to count as one that goes on."""


class Patience:
    """How long to wait for probes: as long as they go on, which is no matter of the clock.

    A probe may import a large library, which takes long on a busy machine and longer beside others
    that do the same. One that hangs waits, and takes no processor's time; one that turns in circles
    takes a lot. So each may take the limit of that, and there may be none taken at all for as long.

    Args:
        limit: in seconds.
        now: the time.
    """

    def __init__(self, limit: float, now: float) -> None:
        self._limit = limit
        self._since = now
        self._mark = 0.0

    def is_over(self, now: float, spent: float) -> bool:
        """Whether to give up.

        Args:
            now: the time.
            spent: the processor's time that all have had who have not answered. Probes wait for
                each other where they import the same, so one that goes on is enough.
        """
        if abs(spent - self._mark) >= _PROGRESS * self._limit:
            self._mark, self._since = spent, now
        return now - self._since > self._limit


class _Asked:
    """A backend, the thread of its probe, and what came of it."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.answer: Any = _LATE
        self.thread = threading.Thread(
            target=self._ask, name=f"opdock-probe-{backend.spec.name}", daemon=True
        )
        self._clock: int | None = None

    def start(self) -> None:
        """Starts the probe; where the system has no room for a thread, asks it at once."""
        try:
            self.thread.start()
        except RuntimeError:
            self._ask()

    def spent(self) -> float:
        """The processor's time that the thread has had; 0 where the system keeps no count."""
        try:
            return 0.0 if self._clock is None else time.clock_gettime(self._clock)
        except OSError:  # it has just ended
            return 0.0

    def _ask(self) -> None:
        try:
            if hasattr(time, "pthread_getcpuclockid"):
                # By the thread itself: of one that has ended it may not be asked.
                self._clock = time.pthread_getcpuclockid(threading.get_ident())
            self.answer = resolve(self.backend.spec.probe)()
        except BaseException as e:
            self.answer = e


def _conclude(backend: Backend, answer: Any, limit: float) -> None:
    target = backend.spec.probe
    if answer is _LATE:
        backend.quarantine(
            Quarantine("probe-timeout", f"probe {target!r} gave no answer in {limit:g} s")
        )
    elif isinstance(answer, BaseException):
        backend.quarantine(Quarantine.of("probe-crashed", f"probe {target!r}", answer))
    elif not isinstance(answer, Probe):
        backend.quarantine(
            Quarantine("wrong-type", f"probe {target!r} must return a Probe, got {answer!r}")
        )
    else:
        backend.state, backend.devices = "probed", answer.devices
        backend.reason, backend.installable = answer.reason, answer.installable
        if not answer.devices and not answer.reason:
            backend.reason = "the probe found no device and gave no reason"
