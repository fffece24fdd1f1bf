"""The figures of a node or of several, which add up."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Figures"]


class Figures(NamedTuple):
    """What nodes took, in microseconds and bytes, and what the graph says of them.

    The names are those of the fields of TF's messages.
    """

    definition_count: int = 0
    run_count: int = 0
    exec_micros: int = 0
    accelerator_exec_micros: int = 0
    cpu_exec_micros: int = 0
    requested_bytes: int = 0
    peak_bytes: int = 0
    residual_bytes: int = 0
    output_bytes: int = 0
    parameters: int = 0
    float_ops: int = 0

    def plus(self, other: Figures) -> Figures:
        """The sums."""
        return Figures(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))
