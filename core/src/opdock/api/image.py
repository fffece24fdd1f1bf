"""`tf.image`: what exists of it so far."""

from __future__ import annotations

from opdock.ops.patches import extract_image_patches

__all__ = ["extract_image_patches"]
