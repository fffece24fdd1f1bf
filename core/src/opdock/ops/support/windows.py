"""Shape functions over sliding windows, of convolution and pooling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opdock import shapes
from opdock.ops.registry import Shape, ShapeSig
from opdock.windows import Format, Layout, groups


def check_length(values: Sequence[Any], count: int, message: str) -> None:
    """Raises ValueError "`message` attribute to contain `count` values" unless it does."""
    if len(values) != count:
        raise ValueError(f"{message} attribute to contain {count} values, but got: {len(values)}")


def conv_shape(sig: ShapeSig, rank: int, *, grouped: bool, title: str) -> Shape:
    """The output shape of a convolution of `rank` dimensions.

    Args:
        sig: the node.
        rank: 4 for 2-D, 5 for 3-D.
        grouped: whether the input may have a multiple of the filter's channels.
        title: how TF's messages name the op.
    """
    data = shapes.with_rank(sig.shapes[0], rank)
    *window, inner, outputs = shapes.with_rank(sig.shapes[1], rank)
    check_length(sig.attrs["dilations"], rank, f"{title} requires the dilation")
    on_format = f" on data format {sig.attrs['data_format']}" if rank == 4 else ""
    check_length(sig.attrs["strides"], rank, f"{title}{on_format} requires the stride")
    layout = Layout(sig.attrs)
    batch, space, channels = layout.parts(data)
    if not grouped:
        shapes.merge_dim(channels, inner)
    elif channels is not None and inner is not None:
        groups(channels, inner, outputs, static=True)
    return layout.shape(batch, layout.output(space, window), outputs)


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
    where = Format(sig.attrs.get("data_format", "NHWC"), rank)
    batch, space, channels = where.parts(data)
    # The channels are pooled as one more dimension; no node pools them along with others. Where
    # they are not, there may be none.
    pooled = [where.channel] if ksize[where.channel] != 1 or strides[where.channel] != 1 else []
    steps = [1, *where.spatial(strides), *(strides[a] for a in pooled), 1]
    flat = Layout({"strides": steps, "padding": sig.attrs["padding"]})
    window = [*where.spatial(ksize), *(ksize[a] for a in pooled)]
    out = flat.output([*space, *[channels] * len(pooled)], window)
    if pooled:
        out, channels = out[:-1], out[-1]
    return where.shape(batch, out, channels)
