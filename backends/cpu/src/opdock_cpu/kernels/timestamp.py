"""The clock of the host."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from opdock.plugin import KernelTable, NodeSig

__all__ = ["table"]

table = KernelTable()


@table.binder("Timestamp")
def timestamp(sig: NodeSig) -> Callable[[], Any]:
    """The time now."""
    return lambda: np.asarray(time.time(), np.float64)
