"""Ctrl-C in a finalizer ends a process all the same."""

from __future__ import annotations

import subprocess
import sys
import textwrap

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
    threading.Event().wait(50)
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
