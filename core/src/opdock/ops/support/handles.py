"""Handles of the host's resources: queues, readers, tables, barriers.

Older ops hand on a reference to two strings, container and name; those whose names end with V2 a
resource. Both are the object itself to a kernel.
"""

from __future__ import annotations

from typing import Final

from opdock import shapes
from opdock.ops.registry import ShapeSig
from opdock.shapes import Shape

__all__ = ["HANDLES", "check_handle", "handle_shape"]

HANDLES: Final = (("", "Ref(string)"), ("V2", "resource"))
"""How an op's name ends, and the type of its handle."""


def handle_shape(sig: ShapeSig) -> Shape:
    """The shape of the handle that an op makes."""
    return () if sig.op.endswith("V2") else (2,)


def check_handle(sig: ShapeSig, index: int = 0) -> None:
    """Raises ValueError if an input has not the shape of a handle."""
    if sig.op.endswith("V2"):
        shapes.with_rank(sig.shapes[index], 0)
        return
    (length,) = shapes.with_rank(sig.shapes[index], 1)
    shapes.merge_dim(length, 2)
