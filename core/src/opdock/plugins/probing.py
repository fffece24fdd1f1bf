"""Probing: asks backends what devices there are, all at once, each within a time limit."""

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
    """Seconds that probes may take: OPDOCK_PROBE_TIMEOUT, or 10."""
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
    answers: dict[Backend, Any] = {}
    threads = [
        threading.Thread(
            target=_ask, args=(b, answers), name=f"opdock-probe-{b.spec.name}", daemon=True
        )
        for b in backends
    ]
    deadline = time.monotonic() + limit
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    # The copy freezes the outcome: late threads write into a dictionary nobody reads.
    outcome = dict(answers)
    for backend in backends:
        _conclude(backend, outcome.get(backend, _LATE), limit)


_LATE: Final = object()


def _ask(backend: Backend, answers: dict[Backend, Any]) -> None:
    try:
        answers[backend] = resolve(backend.spec.probe)()
    except BaseException as e:
        answers[backend] = e


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
