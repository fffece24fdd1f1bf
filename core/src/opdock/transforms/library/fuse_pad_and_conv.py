"""`fuse_pad_and_conv`: mirrored margins go into the convolution after them."""

from __future__ import annotations

from typing import Any

from opdock.transforms.fused_images import AFTER_PAD, fuse_images
from opdock.transforms.registry import Context


def fuse_pad_and_conv(graph_def: Any, context: Context) -> Any:
    """Makes FusedPadConv2D of MirrorPad and Conv2D."""
    return fuse_images(graph_def, context, AFTER_PAD)
