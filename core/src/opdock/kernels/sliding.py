"""Arrays under sliding windows, an element of the window at a time: channels last."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

from opdock.dtypes import DType, bfloat16, float16, float32
from opdock.kernels.array_api import put
from opdock.kernels.expr.evaluation import writes_to
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

    def fold(self, name: str, values: Iterable[Any], dtype: DType) -> Any:
        """The values put together by a function of two arrays, in the memory of the first result.

        Args:
            name: the function of the namespace.
            values: arrays of one shape.
            dtype: their type, or a 16-bit float that they were widened from.
        """
        function = getattr(self.xp, name)
        wide = float32 if dtype in (float16, bfloat16) else dtype
        writes = writes_to(function, self.xp, 2, wide, wide)
        rest = iter(values)
        total, own = next(rest), False
        for value in rest:
            total = function(total, value, out=total) if own else function(total, value)
            own = writes
        return total

    def lowest(self, data: Any) -> Any:
        """What no maximum takes unless there is nothing else."""
        whole = self.xp.isdtype(data.dtype, "integral")
        return self.xp.iinfo(data.dtype).min if whole else -math.inf
