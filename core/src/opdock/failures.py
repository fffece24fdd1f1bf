"""What counts as a failure of code that is not opdock's own."""

from __future__ import annotations

import sys

from opdock.util.handlers import of_handler

__all__ = ["failures"]

_ANY = (Exception, SystemExit)
"""What a plugin may raise: one that leaves by `sys.exit` must not end the user's program."""


def failures(*kinds: type[BaseException]) -> tuple[type[BaseException], ...]:
    """What an `except` clause, which asks for it anew each time, catches of what others raise.

    A signal handler runs in the middle of whatever the main thread does. What it raises, say when
    the time that a program has set itself is over, is for that program, and no fault of the code
    that it interrupted: then nothing is caught.

    Args:
        kinds: of exceptions; all that plugins may raise if there is none.
    """
    return () if of_handler(sys.exception()) else kinds or _ANY
