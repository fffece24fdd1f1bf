"""Geometry of sliding windows, for convolution and pooling: padding, output sizes, layouts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from opdock import shapes
from opdock.ops.registry import Shape, ShapeSig

Dim = int | None


@dataclass(frozen=True, slots=True)
class Layout:
    """Where batch, space and channels are in a data format of some rank.

    Attributes:
        rank: the number of dimensions.
        channel: the channel dimension.
        space: the spatial dimensions, outermost first.
    """

    rank: int
    channel: int
    space: tuple[int, ...]

    def pick(self, values: Sequence[Any]) -> list[Any]:
        """The spatial entries of a per-dimension list."""
        return [values[i] for i in self.space]

    def make(self, batch: Any, space: Sequence[Any], channels: Any) -> tuple[Any, ...]:
        """A per-dimension tuple from its parts."""
        out = [batch] * self.rank
        for axis, value in zip(self.space, space, strict=True):
            out[axis] = value
        out[self.channel] = channels
        return tuple(out)


def layout(data_format: str, rank: int = 4) -> Layout:
    """The layout of a TF data format ("NHWC", "NCHW", "NDHWC", "NCDHW", ...)."""
    if data_format.startswith("NC"):
        return Layout(rank, 1, tuple(range(2, rank)))
    return Layout(rank, rank - 1, tuple(range(1, rank - 1)))


def pads(size: int, window: int, stride: int, dilation: int, padding: str) -> tuple[int, int]:
    """Padding before and after one dimension for "SAME" and "VALID"."""
    if padding != "SAME":
        return 0, 0
    effective = (window - 1) * dilation + 1
    out = -(-size // stride)
    needed = max(0, (out - 1) * stride + effective - size)
    return needed // 2, needed - needed // 2


def output_dim(
    size: Dim, window: Dim, stride: int, padding: str, dilation: int = 1, explicit: int = 0
) -> Dim:
    """The number of window positions along one dimension.

    Args:
        size: the input size.
        window: the window size, undilated.
        stride: the step.
        padding: "SAME", "VALID" or "EXPLICIT".
        dilation: the step inside the window.
        explicit: total padding for "EXPLICIT".

    Raises:
        ValueError: in TF's words, when nothing fits.
    """
    if stride <= 0:
        raise ValueError(f"Stride must be > 0, but got {stride}")
    if dilation < 1:
        raise ValueError(f"Dilation rate must be >= 1, but got {dilation}")
    if size is None:
        return None
    if padding == "SAME":
        return -(-size // stride)
    if window is None:
        return None
    size += explicit
    effective = (window - 1) * dilation + 1
    if size < effective:
        raise ValueError(
            f"Negative dimension size caused by subtracting {effective} from {size}"
        )
    return (size - effective) // stride + 1


def explicit_pads(attrs: dict[str, Any], where: Layout) -> list[tuple[int, int]] | None:
    """The checked per-space paddings of an op with `explicit_paddings`, None unless EXPLICIT.

    Raises:
        ValueError: in TF's words, for paddings that the op does not take.
    """
    values = attrs.get("explicit_paddings") or []
    if attrs["padding"] != "EXPLICIT":
        if values:
            raise ValueError(
                "explicit_paddings attribute must be empty if the padding attribute is not EXPLICIT"
            )
        return None
    if len(values) != 2 * where.rank:
        raise ValueError(
            f"explicit_paddings attribute must contain {2 * where.rank} values, "
            f"but got: {len(values)}"
        )
    if any(v < 0 for v in values):
        raise ValueError("All elements of explicit_paddings must be nonnegative")
    pairs = [(values[2 * i], values[2 * i + 1]) for i in range(where.rank)]
    if any(pairs[i] != (0, 0) for i in range(where.rank) if i not in where.space):
        raise ValueError(
            "Nonzero explicit padding in the batch or depth dimensions is not supported"
        )
    return where.pick(pairs)


def check_length(values: Sequence[Any], count: int, message: str) -> None:
    """Raises ValueError "`message` attribute to contain `count` values" unless it does."""
    if len(values) != count:
        raise ValueError(
            f"{message} attribute to contain {count} values, but got: {len(values)}"
        )


def conv_shape(sig: ShapeSig, rank: int, *, grouped: bool, title: str) -> Shape:
    """The output shape of a convolution of `rank` dimensions.

    Args:
        sig: the node.
        rank: 4 for 2-D, 5 for 3-D.
        grouped: whether the input may have a multiple of the filter's channels.
        title: how TF's messages name the op.
    """
    data_format = sig.attrs["data_format"]
    where = layout(data_format, rank)
    data = shapes.with_rank(sig.shapes[0], rank)
    kernel = shapes.with_rank(sig.shapes[1], rank)
    strides, dilations = sig.attrs["strides"], sig.attrs["dilations"]
    check_length(dilations, rank, f"{title} requires the dilation")
    on_format = f" on data format {data_format}" if rank == 4 else ""
    check_length(strides, rank, f"{title}{on_format} requires the stride")
    channels, kernel_channels, out_channels = data[where.channel], kernel[-2], kernel[-1]
    if grouped:
        _check_groups(channels, kernel_channels, out_channels)
    else:
        shapes.merge_dim(channels, kernel_channels)
    paddings = explicit_pads(sig.attrs, where)
    space = [
        output_dim(
            data[axis], kernel[i], strides[axis], sig.attrs["padding"], dilations[axis],
            0 if paddings is None else sum(paddings[i]),
        )
        for i, axis in enumerate(where.space)
    ]  # fmt: skip
    return where.make(data[0], space, out_channels)


def _check_groups(channels: Dim, kernel_channels: Dim, out_channels: Dim) -> None:
    if channels is None or kernel_channels is None or channels == kernel_channels:
        return
    if kernel_channels == 0 or channels % kernel_channels:
        raise ValueError(
            f"Depth of input ({channels}) is not a multiple of input depth of filter "
            f"({kernel_channels})"
        )
    groups = channels // kernel_channels
    if out_channels is not None and groups and out_channels % groups:
        raise ValueError(
            f"Depth of output ({out_channels}) is not a multiple of the number of groups ({groups})"
        )


def pool_shape(
    sig: ShapeSig, rank: int, title: str, ksize: Any = None, strides: Any = None
) -> Shape:
    """The output shape of pooling over `rank` dimensions.

    Args:
        sig: the node.
        rank: 4 for 2-D, 5 for 3-D.
        title: how TF's messages name the op.
        ksize: the window, when it is not an attribute.
        strides: the steps, when they are not an attribute.
    """
    data = shapes.with_rank(sig.shapes[0], rank)
    strides = sig.attrs["strides"] if strides is None else strides
    ksize = sig.attrs["ksize"] if ksize is None else ksize
    check_length(strides, rank, f"{title} the stride")
    check_length(ksize, rank, f"{title} the ksize")
    where = layout(sig.attrs.get("data_format", "NHWC"), rank)
    padding = sig.attrs["padding"]
    sizes = [
        output_dim(data[axis], ksize[axis], strides[axis], padding)
        for axis in (*where.space, where.channel)
    ]
    return where.make(data[0], sizes[:-1], sizes[-1])
