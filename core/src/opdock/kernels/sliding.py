"""Arrays under sliding windows, an element of the window at a time: channels last."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

from opdock.kernels.array_api import put
from opdock.windows import Window


class Sliding:
    """Pads arrays, takes apart what windows see of them, and adds that up again.

    Each element of a window is one strided slice of the padded array, so a pass over all windows
    is a few whole-array steps for each of them.
    """

    def __init__(self, xp: Any) -> None:
        self.xp = xp

    def pad(self, data: Any, where: Window, value: Any = 0) -> Any:
        """The array with padding around its spatial dimensions."""
        if not where.is_padded:
            return data
        shape = (data.shape[0], *where.padded, data.shape[-1])
        device = getattr(data, "device", None)
        out = self.xp.full(shape, value, dtype=data.dtype, device=device)
        return put(self.xp, out, (slice(None), *where.inner, slice(None)), data)

    def taps(self, data: Any, where: Window, value: Any = 0) -> Iterator[Any]:
        """What each element of the window sees at all positions, padding included."""
        padded = self.pad(data, where, value)
        return (padded[(slice(None), *here, slice(None))] for _, here in where.taps())

    def add_up(self, parts: Iterable[Any], where: Window, like: Any) -> Any:
        """The array `like` another that has `parts` where `taps` takes them, overlaps summed."""
        shape = (like.shape[0], *where.padded, like.shape[-1])
        device = getattr(like, "device", None)
        out = self.xp.zeros(shape, dtype=like.dtype, device=device)
        for (_, here), part in zip(where.taps(), parts):
            out = put(self.xp, out, (slice(None), *here, slice(None)), part, add=True)
        return out[(slice(None), *where.inner, slice(None))] if where.is_padded else out

    def lowest(self, data: Any) -> Any:
        """What no maximum takes unless there is nothing else."""
        whole = self.xp.isdtype(data.dtype, "integral")
        return self.xp.iinfo(data.dtype).min if whole else -math.inf
