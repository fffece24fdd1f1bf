"""Ctrl-C in a finalizer ends a process all the same."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from types import FrameType

import pytest

from opdock.util.interrupts import finalizer

PROGRAM = """
    import signal, sys, threading, weakref
    from opdock.util.interrupts import kept_interrupts

    class Late:
        def __del__(self):
            signal.raise_signal(signal.SIGINT)

    class Other:
        def __del__(self):
            raise ValueError("told as ever")

    keeping = kept_interrupts()
    keeping.__enter__()
    Other()
    if sys.argv[1] == "finalizer":
        Late()
    else:
        kept = Other()
        watched = weakref.ref(kept, lambda _: signal.raise_signal(signal.SIGINT))
        del kept
    threading.Event().wait(600)
    print("lost")
"""


def test_an_interrupt_in_a_finalizer_is_raised_once_more() -> None:
    for where in ("finalizer", "callback"):
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(PROGRAM), where],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode != 0 and done.stdout == ""
        assert done.stderr.rstrip().endswith("KeyboardInterrupt")
        assert "ValueError: told as ever" in done.stderr


class OverError(Exception):
    """What a signal handler raises."""


class Finalized:
    """Calls a function as it goes, and again until it returns."""

    def __init__(self, act: Callable[[], None]) -> None:
        self.act = act

    __del__ = finalizer(lambda self: self.act())


@pytest.mark.parametrize("which", ["Ctrl-C", "another signal"])
def test_what_a_handler_raises_in_a_finalizer_comes_after_it(which: str) -> None:
    number = signal.SIGINT if which == "Ctrl-C" else signal.SIGUSR1
    raised: list[BaseException] = []
    calls: list[int] = []

    def handler(number: int, frame: FrameType | None) -> None:
        raised.append(OverError("the time is over"))
        raise raised[0]

    def act() -> None:
        calls.append(len(calls))
        if len(calls) == 1:
            signal.raise_signal(number)

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        with pytest.raises((KeyboardInterrupt, OverError)) as caught:
            Finalized(act)
            for _ in range(60_000):
                threading.Event().wait(0.01)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert calls == [0, 1]  # it was ended all the same
    assert len(raised) == (which != "Ctrl-C")
    assert all(caught.value is error for error in raised)


def test_what_else_a_finalizer_raises_python_prints(capsys: pytest.CaptureFixture[str]) -> None:
    def act() -> None:
        raise ValueError("told as ever")

    before, sys.unraisablehook = sys.unraisablehook, sys.__unraisablehook__
    try:
        Finalized(act)
    finally:
        sys.unraisablehook = before
    assert "ValueError: told as ever" in capsys.readouterr().err
