"""Sliding windows over images and volumes: geometry by TF's padding schemes, memory layouts.

Kernels see three spatial dimensions, of which an image lacks the first, and channels last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from opdock.plugin import NodeSig, codegen
from opdock_ckernels.protocols import Array
from opdock_ckernels.strided import contiguous

__all__ = ["VOLUME", "Layout", "Window", "channels_first", "channels_last"]

VOLUME = """
#define VOLUME int id, int ih, int iw, int kd, int kh, int kw, int sd, int sh, int sw, \\
               int dd, int dh, int dw, int pd, int ph, int pw, int od, int oh, int ow
"""
"""The parameters that `Window.volume` fills."""


@dataclass(frozen=True, slots=True)
class Window:
    """Where a window stands on an input.

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

    @property
    def volume(self) -> tuple[np.int32, ...]:
        """The arguments of `VOLUME`: an image is a volume of one layer."""
        missing = 3 - len(self.size)
        groups = (self.size, self.window, self.strides, self.dilations, self.before, self.out)
        ones = (1, 1, 1, 1, 0, 1)
        return tuple(
            np.int32(v)
            for group, one in zip(groups, ones, strict=True)
            for v in (*[one] * missing, *group)
        )

    @property
    def is_pointwise(self) -> bool:
        """Whether each position sees just the element at its own place."""
        return (
            all(k == 1 for k in self.window)
            and all(s == 1 for s in self.strides)
            and not any(self.before)
            and self.size == self.out
        )


class Layout:
    """The attributes that say how a node's windows move, and where its channels are.

    Args:
        sig: the node; its strides have one entry a dimension of its input.
    """

    def __init__(self, sig: NodeSig) -> None:
        attrs = sig.attrs
        rank = len(attrs["strides"])
        self.first = attrs.get("data_format", "NHWC").startswith("NC")
        self.channel = 1 if self.first else rank - 1
        self.space = tuple(a for a in range(1, rank) if a != self.channel)
        self._strides = self._spatial(attrs["strides"])
        self._dilations = self._spatial(attrs.get("dilations") or [1] * rank)
        pads = attrs.get("explicit_paddings") or [0] * (2 * rank)
        self._padding = attrs["padding"]
        self._explicit = [(int(pads[2 * a]), int(pads[2 * a + 1])) for a in self.space]

    def _spatial(self, values: Sequence[int]) -> list[int]:
        return [int(values[a]) for a in self.space]

    def window(self, size: Sequence[int], window: Sequence[int]) -> Window:
        """The geometry for spatial sizes of the input and of the window."""
        return Window.make(
            size, window, self._strides, self._dilations, self._padding, self._explicit
        )

    def sizes(self, shape: Sequence[int]) -> tuple[tuple[int, ...], int]:
        """The spatial sizes and the channels of a shape in the node's format."""
        return tuple(int(shape[a]) for a in self.space), int(shape[self.channel])


def channels_last(device: Any, x: Array, first: bool) -> Array:
    """`x` with its channels last."""
    return contiguous(device, x, (0, *range(2, x.ndim), 1)) if first else x


def channels_first(device: Any, x: Array, first: bool) -> Array:
    """`x`, whose channels are last, with its channels where the format wants them."""
    return contiguous(device, x, (0, x.ndim - 1, *range(1, x.ndim - 1))) if first else x
