"""Sliding windows as integers: where the windows of convolutions and pools stand on their input.

No array is touched here, so shape functions and the kernels of every kind of buffer share it.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from opdock import errors
from opdock.late import record

__all__ = [
    "Dim", "Format", "Layout", "Pool", "Window", "check_depth", "check_shape", "groups",
    "plain_format", "positions",
]  # fmt: skip

Dim = int | None
Pads = tuple[int, int]


def _invalid(message: str) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(None, None, message)


# ---------------------------------------------------------------- positions
def positions(
    size: int, window: int, stride: int, dilation: int, padding: str, explicit: Pads = (0, 0)
) -> tuple[int, Pads]:
    """How often a window fits on one dimension, and the padding before and after it.

    Args:
        size: the input's size.
        window: the window's size, undilated.
        stride: the step from one position to the next.
        dilation: the step inside the window.
        padding: "SAME", "VALID" or "EXPLICIT".
        explicit: the padding for "EXPLICIT".

    Raises:
        InvalidArgumentError: the window is larger than the input by a step or more. One that is
            larger by less has no position.
    """
    reach = (window - 1) * dilation + 1
    if padding == "SAME":
        count = -(-size // stride)
        missing = max(0, (count - 1) * stride + reach - size)
        return count, (missing // 2, missing - missing // 2)
    pads = explicit if padding == "EXPLICIT" else (0, 0)
    room = size + sum(pads) - reach + stride
    count = room // stride if room >= 0 else -(-room // stride)
    if count < 0:
        raise _invalid(
            f"Computed output size would be negative: {count} [input_size: {size}, "
            f"effective_filter_size: {reach}, stride: {stride}]"
        )
    return count, pads


@record(frozen=True, slots=True)
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
    pads: tuple[Pads, ...]
    out: tuple[int, ...]

    @property
    def padded(self) -> tuple[int, ...]:
        """The spatial sizes with padding."""
        return tuple(n + before + after for n, (before, after) in zip(self.size, self.pads))

    @property
    def inner(self) -> tuple[slice, ...]:
        """Where the input lies inside its padding."""
        return tuple(slice(before, before + n) for n, (before, _) in zip(self.size, self.pads))

    @property
    def is_padded(self) -> bool:
        """Whether any dimension is padded."""
        return any(pads != (0, 0) for pads in self.pads)

    @property
    def is_pointwise(self) -> bool:
        """Whether each position sees exactly the input at its own place."""
        ones = all(k == 1 for k in self.window) and all(s == 1 for s in self.strides)
        return ones and not self.is_padded

    def taps(self) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...]]]:
        """Each element of the window, and where it lies on the padded input at all positions."""
        steps = list(zip(self.dilations, self.strides, self.out))
        for offset in itertools.product(*(range(k) for k in self.window)):
            here = (
                slice(o * d, o * d + (n - 1) * s + 1, s) if n else slice(0, 0)
                for o, (d, s, n) in zip(offset, steps)
            )
            yield offset, tuple(here)

    def inside(self) -> Iterator[list[int]]:
        """For each dimension, how much of the window is input rather than padding, by position."""
        for n, k, s, d, (before, _), out in zip(
            self.size, self.window, self.strides, self.dilations, self.pads, self.out
        ):
            starts = range(-before, out * s - before, s)
            yield [sum(0 <= start + i * d < n for i in range(k)) for start in starts]


@functools.lru_cache(maxsize=512)
def _window(
    size: tuple[int, ...], window: tuple[int, ...], strides: tuple[int, ...],
    dilations: tuple[int, ...], padding: str, explicit: tuple[Pads, ...],
) -> Window:  # fmt: skip
    found = [
        positions(n, k, s, d, padding, pads)
        for n, k, s, d, pads in zip(size, window, strides, dilations, explicit, strict=True)
    ]
    pads, out = tuple(p for _, p in found), tuple(count for count, _ in found)
    return Window(size, window, strides, dilations, pads, out)


# ---------------------------------------------------------------- layouts
def channels_first(data_format: str | None) -> bool:
    """Whether a format has the channels before the spatial dimensions; by default they are last."""
    return data_format is not None and data_format.startswith("NC")


class Format:
    """Where batch, space and channels are in a data format.

    Args:
        data_format: TF's name: "NHWC", "NCHW", "NDHWC", "NCDHW", ...
        rank: the number of dimensions.

    Attributes:
        first: whether the channels stand before the spatial dimensions.
        channel: the channel dimension.
        space: the spatial dimensions, outermost first.
    """

    def __init__(self, data_format: str, rank: int) -> None:
        self.rank = rank
        self.first = channels_first(data_format)
        self.channel = 1 if self.first else rank - 1
        self.space = tuple(a for a in range(1, rank) if a != self.channel)

    def spatial(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """The entries of the spatial dimensions, of a shape for instance."""
        return tuple(values[a] for a in self.space)

    def parts(self, shape: Sequence[Any]) -> tuple[Any, tuple[Any, ...], Any]:
        """The batch, the spatial sizes and the channels of a shape."""
        return shape[0], self.spatial(shape), shape[self.channel]

    def shape(self, batch: Any, space: Sequence[Any], channels: Any) -> tuple[Any, ...]:
        """The shape that has these parts."""
        return (batch, channels, *space) if self.first else (batch, *space, channels)


class Layout(Format):
    """A node's data format, and how its windows move on its input.

    Args:
        attrs: the node's attributes: strides, padding, and data_format, dilations (or rates) and
            explicit_paddings where the op has them. A padding_list with anything in it stands
            before padding: quantized layers have it where TensorFlow's passes took in a Pad.
        strides: the strides of ops that take them as an input.

    Raises:
        InvalidArgumentError: a step below 1, or paddings that no op takes.
    """

    def __init__(self, attrs: Mapping[str, Any], strides: Sequence[int] | None = None) -> None:
        steps = attrs["strides"] if strides is None else strides
        super().__init__(attrs.get("data_format", "NHWC"), len(steps))
        rates = attrs.get("dilations") or attrs.get("rates") or [1] * self.rank
        self.strides = tuple(int(s) for s in self.spatial(steps))
        self.dilations = tuple(int(d) for d in self.spatial(rates))
        taken_in = attrs.get("padding_list") or []
        self.padding = "EXPLICIT" if any(taken_in) else attrs["padding"]
        self.explicit = self._explicit(
            taken_in if any(taken_in) else attrs.get("explicit_paddings") or []
        )
        for stride in self.strides:
            if stride <= 0:
                raise _invalid(f"Stride must be > 0, but got {stride}")
        for rate in self.dilations:
            if rate < 1:
                raise _invalid(f"Dilation rate must be >= 1, but got {rate}")

    def _explicit(self, values: Sequence[int]) -> tuple[Pads, ...]:
        if self.padding != "EXPLICIT":
            if values:
                raise _invalid(
                    "explicit_paddings attribute must be empty if the padding attribute is not "
                    "EXPLICIT"
                )
            return ((0, 0),) * len(self.space)
        if len(values) != 2 * self.rank:
            raise _invalid(
                f"explicit_paddings attribute must contain {2 * self.rank} values, "
                f"but got: {len(values)}"
            )
        if any(v < 0 for v in values):
            raise _invalid("All elements of explicit_paddings must be nonnegative")
        pairs = [(int(values[2 * i]), int(values[2 * i + 1])) for i in range(self.rank)]
        if any(pairs[i] != (0, 0) for i in range(self.rank) if i not in self.space):
            raise _invalid(
                "Nonzero explicit padding in the batch or depth dimensions is not supported"
            )
        return self.spatial(pairs)

    def window(self, size: Sequence[int], window: Sequence[int]) -> Window:
        """The positions of a window on an input.

        Raises:
            InvalidArgumentError: the window does not fit.
        """
        taps = tuple(int(k) for k in window)
        return _window(tuple(size), taps, self.strides, self.dilations, self.padding, self.explicit)

    def output(
        self, size: Sequence[Dim], window: Sequence[Dim], *, empty: bool = False
    ) -> tuple[Dim, ...]:
        """The number of positions in each dimension, None where that is not known.

        Args:
            size: the input's spatial sizes.
            window: the window's sizes.
            empty: whether a window may be larger than its input, and then has no position.

        Raises:
            InvalidArgumentError: the window does not fit.
        """
        found: list[Dim] = []
        moves = zip(self.strides, self.dilations, self.explicit)
        for n, k, (stride, rate, pads) in zip(size, window, moves, strict=True):
            if n is None or (k is None and self.padding != "SAME"):
                found.append(None)
                continue
            k = 1 if k is None else k
            room, reach = n + sum(pads), (k - 1) * rate + 1
            if self.padding != "SAME" and room < reach and not empty:
                raise _invalid(f"Negative dimension size caused by subtracting {reach} from {room}")
            found.append(positions(n, k, stride, rate, self.padding, pads)[0])
        return tuple(found)


class Pool(Layout):
    """The layout of a pool, whose windows go over space or over the channels.

    Args:
        attrs: the node's attributes.
        ksize: the window of ops that take it as an input.
        strides: the strides of ops that take them as an input.

    Attributes:
        deep: whether the channels are pooled.
        pooled: the dimensions that are.
        ksize: the window's sizes in these dimensions.

    Raises:
        UnimplementedError: the window goes over the batch, over space and channels, or over
            channels in other steps than its size.
        InvalidArgumentError: a size or a step is below 1.
    """

    def __init__(self, attrs: Mapping[str, Any], ksize: Any = None, strides: Any = None) -> None:
        size = [int(k) for k in (attrs["ksize"] if ksize is None else ksize)]
        steps = [int(s) for s in (attrs["strides"] if strides is None else strides)]
        if size[0] != 1 or steps[0] != 1:
            raise errors.UnimplementedError(
                None, None, "Pooling is not yet supported on the batch dimension."
            )
        if min(size) < 1 or min(steps) < 1:
            raise _invalid(f"Pooling needs positive windows and steps, got {size} and {steps}")
        super().__init__(attrs, steps)
        self.deep = size[self.channel] != 1 or steps[self.channel] != 1
        self.pooled = (self.channel,) if self.deep else self.space
        if self.deep:
            if any(size[a] != 1 or steps[a] != 1 for a in self.space):
                raise errors.UnimplementedError(
                    None, None, "MaxPooling supports exactly one of pooling across depth or "
                    "pooling across width/height.",
                )  # fmt: skip
            if size[self.channel] != steps[self.channel]:
                raise errors.UnimplementedError(
                    None, None,
                    "Depthwise max pooling requires the depth window to equal the depth stride.",
                )  # fmt: skip
            self.strides = (steps[self.channel],)
            self.dilations, self.explicit = (1,), ((0, 0),)
        self.ksize = tuple(size[a] for a in self.pooled)

    def window(self, size: Sequence[int], window: Sequence[int]) -> Window:
        """As of any layout.

        Raises:
            UnimplementedError: windows over channels do not fill them.
        """
        if self.deep and size[0] % window[0]:
            raise errors.UnimplementedError(
                None, None, "Depthwise max pooling requires the depth window to evenly divide the "
                "input depth.",
            )  # fmt: skip
        return super().window(size, window)

    def on(self, shape: Sequence[int]) -> Window:
        """The positions on an input of this shape, over the pooled dimensions alone."""
        return self.window([shape[a] for a in self.pooled], self.ksize)

    def result(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of the pooled input."""
        out = dict(zip(self.pooled, self.on(shape).out))
        return tuple(out.get(axis, n) for axis, n in enumerate(shape))


