"""How much is told of conversions: `tf.autograph.set_verbosity` and AUTOGRAPH_VERBOSITY."""

from __future__ import annotations

import logging
import os
import sys
from typing import Any, Final

__all__ = ["set_verbosity", "trace"]

_log: Final = logging.getLogger("tensorflow")


class _Settings:
    level: int | None = None
    prints = hasattr(sys, "ps1") or hasattr(sys, "ps2")


def set_verbosity(level: int, alsologtostdout: bool = False) -> None:
    """Sets how much is told of conversions, as logging at level INFO.

    Args:
        level: 0 for nothing; from 1 on which functions are rewritten, from 2 on their text. Until
            this is called, the environment variable AUTOGRAPH_VERBOSITY says it.
        alsologtostdout: whether it is printed as well.
    """
    _Settings.level, _Settings.prints = level, alsologtostdout


def told(level: int) -> bool:
    """Whether what belongs to a level is told."""
    set_ = _Settings.level
    return (int(os.environ.get("AUTOGRAPH_VERBOSITY", "0")) if set_ is None else set_) >= level


def tell(level: int, message: str, *args: Any) -> None:
    """Tells something of a conversion."""
    if told(level):
        _log.info(message, *args)
        if _Settings.prints:
            print(message % args)


def trace(*args: Any) -> None:
    """Prints its arguments while the graph is built, also in code that is rewritten."""
    print(*args)
