"""What clipping computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]
Attrs = dict[str, Any]


@reference("ClipByValue")
def clip_by_value(attrs: Attrs, t: Array, low: Array, high: Array) -> Array:
    """Values below the lower limit become it, then those above the upper limit become that."""
    raised = np.where(t < low, low, t)
    return np.where(raised > high, high, raised)
