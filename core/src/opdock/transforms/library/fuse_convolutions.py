"""`fuse_convolutions`: resizes and mirrored margins go into the convolution after them."""

from __future__ import annotations

from typing import Any

from opdock.transforms.fused_images import (
    AFTER_PAD,
    AFTER_RESIZE,
    AFTER_RESIZE_AND_PAD,
    fuse_images,
)
from opdock.transforms.registry import Context


def fuse_convolutions(graph_def: Any, context: Context) -> Any:
    """Does what fuse_resize_pad_and_conv, fuse_resize_and_conv and fuse_pad_and_conv do."""
    return fuse_images(graph_def, context, AFTER_RESIZE_AND_PAD, AFTER_RESIZE, AFTER_PAD)
