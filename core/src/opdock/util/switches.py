"""What environment variables switch on: one reading for all."""

from __future__ import annotations

import os
from typing import Final

__all__ = ["switched_on"]

_OFF: Final = frozenset({"", "0", "off", "false", "no"})


def switched_on(name: str) -> bool:
    """Whether a variable that is a switch is set to anything but "", 0, off, false or no."""
    return os.environ.get(name, "").strip().lower() not in _OFF
