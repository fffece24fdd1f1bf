"""`tf.math`: mathematical functions of tensors."""

from __future__ import annotations
