"""How much of the processors a container gives: Linux's control groups, version 1 and 2."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

__all__ = ["quota"]


def quota(root: Path = Path("/")) -> float | None:
    """The processor time a second that this process may use, in processors; None for no limit.

    A group is limited by all groups around it.

    Args:
        root: where `proc` and `sys` are.
    """
    try:
        lines = (root / "proc/self/cgroup").read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    shares = [s for line in lines for s in _shares(root / "sys/fs/cgroup", line)]
    return min(shares, default=None)


def _shares(mounted: Path, line: str) -> Iterator[float]:
    """The limits of a group, a line of the kernel's, and of those around it."""
    _, _, rest = line.partition(":")
    controllers, _, path = rest.partition(":")
    if controllers and "cpu" not in controllers.split(","):
        return
    base = mounted / controllers if controllers else mounted
    folder = base / path.lstrip("/")
    while True:
        share = _version_1(folder) if controllers else _version_2(folder)
        if share is not None:
            yield share
        if folder == base:
            return
        folder = folder.parent


def _version_2(folder: Path) -> float | None:
    """A limit and a period in one file."""
    words = _words(folder / "cpu.max")
    return _ratio(words[0], words[1]) if len(words) == 2 else None


def _version_1(folder: Path) -> float | None:
    """Two files, and -1 for no limit."""
    limit, period = _words(folder / "cpu.cfs_quota_us"), _words(folder / "cpu.cfs_period_us")
    return _ratio(limit[0], period[0]) if limit and period else None


def _ratio(limit: str, period: str) -> float | None:
    if not (limit.isdigit() and period.isdigit() and int(limit) and int(period)):
        return None
    return int(limit) / int(period)


def _words(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="ascii").split()
    except (OSError, UnicodeDecodeError):
        return []