# ---------------------------------------------------------------- what must fit
def plain_format(sig: Any) -> bool | str:
    """Whether a node's images have one batch, space and channel dimension each, for `when`."""
    if sig.attrs.get("data_format") == "NCHW_VECT_C":
        return "the format NCHW_VECT_C is for int8 hardware only"
    return True


def groups(channels: int, inner: int, outputs: Dim, *, static: bool = False) -> int:
    """The number of groups that a filter's input channels make of the input's.

    Args:
        channels: the input's channels.
        inner: the filter's input channels.
        outputs: the filter's output channels.
        static: whether the shapes are known as the node is made, of which TF speaks otherwise.

    Raises:
        InvalidArgumentError: they do not divide the input's channels, or the outputs.
    """
    if channels == inner:
        return 1
    if inner == 0 or channels % inner:
        raise _invalid(
            f"Depth of input ({channels}) is not a multiple of input depth of filter ({inner})"
            if static
            else f"input depth must be evenly divisible by filter depth: {channels} vs {inner}"
        )
    count = channels // inner
    if count and outputs is not None and outputs % count:
        raise _invalid(
            f"Depth of output ({outputs}) is not a multiple of the number of groups ({count})"
        )
    return max(count, 1)


def check_depth(channels: int, inner: int) -> None:
    """That input and filter have as many channels.

    Raises:
        InvalidArgumentError: they do not.
    """
    if channels != inner:
        raise _invalid(f"input and filter must have the same depth: {channels} vs {inner}")


def check_shape(name: str, got: Sequence[int], expected: Sequence[int]) -> None:
    """That a gradient, or a result that comes back, has the shape that its op gives it.

    Raises:
        InvalidArgumentError: it has another.
    """
    if tuple(got) != tuple(expected):
        raise _invalid(
            f"{name} has shape {list(got)}, expected {list(expected)} from the input, the "
            "window, strides and padding"
        )
