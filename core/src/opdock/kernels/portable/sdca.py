"""The portable kernel of weights that a penalty on their sizes shrinks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opdock.kernels.portable import portable
from opdock.kernels.select.signature import NodeSig


@portable("SdcaShrinkL1", keeps=())
def sdca_shrink_l1(xp: Any, sig: NodeSig) -> Callable[..., None]:
    """Weights shrunk towards zero by l1 / l2."""
    l1, l2 = (np.float32(sig.attrs[name]) for name in ("l1", "l2"))
    with np.errstate(divide="ignore", invalid="ignore"):
        shrinkage = float(l1 / l2)

    def run(*cells: Any) -> None:
        for cell in cells:
            with cell.lock:
                old = cell.read()
                cell.write(xp.sign(old) * xp.clip(xp.abs(old) - shrinkage, 0.0, None))

    return run
