"""Kernels of vocabularies and the rows that belong to them: the work is core's (`host_ops`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opdock.plugin import KernelTable, NodeSig, host_ops

__all__ = ["table"]

Array = np.ndarray[Any, Any]

table = KernelTable()


@table.binder("GenerateVocabRemapping")
def generate_vocab_remapping(sig: NodeSig) -> Callable[..., tuple[Array, Array]]:
    """Where words are in an older vocabulary."""
    offset, count, old_size = (
        int(sig.attrs[a]) for a in ("new_vocab_offset", "num_new_vocab", "old_vocab_size")
    )

    def run(new: Array, old: Array) -> tuple[Array, Array]:
        paths = (
            host_ops.scalar_text(f, n)
            for f, n in ((new, "new_vocab_file"), (old, "old_vocab_file"))
        )
        places = host_ops.vocabulary_remapping(*paths, offset, count, old_size)
        return places, np.array(np.count_nonzero(places >= 0), np.int32)

    return run


@table.binder("LoadAndRemapMatrix")
def load_and_remap_matrix(sig: NodeSig) -> Callable[..., Array]:
    """A saved matrix with other rows and columns."""
    sizes = [int(sig.attrs[a]) for a in ("num_rows", "num_cols", "max_rows_in_memory")]

    def run(path: Array, name: Array, rows: Array, columns: Array, initializing: Array) -> Array:
        matrix: Array = host_ops.remapped_matrix(
            host_ops.scalar_text(path, "ckpt_path"), host_ops.scalar_text(name, "old_tensor_name"),
            rows, columns, initializing, *sizes,
        )  # fmt: skip
        return matrix

    return run
