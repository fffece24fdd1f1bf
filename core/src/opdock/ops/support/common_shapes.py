"""Shape functions that many ops share."""

from __future__ import annotations

from opdock import shapes
from opdock.ops.registry import ShapeSig
from opdock.shapes import Shape


def unchanged(sig: ShapeSig) -> list[Shape]:
    """Every output has the first input's shape."""
    return [sig.shapes[0]] * sig.n_outputs


def broadcast2(sig: ShapeSig) -> Shape:
    """The broadcast of the first two inputs."""
    return shapes.broadcast(sig.shapes[0], sig.shapes[1])


def merge_all(sig: ShapeSig) -> list[Shape]:
    """All inputs and outputs have one shape."""
    shape: Shape = None
    for other in sig.shapes:
        shape = shapes.merge(shape, other)
    return [shape] * sig.n_outputs


def scalar(sig: ShapeSig) -> list[Shape]:
    """Every output is a scalar."""
    return [()] * sig.n_outputs


def unknown(sig: ShapeSig) -> list[Shape]:
    """No output shape is known."""
    return [None] * sig.n_outputs


def no_outputs(sig: ShapeSig) -> list[Shape]:
    """The op has no outputs."""
    return []
