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


def all_scalar(sig: ShapeSig) -> list[Shape]:
    """Every input and every output is a scalar."""
    for given in sig.shapes:
        shapes.with_rank(given, 0)
    return [()] * sig.n_outputs


def unknown(sig: ShapeSig) -> list[Shape]:
    """No output shape is known."""
    return [None] * sig.n_outputs


def no_outputs(sig: ShapeSig) -> list[Shape]:
    """The op has no outputs."""
    return []


def check_scatter_nd(
    out: Shape, indices: Shape, updates: Shape, called: str = "output"
) -> None:  # fmt: skip
    """Checks that updates have the shape of the indices and then of what these point at.

    Args:
        out: the shape of what is updated.
        indices: of the indices, whose last dimension holds coordinates.
        updates: of the updates.
        called: what messages call the first.

    Raises:
        ValueError: they have another.
    """
    indices, updates = (shapes.with_rank_at_least(s, 1) for s in (indices, updates))
    if (
        shapes.num_elements(out) == 0
        and shapes.num_elements(indices) != 0
        and ((shapes.num_elements(indices) or 0) > 0 or (shapes.num_elements(updates) or 0) > 0)
    ):
        raise ValueError("Indices and updates specified for empty output shape")
    if indices is None or updates is None or indices[-1] is None:
        return
    outer, depth = len(indices) - 1, indices[-1]
    if not shapes.is_compatible(indices[:outer], updates[:outer]):
        raise ValueError(
            f"The outer {outer} dimensions of indices.shape={shapes.text(indices)} must match "
            f"the outer {outer} dimensions of updates.shape={shapes.text(updates)}"
        )
    if out is None:
        return
    if not shapes.is_compatible(out[depth:], updates[outer:]):
        raise ValueError(
            f"The inner {max(0, len(out) - depth)} dimensions of {called}.shape={shapes.text(out)} "
            f"must match the inner {len(updates) - outer} dimensions of "
            f"updates.shape={shapes.text(updates)}"
        )


def covers(wide: Shape, narrow: Shape) -> bool:
    """Whether every concrete shape that fits `narrow` fits `wide`."""
    if wide is None:
        return True
    if narrow is None or len(wide) != len(narrow):
        return False
    return all(w is None or w == n for w, n in zip(wide, narrow, strict=True))
