"""Versions of one op: where a device has a kernel for one of them, it may do for the other."""

from __future__ import annotations

import re
from collections.abc import Container
from typing import Final

__all__ = ["sibling_hint", "siblings"]

_OP: Final = re.compile(r"(?P<family>.+?)(V\d+)?")
_VERSIONS: Final = ("", "V2", "V3", "V4")
"""As far as TensorFlow 1.15 counts."""


def siblings(op: str, known: Container[str]) -> list[str]:
    """The other versions of an op among some: of Add it is AddV2, and the reverse."""
    match = _OP.fullmatch(op)
    family = op if match is None else match["family"]
    versions = (family + version for version in _VERSIONS)
    return [name for name in versions if name != op and name in known]


def sibling_hint(op: str, served: Container[str]) -> str:
    """What to say of an op without a kernel whose sibling has one; empty when none has."""
    found = siblings(op, served)
    if not found:
        return ""
    return f"there is one for {' and '.join(found)}, of the same family; it may serve both"
