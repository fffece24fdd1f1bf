"""NumPy on the host; it has no workloads."""

from __future__ import annotations

from typing import Any, Final

TWINS: Final[dict[str, Any]] = {}


def setup(threads: int) -> None:
    """The environment says how many threads NumPy's BLAS takes."""
