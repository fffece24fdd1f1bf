"""`fuse_resize_pad_and_conv`: resizes with mirrored margins go into the convolution after them."""

from __future__ import annotations

from typing import Any

from opdock.transforms.fused_images import AFTER_RESIZE_AND_PAD, fuse_images
from opdock.transforms.registry import Context


def fuse_resize_pad_and_conv(graph_def: Any, context: Context) -> Any:
    """Makes FusedResizeAndPadConv2D of ResizeBilinear, MirrorPad and Conv2D."""
    return fuse_images(graph_def, context, AFTER_RESIZE_AND_PAD)
