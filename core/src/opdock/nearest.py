"""What a name that there is not was meant to be."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from itertools import islice
from typing import Final

__all__ = ["meant", "near", "nearest"]

_MOST: Final = 5_000
"""Names to compare with: more would take a while, and an error must not."""


def nearest(name: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """The name that is most like another one, or nothing.

    Args:
        name: what was asked for.
        known: what there is.
        cutoff: how alike they must be, from 0 to 1.
    """
    by_fold: dict[str, str] = {}
    for word in islice(known, _MOST):
        by_fold.setdefault(word.casefold(), word)
    found = difflib.get_close_matches(name.casefold(), by_fold, 1, cutoff)
    return by_fold[found[0]] if found else ""


def meant(name: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """How an error message ends: "; did you mean 'dense/kernel'?", or nothing; see `nearest`."""
    found = nearest(name, known, cutoff)
    return f"; did you mean {found!r}?" if found else ""


def near(name: str, known: Iterable[str]) -> str:
    """What stands behind a message of whole sentences: " Did you mean 'dense/kernel'?"."""
    found = nearest(name, known)
    return f" Did you mean {found!r}?" if found else ""
