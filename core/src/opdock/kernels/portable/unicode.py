"""The portable kernel of the scripts of code points."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opdock.kernels.array_api import device_ints
from opdock.kernels.portable import portable
from opdock.kernels.scripts import BLOCKS, CODES, IN_BLOCK, LAST
from opdock.kernels.select.signature import NodeSig


@portable("UnicodeScript")
def unicode_script(xp: Any, sig: NodeSig) -> Callable[[Any], Any]:
    """ICU's number of the script of each code point, or -1 for what is none."""

    def run(points: Any) -> Any:
        inside = (points >= 0) & (points <= LAST)
        known = xp.reshape(xp.where(inside, points, xp.full_like(points, LAST + 1)), (-1,))
        first = xp.take(device_ints(xp, BLOCKS, points), known >> IN_BLOCK, axis=0)
        found = xp.take(
            device_ints(xp, CODES, points), first + (known & ((1 << IN_BLOCK) - 1)), axis=0
        )
        return xp.reshape(xp.astype(found, xp.int32), points.shape)

    return run
