"""Labels and stitching by NumPy's indexed reads and writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.plugin import KernelTable, NodeSig, as_dtype, checks

__all__ = ["table"]

Array = npt.NDArray[Any]

table = KernelTable()
_STRING = as_dtype("string")


@table.binder("DynamicPartition")
def dynamic_partition(sig: NodeSig) -> Callable[..., Any]:
    """The slices of each label."""
    count = sig.attrs["num_partitions"]

    def run(data: Any, partitions: Any) -> Any:
        checks.check_labelled(data, partitions)
        prefix = partitions.shape
        labels = np.reshape(partitions, -1)
        if ((labels < 0) | (labels >= count)).any():
            raise checks.not_in(np.asarray(partitions), count, "partitions")
        rows = np.reshape(data, (labels.size, *data.shape[len(prefix) :]))
        # Of few labels each takes a byte or two, which are sorted by their bits.
        order = np.argsort(labels.astype(np.min_scalar_type(count)), kind="stable")
        ends = np.cumsum(np.bincount(labels, minlength=count))
        starts = np.concatenate([[0], ends[:-1]])
        out = [rows[order[a:b]] for a, b in zip(starts, ends, strict=True)]
        return out[0] if count == 1 else tuple(out)

    return run


@table.binder("DynamicStitch", "ParallelDynamicStitch")
def dynamic_stitch(sig: NodeSig) -> Callable[..., Array]:
    """Rows written where their indices say, one part after the other."""
    n, dtype = sig.attrs["N"], sig.out_dtypes[0]

    def run(*args: Any) -> Array:
        indices, data = args[:n], args[n:]
        tail, size = checks.check_parts(indices, data), 0
        for i, index in enumerate(indices):
            if np.size(index):
                if np.min(index) < 0:
                    raise checks.invalid(
                        f"indices[{i}] holds {np.min(index)}, which is out of range"
                    )
                size = max(size, int(np.max(index)) + 1)
        shape = (size, *tail)
        out = np.full(shape, b"", object) if dtype is _STRING else np.zeros(shape, dtype.np)
        for index, part in zip(indices, data, strict=True):
            out[np.reshape(index, -1)] = np.reshape(part, (np.size(index), *tail))
        return out

    return run
