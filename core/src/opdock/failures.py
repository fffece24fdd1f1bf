"""What counts as a failure of code that is not opdock's own."""

from __future__ import annotations

from typing import Final

__all__ = ["FAILURES"]

FAILURES: Final = (Exception, SystemExit)
"""What a plugin may raise: one that leaves by `sys.exit` must not end the user's program."""
