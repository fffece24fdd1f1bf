"""What the op of beam search computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]
Attrs = dict[str, Any]


@reference("GatherTree")
def gather_tree(attrs: Attrs, steps: Array, parents: Array, lengths: Array, end: Array) -> Array:
    """The path of each beam from its last step to the first, cut behind its first end."""
    out = np.full(steps.shape, end)
    time, batch, width = steps.shape
    for row in range(batch):
        for beam in range(width):
            place = beam
            for level in range(min(time, int(lengths[row])) - 1, -1, -1):
                out[level, row, beam] = steps[level, row, place]
                place = int(parents[level, row, place])
            ends = np.flatnonzero(out[:, row, beam] == end)
            if len(ends):
                out[ends[0] :, row, beam] = end
    return out
