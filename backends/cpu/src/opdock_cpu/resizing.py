"""Images with new lines along two axes, as loops over the lines of the result.

The sums are those of core's portable kernels, in the same order and precision: what they take in a
pass over the image for each tap, this takes in one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from opdock_cpu.jit.looped import Array, Looped, single

__all__ = ["resampled"]

_COST: Final = 4
"""Steps of one element of a result that lies between four."""


def _between(
    begin: int, end: int, out: Array, x: Array, low: Array, high: Array, under: Array,
    left: Array, right: Array, over: Array, rows: int, columns: int, height: int, width: int,
    depth: int,
) -> None:  # fmt: skip
    """A turn is a line of an image: of each two lines, between two columns."""
    for at in range(begin, end):
        image, r = at // rows * height, at % rows
        above, below = (image + low[r]) * width * depth, (image + high[r]) * width * depth
        down = under[r]
        for j in range(columns):
            near, far, along = left[j] * depth, right[j] * depth, over[j]
            to = (at * columns + j) * depth
            for c in range(depth):
                first = single(x[above + near + c])
                upper = first + (single(x[above + far + c]) - first) * along
                first = single(x[below + near + c])
                lower = first + (single(x[below + far + c]) - first) * along
                out[to + c] = upper + (lower - upper) * down


def _lines(
    begin: int, end: int, out: Array, x: Array, index: Array, weight: Array, taps: int,
    lines: int, old: int, inner: int,
) -> None:  # fmt: skip
    """A turn is a new line, of elements that lie side by side: the sum of old ones."""
    for at in range(begin, end):
        outer, r = at // lines, at % lines
        to = at * inner
        for t in range(taps):
            source, part = (outer * old + index[t * lines + r]) * inner, weight[t * lines + r]
            if t == 0:
                for c in range(inner):
                    out[to + c] = single(x[source + c]) * part
            else:
                for c in range(inner):
                    out[to + c] = out[to + c] + single(x[source + c]) * part


def _points(
    begin: int, end: int, out: Array, x: Array, index: Array, weight: Array, taps: int,
    lines: int, old: int, inner: int,
) -> None:  # fmt: skip
    """The same where few elements lie side by side: a turn is all new lines of an outer index."""
    for outer in range(begin, end):
        for r in range(lines):
            to = (outer * lines + r) * inner
            for t in range(taps):
                source, part = (outer * old + index[t * lines + r]) * inner, weight[t * lines + r]
                for c in range(inner):
                    total = single(x[source + c]) * part
                    if t > 0:
                        total = out[to + c] + total
                    out[to + c] = total


_BETWEEN: Final = Looped(_between, fixed=["depth"])
_LINES: Final = Looped(_lines)
_POINTS: Final = Looped(_points, fixed=["inner", "taps"])
_FEW: Final = 16


def resampled(x: Array, steps: Sequence[tuple[int, Any]]) -> Array | None:
    """Images in single precision with new lines, one axis after the other.

    Args:
        x: [batch, height, width, depth].
        steps: in their order, the axis and its lines (`opdock.kernels.resampling.Lines`).

    Returns:
        None if there is no code for them, or not yet.
    """
    if x.size == 0 or any(lines.weight is None for _, lines in steps):
        return None
    if [(axis, lines.lerp) for axis, lines in steps] == [(2, True), (1, True)]:
        return _interpolated(x, steps[1][1], steps[0][1])
    if any(lines.lerp for _, lines in steps):
        return None
    for axis, lines in steps:
        made = _along(x, axis, lines)
        if made is None:
            return None
        x = made
    return x


def _interpolated(x: Array, down: Any, along: Any) -> Array | None:
    batch, height, width, depth = x.shape
    rows, columns = down.index.shape[1], along.index.shape[1]
    out = np.empty((batch, rows, columns, depth), np.float32)
    where = [a for lines in (down, along) for a in (*lines.index, lines.weight[1])]
    sizes = (rows, columns, height, width, depth)
    done = _BETWEEN(batch * rows, _COST * out.size, out, x, *where, *sizes)
    return out if done else None


def _along(x: Array, axis: int, lines: Any) -> Array | None:
    shape = x.shape
    outer, inner = int(np.prod(shape[:axis])), int(np.prod(shape[axis + 1 :]))
    taps, count = lines.index.shape
    out = np.empty((*shape[:axis], count, *shape[axis + 1 :]), np.float32)
    given = (x, lines.index, lines.weight, taps, count, shape[axis], inner)
    if inner < _FEW:
        done = _POINTS(outer, taps * out.size, out, *given)
    else:
        done = _LINES(outer * count, taps * out.size, out, *given)
    return out if done else None
