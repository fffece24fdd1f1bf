"""`tf.contrib.nccl`: sums and the like over tensors of several devices, as plain ops.

TensorFlow gives them to NVIDIA's library, which waits for all devices at once. Here each device
reduces copies, whichever devices they are, and one result may be had without the others.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.scopes import device
from opdock.ops.arithmetic import maximum, minimum, multiply
from opdock.ops.identity import identity
from opdock.ops.sums import add_n

__all__ = ["all_max", "all_min", "all_prod", "all_sum", "broadcast", "reduce_sum"]


def all_sum(tensors: Sequence[Any]) -> list[Any]:
    """The sum of tensors, on the device of each.

    Args:
        tensors: tensors of one shape, all with a device.

    Returns:
        As many tensors, each on the device of the one in its place.

    Raises:
        ValueError: there are no tensors, or one has no device.
    """
    return _everywhere(add_n, tensors)


def all_prod(tensors: Sequence[Any]) -> list[Any]:
    """The product of tensors, on the device of each; see `all_sum`."""
    return _everywhere(lambda parts: functools.reduce(multiply, parts), tensors)


def all_min(tensors: Sequence[Any]) -> list[Any]:
    """The least of tensors, element by element, on the device of each; see `all_sum`."""
    return _everywhere(lambda parts: functools.reduce(minimum, parts), tensors)


def all_max(tensors: Sequence[Any]) -> list[Any]:
    """The greatest of tensors, element by element, on the device of each; see `all_sum`."""
    return _everywhere(lambda parts: functools.reduce(maximum, parts), tensors)


def reduce_sum(tensors: Sequence[Any]) -> Any:
    """The sum of tensors, on the current device.

    Args:
        tensors: tensors of one shape, all with a device; one is on the current one.

    Returns:
        A tensor.

    Raises:
        ValueError: there are no tensors, one has no device, or none is on the current device.
    """
    parts = _placed(tensors)
    total = add_n(parts)
    if total.device not in {part.device for part in parts}:
        raise ValueError("One input tensor must be assigned to current device")
    return total


def broadcast(tensor: Any) -> Any:
    """A tensor for ops on other devices to take.

    Args:
        tensor: a tensor with a device.

    Returns:
        Its value, on the same device.

    Raises:
        ValueError: it has no device.
    """
    (part,) = _placed([tensor])
    with device(part.device):
        return identity(part)


def _everywhere(reduction: Callable[[list[Any]], Any], tensors: Sequence[Any]) -> list[Any]:
    parts = _placed(tensors)
    results = []
    for part in parts:
        with device(part.device):
            results.append(reduction(parts))
    return results


def _placed(tensors: Sequence[Any]) -> list[Any]:
    if not tensors:
        raise ValueError("Must pass >0 tensors to reduce operations")
    parts = [convert_to_tensor(t) for t in tensors]
    if not all(part.device for part in parts):
        raise ValueError("Device assignment required for nccl collective ops")
    return parts
