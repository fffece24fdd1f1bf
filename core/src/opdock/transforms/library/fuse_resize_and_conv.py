"""`fuse_resize_and_conv`: bilinear resizes go into the convolution after them."""

from __future__ import annotations

from typing import Any

from opdock.transforms.fused_images import AFTER_RESIZE, fuse_images
from opdock.transforms.registry import Context


def fuse_resize_and_conv(graph_def: Any, context: Context) -> Any:
    """Makes FusedResizeAndPadConv2D of ResizeBilinear and Conv2D."""
    return fuse_images(graph_def, context, AFTER_RESIZE)
