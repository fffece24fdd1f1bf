"""Labels and stitching by NumPy's indexed reads and writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.plugin import KernelTable, NodeSig, as_dtype, errors

__all__ = ["table"]

Array = npt.NDArray[Any]

table = KernelTable()
_STRING = as_dtype("string")


def _invalid(message: str) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(None, None, message)


def _dims(shape: Any) -> str:
    return "[" + ",".join(str(d) for d in shape) + "]"


@table.binder("DynamicPartition")
def dynamic_partition(sig: NodeSig) -> Callable[..., Any]:
    """The slices of each label."""
    count = sig.attrs["num_partitions"]

    def run(data: Any, partitions: Any) -> Any:
        prefix = np.shape(partitions)
        if np.shape(data)[: len(prefix)] != prefix:
            raise _invalid(
                f"data.shape must start with partitions.shape, got data.shape = "
                f"{_dims(np.shape(data))}, partitions.shape = {_dims(prefix)}"
            )
        labels = np.reshape(partitions, -1)
        outside = (labels < 0) | (labels >= count)
        if outside.any():
            bad = int(np.argmax(outside))
            raise _invalid(f"partitions[{bad}] = {labels[bad]} is not in [0, {count})")
        rows = np.reshape(data, (labels.size, *np.shape(data)[len(prefix) :]))
        order = np.argsort(labels, kind="stable")
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
        tail: tuple[int, ...] | None = None
        size = 0
        for i, (index, part) in enumerate(zip(indices, data, strict=True)):
            prefix, shape = np.shape(index), np.shape(part)
            if shape[: len(prefix)] != prefix:
                raise _invalid(
                    f"data[{i}].shape = {_dims(shape)} does not start with indices[{i}].shape = "
                    f"{_dims(prefix)}"
                )
            rest = shape[len(prefix) :]
            if tail is not None and rest != tail:
                raise _invalid(
                    f"Need data[0].shape[{len(np.shape(indices[0]))}:] = data[{i}].shape"
                    f"[{len(prefix)}:], got {_dims(tail)} and {_dims(rest)}"
                )
            tail = rest
            if np.size(index):
                if np.min(index) < 0:
                    raise _invalid(f"indices[{i}] holds {np.min(index)}, which is out of range")
                size = max(size, int(np.max(index)) + 1)
        shape = (size, *(tail or ()))
        out = np.full(shape, b"", object) if dtype is _STRING else np.zeros(shape, dtype.np)
        for index, part in zip(indices, data, strict=True):
            out[np.reshape(index, -1)] = np.reshape(part, (np.size(index), *(tail or ())))
        return out

    return run
