"""Sliding windows over images: geometry by TF's padding schemes, and memory layouts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from opdock.plugin import codegen
from opdock_ckernels.protocols import Array
from opdock_ckernels.strided import contiguous

__all__ = ["Window", "channels_first", "channels_last"]


@dataclass(frozen=True, slots=True)
class Window:
    """Where a window of two dimensions stands on an input.

    Attributes:
        size, window, strides, dilations: per spatial dimension.
        before: the padding before each spatial dimension.
        out: the number of positions per spatial dimension.
    """

    size: tuple[int, ...]
    window: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    before: tuple[int, ...]
    out: tuple[int, ...]

    @classmethod
    def make(
        cls, size: Sequence[int], window: Sequence[int], strides: Sequence[int],
        dilations: Sequence[int], padding: str, explicit: Sequence[tuple[int, int]] = (),
    ) -> Window:  # fmt: skip
        """The geometry; InvalidArgumentError where the window does not fit."""
        starts, out = [], []
        for i, (n, k, s, d) in enumerate(zip(size, window, strides, dilations, strict=True)):
            reach = (k - 1) * d + 1
            if padding == "SAME":
                positions = -(-n // s)
                start = max(0, (positions - 1) * s + reach - n) // 2
            else:
                start, end = explicit[i] if padding == "EXPLICIT" else (0, 0)
                positions = (n + start + end - reach) // s + 1
            if positions < 0 or (positions == 0 and padding != "SAME"):
                raise codegen.invalid(
                    f"Computed output size would be negative: {positions - 1} [input_size: {n}, "
                    f"effective_filter_size: {reach}, stride: {s}]"
                )
            starts.append(start)
            out.append(positions)
        return cls(
            tuple(size), tuple(window), tuple(strides), tuple(dilations), tuple(starts), tuple(out)
        )

    @property
    def numbers(self) -> tuple[int, ...]:
        """Sizes, window, strides, dilations, padding and positions as kernels take them."""
        groups = (self.size, self.window, self.strides, self.dilations, self.before, self.out)
        return tuple(v for group in groups for v in group)


def channels_last(device: Any, x: Array, first: bool) -> Array:
    """`x` with its channels last."""
    return contiguous(device, x, (0, 2, 3, 1)) if first else x


def channels_first(device: Any, x: Array, first: bool) -> Array:
    """`x`, whose channels are last, with its channels where the format wants them."""
    return contiguous(device, x, (0, 3, 1, 2)) if first else x
