"""What the host is: one device, which a session may multiply by `device_count`."""

from __future__ import annotations

import os
import platform
from pathlib import Path

from opdock.plugin import DeviceAttributes, Probe


def probe() -> Probe:
    """The host's processors as one device."""
    threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return Probe(
        devices=(
            DeviceAttributes(
                index=0,
                description=f"{_model()}, {threads} threads",
                memory_bytes=_memory(),
                features=frozenset({"host", "virtual", "float64", "strings"}),
                kind="cpu",
            ),
        )
    )


def _model() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass  # not Linux
    return platform.processor() or platform.machine()


def _memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None  # not POSIX
