"""Portable kernels that lay patches out in the depth dimension."""

from __future__ import annotations

from typing import Any

from opdock.kernels.portable import portable
from opdock.kernels.select.signature import NodeSig
from opdock.kernels.sliding import Sliding
from opdock.windows import Layout


@portable("ExtractImagePatches", "ExtractVolumePatches")
def extract_patches(xp: Any, sig: NodeSig) -> Any:
    """The patches of images or volumes under a sliding window."""
    layout, sliding, sizes = Layout(sig.attrs), Sliding(xp), sig.attrs["ksizes"][1:-1]

    def run(x: Any) -> Any:
        where = layout.window(x.shape[1:-1], sizes)
        return xp.concat(list(sliding.taps(x, where)), axis=-1)

    return run
