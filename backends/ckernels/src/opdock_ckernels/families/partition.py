"""Tensors split by label and stitched together: rows in order of their labels."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opdock.plugin import KernelTable, NodeSig, checks
from opdock_ckernels.families.array import HELD
from opdock_ckernels.folding import fold
from opdock_ckernels.ordering import find, sort
from opdock_ckernels.picking import pick
from opdock_ckernels.protocols import Array
from opdock_ckernels.scattering import scatter
from opdock_ckernels.strided import zeros

__all__ = ["table"]

table = KernelTable()


@table.binder("DynamicPartition", T=HELD)
def dynamic_partition(sig: NodeSig) -> Callable[[Array, Array], Any]:
    """The slices of each label."""
    device, count = sig.device, sig.attrs["num_partitions"]
    wanted = device.upload(np.arange(count + 1, dtype=np.int32).reshape(1, count + 1))

    def run(data: Array, partitions: Array) -> Any:
        checks.check_labelled(data, partitions)
        n, rest = partitions.size, data.shape[partitions.ndim :]
        labels, order = sort(device, partitions.reshape(n))
        kind = np.dtype(np.int32)
        bounds = checks.ints(device.download(
            find(device, labels.reshape(1, n), wanted, kind)
        ))  # fmt: skip
        if bounds[0] != 0 or bounds[-1] != n:
            raise checks.not_in(device.download(partitions), count, "partitions")
        width = math.prod(rest)
        out = [
            pick(device, data, order, (stop - start, *rest), width, start)
            for start, stop in itertools.pairwise(bounds)
        ]
        return out[0] if count == 1 else tuple(out)

    return run


@table.binder("DynamicStitch", "ParallelDynamicStitch", T=HELD)
def dynamic_stitch(sig: NodeSig) -> Callable[..., Array]:
    """Rows written where their indices say; of equal indices the last wins."""
    device, n, dtype = sig.device, sig.attrs["N"], sig.out_dtypes[0].np

    def run(*args: Array) -> Array:
        indices, data = args[:n], args[n:]
        tail = checks.check_parts(indices, data)
        places = _joined(device, indices, np.dtype(np.int32))
        size = 0
        if places.size:
            size = device.read_int(fold(device, "max", places, [0])) + 1
            if device.read_int(fold(device, "min", places, [0])) < 0:
                raise checks.negative_place(*_negative(device, indices))
        width = math.prod(tail)
        out = zeros(device, (size, *tail), dtype)
        rows = _joined(device, data, dtype)
        scatter(device, "Update", out, places, rows, width)
        return out

    return run


def _joined(device: Any, parts: Sequence[Array], dtype: np.dtype[Any]) -> Array:
    """All elements one after the other, as a vector."""
    if len(parts) == 1:
        return parts[0].reshape(parts[0].size)
    out: Array = device.allocate((sum(p.size for p in parts),), dtype)
    at = 0
    for part in parts:
        device.copy_into(part, out, at)
        at += part.size
    return out


def _negative(device: Any, indices: Sequence[Array]) -> tuple[int, int]:
    least = [int(device.download(index).min()) if index.size else 0 for index in indices]
    return next((i, v) for i, v in enumerate(least) if v < 0)
