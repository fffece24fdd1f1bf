"""`tf.lookup.experimental`: the dense table."""

from __future__ import annotations

from opdock.lookup.mutable import DenseHashTable

__all__ = ["DenseHashTable"]
