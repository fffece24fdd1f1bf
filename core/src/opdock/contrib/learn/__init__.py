"""`tf.contrib.learn`: texts as ids, and data sets."""

from __future__ import annotations

from opdock.contrib.learn import datasets, preprocessing

__all__ = ["datasets", "preprocessing"]
