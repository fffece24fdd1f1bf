"""What `opdock doctor` says about this backend's optional libraries."""

from __future__ import annotations

from opdock_cpu.jit.llvm import why_not_started
from opdock_cpu.jit.openmp import threads_work
from opdock_cpu.onednn import library

__all__ = ["notes"]


def notes() -> list[str]:
    """A line for oneDNN and one for generated code."""
    reason = why_not_started()
    if reason:
        generated = f"no generated code: {reason}"
    else:
        how = "in threads" if threads_work() else "in one thread: libgomp is not found"
        generated = f"generated code for elementwise clusters, {how}"
    return [*library.notes(), generated]
