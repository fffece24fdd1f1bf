"""Oracle of padded ragged tensors: goes through the values one by one."""

from __future__ import annotations

from typing import Any

import numpy as np

from opdock.testing.reference._registry import reference


@reference("RaggedTensorToTensor")
def to_tensor(
    attrs: Any, shape: Any, values: Any, default: Any, partitions: list[Any]
) -> np.ndarray[Any, Any]:
    """The place of each value, then a tensor that is large enough or as large as asked for."""
    kinds = list(attrs["row_partition_types"])
    if kinds[0] == "FIRST_DIM_SIZE":
        places: list[tuple[int, ...]] = [(i,) for i in range(int(partitions[0]))]
        kinds, partitions = kinds[1:], partitions[1:]
    else:
        places = [(i,) for i in range(len(partitions[0]) - 1)]
    size = [len(places)]
    for kind, partition in zip(kinds, partitions, strict=True):
        if kind == "ROW_SPLITS":
            rows = [r for r in range(len(partition) - 1) for _ in range(*partition[r : r + 2])]
        else:
            rows = [int(r) for r in partition]
        below = []
        for i, row in enumerate(rows):
            column = 0
            while i - column > 0 and rows[i - column - 1] == row:
                column += 1
            below.append((*places[row], column))
        places = below
        size.append(max((place[-1] + 1 for place in places), default=0))
    size += values.shape[1:]
    if np.ndim(shape):
        size = [n if d < 0 else int(d) for d, n in zip(shape, size, strict=True)]
    out = np.empty(size, values.dtype)
    out[...] = np.broadcast_to(default, size)
    for place, value in zip(places, values, strict=True):
        if all(p < n for p, n in zip(place, size, strict=False)):
            out[place] = value
    return out
