"""The portable kernel of the scripts of code points."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opdock.kernels.array_api import device_ints
from opdock.kernels.portable import portable
from opdock.kernels.scripts import CODES, LAST, STARTS
from opdock.kernels.select.signature import NodeSig


@portable("UnicodeScript")
def unicode_script(xp: Any, sig: NodeSig) -> Callable[[Any], Any]:
    """ICU's number of the script of each code point, or -1 for what is none."""

    def run(points: Any) -> Any:
        inside = (points >= 0) & (points <= LAST)
        known = xp.reshape(xp.where(inside, points, xp.zeros_like(points)), (-1,))
        starts = xp.asarray(STARTS, dtype=points.dtype, device=getattr(points, "device", None))
        run_of = xp.searchsorted(starts, known, side="right") - 1
        found = xp.take(device_ints(xp, CODES, points), run_of, axis=0)
        found = xp.reshape(xp.astype(found, xp.int32), points.shape)
        return xp.where(inside, found, xp.full_like(found, -1))

    return run
