"""`tf.contrib.memory_stats`: the memory of the device that an operation is placed on.

A device that does not keep a number raises UnimplementedError when it is asked for: the CPU knows
its limit alone.
"""

from __future__ import annotations

from typing import Any

from opdock.ops.support.nn_util import emit

__all__ = ["BytesInUse", "BytesLimit", "MaxBytesInUse"]


def BytesInUse() -> Any:
    """The bytes of the device's memory that are taken when the operation runs, as int64."""
    return emit("BytesInUse")


def BytesLimit() -> Any:
    """The bytes of memory that the device has, as int64."""
    return emit("BytesLimit")


def MaxBytesInUse() -> Any:
    """The most bytes of the device's memory that have been taken so far, as int64."""
    return emit("MaxBytesInUse")
