"""Sliding windows over channels-last arrays: geometry, padding, strided views."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.plugin import errors

__all__ = ["Window", "channels_first", "channels_last", "narrow", "pad", "unpad", "widen"]

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Window:
    """Where a window stands on an input of given spatial sizes.

    Attributes:
        size: the input's spatial sizes.
        window: the window's sizes.
        strides: the steps of the window.
        dilations: the steps inside the window.
        pads: (before, after) padding per spatial dimension.
        out: the number of positions per spatial dimension.
    """

    size: tuple[int, ...]
    window: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[tuple[int, int], ...]
    out: tuple[int, ...]

    @classmethod
    def make(
        cls, size: Sequence[int], window: Sequence[int], strides: Sequence[int],
        dilations: Sequence[int], padding: str, explicit: Sequence[tuple[int, int]] = (),
    ) -> Window:  # fmt: skip
        """The geometry for TF's padding schemes.

        Raises:
            InvalidArgumentError: the window does not fit.
        """
        pads: list[tuple[int, int]] = []
        out: list[int] = []
        for i, (n, k, s, d) in enumerate(zip(size, window, strides, dilations, strict=True)):
            effective = (k - 1) * d + 1
            if padding == "SAME":
                positions = -(-n // s)
                needed = max(0, (positions - 1) * s + effective - n)
                before, after = needed // 2, needed - needed // 2
            else:
                before, after = explicit[i] if padding == "EXPLICIT" else (0, 0)
                positions = (n + before + after - effective) // s + 1
            if positions < 0 or (positions == 0 and padding != "SAME"):
                raise errors.InvalidArgumentError(
                    None,
                    None,
                    f"Computed output size would be negative: {positions - 1} [input_size: {n}, "
                    f"effective_filter_size: {effective}, stride: {s}]",
                )
            pads.append((before, after))
            out.append(positions)
        return cls(
            tuple(size), tuple(window), tuple(strides), tuple(dilations), tuple(pads), tuple(out)
        )

    @property
    def is_pointwise(self) -> bool:
        """Whether each output sees exactly the input at its own place."""
        return (
            all(k == 1 for k in self.window)
            and all(s == 1 for s in self.strides)
            and not self.is_padded
        )

    @property
    def is_padded(self) -> bool:
        """Whether any dimension is padded."""
        return any(p != (0, 0) for p in self.pads)

    @property
    def padded_size(self) -> tuple[int, ...]:
        """The spatial sizes with padding."""
        return tuple(n + a + b for n, (a, b) in zip(self.size, self.pads, strict=True))

    def offsets(self) -> Iterator[tuple[int, ...]]:
        """The window's elements, in row-major order."""
        return itertools.product(*(range(k) for k in self.window))

    def slices(self, offset: Sequence[int]) -> tuple[slice, ...]:
        """Where on the padded spatial dimensions one window element lies, for all positions."""
        return tuple(
            slice(o * d, o * d + (n - 1) * s + 1, s) if n else slice(0, 0)
            for o, d, n, s in zip(offset, self.dilations, self.out, self.strides, strict=True)
        )

    def positions(self, padded: Array) -> Array:
        """A view [batch, *out, *window, channels] of a padded channels-last array."""
        batch, *steps, channel = padded.strides
        walk = [t * s for t, s in zip(steps, self.strides, strict=True)]
        inside = [t * d for t, d in zip(steps, self.dilations, strict=True)]
        return np.lib.stride_tricks.as_strided(
            padded,
            (padded.shape[0], *self.out, *self.window, padded.shape[-1]),
            (batch, *walk, *inside, channel),
            writeable=False,
        )

    def counts(self) -> Array:
        """How many elements of each window are input, not padding: an array of shape `out`."""
        total = np.ones((1,) * len(self.out), np.int64)
        for axis, n in enumerate(self.size):
            before = self.pads[axis][0]
            starts = np.arange(self.out[axis]) * self.strides[axis] - before
            taps = starts[:, None] + np.arange(self.window[axis]) * self.dilations[axis]
            inside = ((taps >= 0) & (taps < n)).sum(axis=1)
            shape = [1] * len(self.out)
            shape[axis] = -1
            total = total * inside.reshape(shape)
        return total


def pad(x: Array, where: Window, value: Any = 0) -> Array:
    """A channels-last array with its spatial dimensions padded; `x` itself when nothing is."""
    if not where.is_padded:
        return x
    out = np.empty((x.shape[0], *where.padded_size, x.shape[-1]), x.dtype)
    inner = (
        slice(None),
        *(slice(a, a + n) for n, (a, _) in zip(where.size, where.pads, strict=True)),
    )
    out[inner] = x
    # Only the frame is filled: most of the array is about to be input.
    for axis, (n, (before, after)) in enumerate(zip(where.size, where.pads, strict=True), start=1):
        lead = (slice(None),) * axis
        if before:
            out[(*lead, slice(0, before))] = value
        if after:
            out[(*lead, slice(before + n, None))] = value
    return out


def unpad(padded: Array, where: Window) -> Array:
    """The part of a padded array that is input, as a contiguous array."""
    if not where.is_padded:
        return padded
    inner = (
        slice(None),
        *(slice(a, a + n) for n, (a, _) in zip(where.size, where.pads, strict=True)),
    )
    return np.ascontiguousarray(padded[inner])


def channels_last(x: Array, first: bool) -> Array:
    """A view of `x` with its channels last."""
    return np.moveaxis(x, 1, -1) if first else x


def channels_first(x: Array, first: bool) -> Array:
    """`x`, contiguous, with its channels where the data format wants them."""
    return np.ascontiguousarray(np.moveaxis(x, -1, 1) if first else x)


def widen(x: Array) -> Array:
    """float16 and bfloat16 as float32, in which they are computed; other types as they are."""
    return x.astype(np.float32) if x.dtype.itemsize == 2 and x.dtype.kind not in "iu" else x


def narrow(x: Array, dtype: Any) -> Array:
    """`x` in the declared type."""
    return x.astype(dtype, copy=False)
