"""What `opdock doctor` says about this backend's optional libraries."""

from __future__ import annotations

from opdock_cpu.crew import why_none
from opdock_cpu.jit.llvm import why_not_started
from opdock_cpu.onednn import library

__all__ = ["notes"]


def notes() -> list[str]:
    """A line for oneDNN and one for generated code."""
    reason = why_not_started()
    if reason:
        generated = f"no generated code: {reason}"
    else:
        alone = why_none()
        how = f"in one thread: {alone}" if alone else "in threads"
        generated = f"generated code for elementwise clusters, {how}"
    return [*library.notes(), generated]
