"""What a device says of its memory, when a step comes to ask."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opdock import errors
from opdock.compiler.ir.block import Node

__all__ = ["bytes_of_device"]


def bytes_of_device(part: str, node: Node, resources: Any) -> Callable[[], Any]:
    """A function that gives a number of bytes; UnimplementedError where the device keeps none.

    Args:
        part: a field of the device's `MemoryStats`.
        node: an op that asks for it.
        resources: what the session keeps, which does not matter here.
    """
    target = node.target
    assert target is not None

    def ask() -> Any:
        found = getattr(target.device.memory(), part)
        if found is None:
            raise errors.UnimplementedError(
                None, None,
                f"Op {node.op}: {target.name} keeps no account of its memory ({part})",
            )  # fmt: skip
        return np.array(found, np.int64)

    return ask
