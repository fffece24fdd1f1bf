"""Records of many files, in the host's memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.plugin import KernelTable, NodeSig
from opdock_cpu.record_input import Options, Yielder

__all__ = ["table"]

Array = npt.NDArray[Any]

table = KernelTable()


@table.binder("RecordInput", keeps=())
def record_input(sig: NodeSig) -> Callable[[], Array]:
    """The next records."""
    attrs, resources = sig.attrs, sig.resources
    options = Options(
        attrs["file_pattern"], attrs["file_random_seed"], attrs["file_shuffle_shift_ratio"],
        attrs["file_buffer_size"], attrs["file_parallelism"], attrs["compression_type"],
    )  # fmt: skip
    size = int(attrs["batch_size"])
    assert resources is not None

    def run() -> Array:
        yielder: Yielder = resources.node_state(sig.name, lambda: Yielder(options))
        out = np.empty(size, object)
        out[:] = yielder.take(size)
        return out

    return run
