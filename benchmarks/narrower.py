"""Processors with narrower vectors than this one's, tried on this one.

Each library chooses its code when it is loaded, by what the processor can; these variables of the
environment let it see less. A row that takes much longer than vectors of half or a quarter of the
width explain has fallen off a cliff: a loop that is no longer in vectors, or a library's own code
for processors that it does not know.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import report
from numpy._core._multiarray_umath import __cpu_dispatch__

__all__ = ["PROCESSORS", "Processor", "section"]

_TOLD: Final = 15


@dataclass(frozen=True)
class Processor:
    """A processor by LLVM's name.

    Attributes:
        lacks: what it has not, for readers.
        variables: NAME=VALUE for LLVM, oneDNN, OpenBLAS and NumPy.
        expected: as many times as long may what is computed in vectors take.
    """

    lacks: str
    variables: tuple[str, ...]
    expected: float


def _seen(code: str, onednn: str, blas: str, numpy: Sequence[str]) -> tuple[str, ...]:
    return (
        f"OPDOCK_JIT_CPU={code}", f"ONEDNN_MAX_CPU_ISA={onednn}", f"OPENBLAS_CORETYPE={blas}",
        f"NPY_DISABLE_CPU_FEATURES={','.join(numpy)}",
    )  # fmt: skip


# What NumPy calls its kinds of code differs between its versions.
_WIDE: Final = tuple(__cpu_dispatch__)
_WIDEST: Final = tuple(name for name in _WIDE if name.startswith(("AVX512", "X86_V4")))

PROCESSORS: Final = {
    "haswell": Processor("no AVX-512", _seen("haswell", "AVX2", "Haswell", _WIDEST), 2.5),
    "nehalem": Processor("no AVX2, no FMA", _seen("nehalem", "SSE41", "Nehalem", _WIDE), 5.0),
}


def section(about: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> str:
    """What a page says of them: for each the mean, and the rows that lose most."""
    parts = [report.line(about, {})]
    for name, processor in PROCESSORS.items():
        found = {r["name"]: r for r in rows if name in r.get("ratios", ())}
        if not found:
            continue
        ratios = {row: r["ratios"][name] for row, r in found.items()}
        mean = math.exp(statistics.fmean(map(math.log, ratios.values())))
        beyond = sum(ratio > processor.expected for ratio in ratios.values())
        parts.append(
            f"{name.capitalize()} ({processor.lacks}): {len(ratios)} rows, geometric mean "
            f"{mean:.2f}, {beyond} above {processor.expected:g}. The highest:"
        )
        highest = sorted(ratios, key=lambda row: -ratios[row])[:_TOLD]
        body = [
            (
                row, found[row]["about"], report.milliseconds(found[row]["steps"]["opdock"]),
                report.milliseconds(found[row]["steps"][name]), f"{ratios[row]:.2f}",
            )
            for row in highest
        ]  # fmt: skip
        heads = ("row", "arguments", "as it is, ms", f"{name}, ms", "times as long")
        parts.append(report.rows_of(heads, body, words=2))
    return "\n\n".join(parts)
