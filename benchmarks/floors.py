"""Floors of ratios: how slow beside a peer a row may become before somebody should look.

A floor is a third of the ratio that was measured when the file was written. That is generous: rows
of a few microseconds vary by half on a machine with other work, and a kernel that falls back to
another way loses more than that. A row is below its floor if it is so twice in succession.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

__all__ = ["below", "how", "read", "write"]

_PART: Final = 1 / 3


def write(
    path: Path, about: Mapping[str, Any], rows: Iterable[Mapping[str, Any]], peer: str
) -> None:
    """Writes the floors of all rows that have a ratio to the peer.

    Rows of the file that were not measured now keep theirs.
    """
    old = read(path) if path.exists() else {}
    found = {r["name"]: _PART * r["ratios"][peer] for r in rows if peer in r.get("ratios", ())}
    floors = {name: float(f"{floor:.2g}") for name, floor in sorted({**old, **found}.items())}
    text = json.dumps({"about": dict(about), "peer": peer, "floors": floors}, indent=1)
    path.write_text(text + "\n", encoding="utf-8")


def read(path: Path) -> dict[str, float]:
    """The floors by row."""
    floors: dict[str, float] = json.loads(path.read_text(encoding="utf-8"))["floors"]
    return floors


def how(path: Path) -> tuple[int, str]:
    """With how many threads and by which clock they were measured."""
    about = json.loads(path.read_text(encoding="utf-8"))["about"]
    return about["threads"], about["clock"]


def below(floors: Mapping[str, float], rows: Iterable[Mapping[str, Any]], peer: str) -> list[str]:
    """The names of the rows that are below their floors, or have no ratio any more."""
    return [
        row["name"]
        for row in rows
        if row["name"] in floors and row.get("ratios", {}).get(peer, 0.0) < floors[row["name"]]
    ]
