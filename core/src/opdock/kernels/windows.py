"""Sliding windows as integers: where the windows of convolutions and pools stand on their input.

No array is touched here, so kernels on every kind of buffer can share it.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from opdock import errors

__all__ = ["Layout", "Window"]


@dataclass(frozen=True, slots=True)
class Window:
    """The positions of a window over some spatial dimensions.

    Attributes:
        size: the input's spatial sizes.
        window: the window's sizes.
        strides: the steps from one position to the next.
        dilations: the steps inside the window.
        pads: (before, after) padding of each dimension.
        out: the number of positions in each dimension.
    """

    size: tuple[int, ...]
    window: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[tuple[int, int], ...]
    out: tuple[int, ...]

    @property
    def padded(self) -> tuple[int, ...]:
        """The spatial sizes with padding."""
        return tuple(n + before + after for n, (before, after) in zip(self.size, self.pads))

    @property
    def inner(self) -> tuple[slice, ...]:
        """Where the input lies inside its padding."""
        return tuple(slice(before, before + n) for n, (before, _) in zip(self.size, self.pads))

    def taps(self) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...]]]:
        """Each element of the window, and where it lies on the padded input at all positions."""
        steps = list(zip(self.dilations, self.strides, self.out))
        for offset in itertools.product(*(range(k) for k in self.window)):
            here = (
                slice(o * d, o * d + (n - 1) * s + 1, s) if n else slice(0, 0)
                for o, (d, s, n) in zip(offset, steps)
            )
            yield offset, tuple(here)


@functools.lru_cache(maxsize=512)
def _window(
    size: tuple[int, ...], window: tuple[int, ...], strides: tuple[int, ...],
    dilations: tuple[int, ...], padding: str, explicit: tuple[tuple[int, int], ...],
) -> Window:  # fmt: skip
    pads, out = [], []
    for i, (n, k, s, d) in enumerate(zip(size, window, strides, dilations, strict=True)):
        reach = (k - 1) * d + 1
        if padding == "SAME":
            count = -(-n // s)
            missing = max(0, (count - 1) * s + reach - n)
            pads.append((missing // 2, missing - missing // 2))
        else:
            pads.append(explicit[i] if padding == "EXPLICIT" else (0, 0))
            count = (n + sum(pads[-1]) - reach) // s + 1
            if count <= 0:
                raise errors.InvalidArgumentError(
                    None, None,
                    f"Computed output size would be negative: {count - 1} [input_size: {n}, "
                    f"effective_filter_size: {reach}, stride: {s}]",
                )  # fmt: skip
        out.append(count)
    return Window(size, window, strides, dilations, tuple(pads), tuple(out))


class Layout:
    """Which dimensions of a node's tensors are spatial, and how its windows move on them.

    Args:
        attrs: the node's attributes: strides, padding, and data_format, dilations and
            explicit_paddings where the op has them.
        strides: the strides of ops that take them as an input.
    """

    def __init__(self, attrs: Mapping[str, Any], strides: Sequence[int] | None = None) -> None:
        steps = [int(s) for s in (attrs["strides"] if strides is None else strides)]
        rank = len(steps)
        self.first = attrs.get("data_format", "NHWC").startswith("NC")
        self.channel = 1 if self.first else rank - 1
        self.space = tuple(a for a in range(1, rank) if a != self.channel)
        pads = attrs.get("explicit_paddings") or [0] * (2 * rank)
        self._padding = attrs["padding"]
        self._explicit = tuple((pads[2 * a], pads[2 * a + 1]) for a in self.space)
        self._strides = self.spatial(steps)
        self._dilations = self.spatial(attrs.get("dilations") or [1] * rank)

    def spatial(self, values: Any) -> tuple[int, ...]:
        """The entries of the spatial dimensions, of a shape for instance."""
        return tuple(int(values[a]) for a in self.space)

    def window(self, size: tuple[int, ...], window: tuple[int, ...]) -> Window:
        """The positions of a window on an input.

        Raises:
            InvalidArgumentError: the window does not fit.
        """
        return _window(size, window, self._strides, self._dilations, self._padding, self._explicit)
