"""What splitting by label and stitching give."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]
Attrs = dict[str, Any]


@reference("DynamicPartition")
def dynamic_partition(attrs: Attrs, data: Array, labels: Array) -> tuple[Array, ...]:
    """Each slice goes to the part that its label names."""
    parts: list[list[Array]] = [[] for _ in range(attrs["num_partitions"])]
    for place in np.ndindex(*labels.shape):
        parts[int(labels[place])].append(data[place])
    tail = data.shape[labels.ndim :]
    out = []
    for rows in parts:
        part = np.empty((len(rows), *tail), data.dtype)
        for i, row in enumerate(rows):
            part[i] = row
        out.append(part)
    return tuple(out)


@reference("DynamicStitch", "ParallelDynamicStitch")
def dynamic_stitch(attrs: Attrs, indices: list[Array], data: list[Array]) -> Array:
    """Each slice goes to the row that its index names; later ones replace earlier ones."""
    rows = 1 + max((int(i) for index in indices for i in index.reshape(-1)), default=-1)
    zero = b"" if data[0].dtype.kind in "OSU" else 0
    out = np.full((rows, *data[0].shape[indices[0].ndim :]), zero, data[0].dtype)
    for index, part in zip(indices, data, strict=True):
        for place in np.ndindex(*index.shape):
            out[int(index[place])] = part[place]
    return out
