"""The kernels, a file a family."""

from __future__ import annotations

import dataclasses
import importlib
from typing import Any, Final

from opdock.plugin import KernelTable, dtypes

__all__ = ["FAMILIES", "WIDE", "table_for"]

FAMILIES: Final = (
    "argmax", "array", "bias", "cast", "cluster", "compare", "complex", "conv",
    "decompositions", "depthwise", "diag", "elementwise", "fill", "fusion", "gather",
    "histogram", "identity", "joining", "linalg", "loss", "lrn", "matrix", "morphology",
    "mounted", "norm", "padding", "partition", "patches", "pool", "random", "random_dist",
    "reduce", "scan", "scatter", "segment", "select", "sets", "slicing", "solve", "sorting",
    "spacebatch", "sparse_math", "special", "splitting", "state", "sums", "tiling", "training",
    "tridiagonal", "xent",
)  # fmt: skip

WIDE: Final = frozenset({dtypes.float64, dtypes.complex128})
"""The element types that need double precision."""


def table_for(device: Any) -> KernelTable:
    """All kernels that a device can run: without double precision, fewer types."""
    found = KernelTable()
    for family in FAMILIES:
        for kernel in importlib.import_module(f"opdock_ckernels.families.{family}").table:
            if device.has_double:
                found.add(kernel)
                continue
            types = {attr: kinds - WIDE for attr, kinds in kernel.dtypes.items()}
            if all(types.values()):
                found.add(dataclasses.replace(kernel, dtypes=types))
    return found
