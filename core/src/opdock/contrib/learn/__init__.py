"""`tf.contrib.learn`: texts as ids."""

from __future__ import annotations

from opdock.contrib.learn import preprocessing

__all__ = ["preprocessing"]
