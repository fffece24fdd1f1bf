"""How a window walks over an input, one position and one element at a time."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Index = tuple[int, ...]


def channels_last(x: Array, data_format: str) -> Array:
    """The array with its channels last."""
    return np.moveaxis(x, 1, -1) if data_format.startswith("NC") else x


def restore(x: Array, data_format: str) -> Array:
    """A channels-last array in the wanted format."""
    return np.moveaxis(x, -1, 1) if data_format.startswith("NC") else x


def spatial(values: Sequence[int], data_format: str) -> list[int]:
    """The spatial entries of a per-dimension list."""
    return list(values[2:] if data_format.startswith("NC") else values[1:-1])


def positions(
    size: int, window: int, stride: int, dilation: int, padding: str, explicit: Sequence[int]
) -> tuple[int, int]:
    """The number of window positions along a dimension, and the padding before the input."""
    reach = (window - 1) * dilation + 1
    if padding == "SAME":
        count = -(-size // stride)
        return count, max(0, (count - 1) * stride + reach - size) // 2
    before, after = explicit if padding == "EXPLICIT" else (0, 0)
    return (size + before + after - reach) // stride + 1, before


class Walk:
    """All (output position, input position, window element) triples that meet input.

    Attributes:
        out: the output's spatial sizes.
    """

    def __init__(
        self, size: Sequence[int], window: Sequence[int], strides: Sequence[int],
        dilations: Sequence[int], padding: str, explicit: Sequence[Sequence[int]] | None = None,
    ) -> None:  # fmt: skip
        self._size, self._window = list(size), list(window)
        self._strides, self._dilations = list(strides), list(dilations)
        explicit = explicit or [(0, 0)] * len(self._size)
        found = [
            positions(n, k, s, d, padding, pair)
            for n, k, s, d, pair in zip(size, window, strides, dilations, explicit, strict=True)
        ]
        self.out = [count for count, _ in found]
        self._before = [before for _, before in found]

    def __iter__(self) -> Iterator[tuple[Any, Any, Any]]:
        for out in itertools.product(*map(range, self.out)):
            for tap in itertools.product(*map(range, self._window)):
                source = tuple(
                    o * s + t * d - b
                    for o, s, t, d, b in zip(
                        out, self._strides, tap, self._dilations, self._before, strict=True
                    )
                )
                if all(0 <= i < n for i, n in zip(source, self._size, strict=True)):
                    yield out, source, tap


def conv_walk(attrs: Any, size: Sequence[int], window: Sequence[int]) -> Walk:
    """The walk of a convolution node."""
    data_format = attrs.get("data_format", "NDHWC")
    flat = attrs.get("explicit_paddings") or []
    pairs = [flat[i : i + 2] for i in range(0, len(flat), 2)]
    return Walk(
        size, window, spatial(attrs["strides"], data_format),
        spatial(attrs["dilations"], data_format), attrs["padding"],
        spatial(pairs, data_format) if pairs else None,  # type: ignore[arg-type]
    )  # fmt: skip
