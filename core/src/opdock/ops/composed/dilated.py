"""N-D convolution with dilation, and the space-to-batch scheme that dilates any windowed op."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opdock import shapes
from opdock.graph.nodes.constant_value import constant_value
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.conv import conv1d, conv2d, conv2d_transpose
from opdock.ops.conv3d import conv3d
from opdock.ops.support.nn_util import emit, renamed, sequence
from opdock.windows import channels_first

__all__ = ["atrous_conv2d", "atrous_conv2d_transpose", "convolution", "with_space_to_batch"]

Windowed = Callable[[Tensor, int, str], Tensor]


def shape_of(tensor: Any) -> Any:
    """The shape of a tensor or a variable: a numpy vector when it is static, else a tensor."""
    static = shapes.TensorShape(tensor.shape).raw
    if shapes.is_fully_defined(static):
        return np.array(static, np.int32)
    return emit("Shape", tensor)


# ---------------------------------------------------------------- space to batch
@extensible
def with_space_to_batch(
    input: Any, dilation_rate: Any, padding: str, op: Windowed, filter_shape: Any = None,
    spatial_dims: Sequence[int] | None = None, data_format: str | None = None,
) -> Tensor:  # fmt: skip
    """Applies a windowed op with dilation: each phase of the input becomes its own batch entry.

    Args:
        input: a tensor of rank `len(dilation_rate) + 2` or more.
        dilation_rate: an int32 vector, one entry per spatial dimension.
        padding: "SAME" or "VALID".
        op: `op(input, num_spatial_dims, padding)`, the undilated op.
        filter_shape: the shape of the window, needed for "SAME"; only its leading entries count.
        spatial_dims: the spatial dimensions in ascending order; from `data_format` by default.
        data_format: a format that starts with "NC" when channels are second.

    Returns:
        What the dilated op would give.

    Raises:
        ValueError: a rate below 1, an unknown padding, or no `filter_shape` for "SAME".
    """
    input = convert_to_tensor(input, name="input")
    rate = _known(dilation_rate)
    count = _vector_length(rate)
    first = 2 if channels_first(data_format) else 1
    dims = list(range(first, count + first)) if spatial_dims is None else list(spatial_dims)
    if dims != sorted(set(dims)) or any(d < 1 for d in dims):
        raise ValueError(
            "spatial_dims must be a monotonically increasing sequence of positive integers"
        )
    if isinstance(rate, np.ndarray):
        if np.any(rate < 1):
            raise ValueError("dilation_rate must be positive")
        if np.all(rate == 1):
            return op(input, count, padding)
    base = _base_paddings(padding, filter_shape, count, rate)
    sizes = _spatial_shape(input, dims)
    paddings, crops = _block_paddings(sizes, base, rate)
    filler = dims[-1] - dims[0] + 1 != len(dims) or dims[0] != 1
    block = _spread(rate, 1, dims) if filler else rate
    spread_paddings = _spread(paddings, 0, dims) if filler else paddings
    spread_crops = _spread(crops, 0, dims) if filler else crops
    phases = emit("SpaceToBatchND", input, block, spread_paddings)
    return emit("BatchToSpaceND", op(phases, count, "VALID"), block, spread_crops)  # type: ignore[no-any-return]


def _known(value: Any) -> Any:
    """`value` as a numpy int32 array where it is known, else as a tensor."""
    if isinstance(value, Tensor):
        constant = constant_value(value)
        return value if constant is None else np.asarray(constant)
    return np.asarray(value, np.int32)


def _vector_length(vector: Any) -> int:
    static = vector.shape if isinstance(vector, np.ndarray) else vector.raw_shape
    (length,) = shapes.with_rank(tuple(static) if static is not None else None, 1)
    if length is None:
        raise ValueError("rate must have known shape")
    return length


def _base_paddings(padding: str, filter_shape: Any, count: int, rate: Any) -> Any:
    """The [count, 2] paddings that make the dilated "VALID" op give what "SAME" would."""
    if padding == "VALID":
        return np.zeros((count, 2), np.int32)
    if padding != "SAME":
        raise ValueError(f"Invalid padding method {padding!r}")
    if filter_shape is None:
        raise ValueError("filter_shape must be specified for SAME padding")
    window = _known(filter_shape)
    if isinstance(window, np.ndarray) and isinstance(rate, np.ndarray):
        extra = (window[:count] - 1) * rate
        return np.stack([extra // 2, extra - extra // 2], axis=1).astype(np.int32)
    window = emit("Slice", convert_to_tensor(window, name="filter_shape"), [0], [count])
    total = emit("Mul", emit("Sub", window, 1), rate)
    before = emit("FloorDiv", total, 2)
    return emit("Pack", [before, emit("Sub", total, before)], axis=1)


def _spatial_shape(input: Tensor, dims: list[int]) -> Any:
    static = input.raw_shape
    if static is not None:
        sizes = [static[d] for d in dims]
        if None not in sizes:
            return np.array(sizes, np.int32)
    return emit("GatherV2", emit("Shape", input), np.array(dims, np.int32), 0)


def _block_paddings(sizes: Any, base: Any, rate: Any) -> tuple[Any, Any]:
    """Paddings that round every size up to a multiple of the rate, and the crops that undo it."""
    if all(isinstance(v, np.ndarray) for v in (sizes, base, rate)):
        full = sizes + base.sum(axis=1)
        extra = (-full) % rate
        paddings = np.stack([base[:, 0], base[:, 1] + extra], axis=1).astype(np.int32)
        return paddings, np.stack([np.zeros_like(extra), extra], axis=1).astype(np.int32)
    base = convert_to_tensor(base, name="base_paddings")
    before, after = emit("Unpack", base, num=2, axis=1)
    full = emit("AddV2", emit("AddV2", sizes, before), after)
    rest = emit("FloorMod", full, rate)
    extra = emit("FloorMod", emit("Sub", rate, rest), rate)
    zeros = emit("ZerosLike", extra)
    paddings = emit("Pack", [before, emit("AddV2", after, extra)], axis=1)
    return paddings, emit("Pack", [zeros, extra], axis=1)


def _spread(values: Any, fill: int, dims: list[int]) -> Any:
    """Per-dimension entries for dimensions 1 to the last one, with `fill` between `dims`."""
    if isinstance(values, np.ndarray):
        out = np.full((dims[-1], *values.shape[1:]), fill, np.int32)
        for value, dim in zip(values, dims, strict=True):
            out[dim - 1] = value
        return out
    rows = emit("Unpack", values, num=len(dims), axis=0)
    filler = emit("ZerosLike" if fill == 0 else "OnesLike", rows[0])
    placed = dict(zip(dims, rows, strict=True))
    return emit("Pack", [placed.get(d, filler) for d in range(1, dims[-1] + 1)], axis=0)


# ---------------------------------------------------------------- convolution of any rank
_PLAIN: dict[int, Callable[..., Tensor]] = {1: conv1d, 2: conv2d, 3: conv3d}


def convolve(
    input: Any, filter: Any, strides: Sequence[int], padding: str, rate: Any,
    data_format: str | None, name: str | None,
) -> Tensor:  # fmt: skip
    """A convolution without a scope of its own: the node is called `name`.

    Args:
        input: a tensor of rank N + 2.
        filter: a tensor of rank N + 2, or a variable, which is read in the node's own scope.
        strides: N ints.
        padding: "SAME" or "VALID".
        rate: N ints, the dilation.
        data_format: a format that starts with "NC" when channels are second.
        name: the node's name.
    """
    count = len(strides)

    def plain(converted: Tensor, _: int, padding: str) -> Tensor:
        kwargs: dict[str, Any] = {"padding": padding, "name": name}
        if count == 1:
            return conv1d(
                converted, filter, stride=list(strides), data_format=data_format, **kwargs
            )
        first = channels_first(data_format)
        full = sequence(list(strides), count, 1 if first else count + 1, "strides")
        default = "NHWC" if count == 2 else "NDHWC"
        return _PLAIN[count](
            converted, filter, strides=full, data_format=data_format or default, **kwargs
        )

    out = with_space_to_batch(
        input, rate, padding, plain, filter_shape=shape_of(filter), data_format=data_format
    )
    window = shapes.TensorShape(filter.shape).raw
    if window is not None and out.raw_shape is not None:
        # Where the blocks are of unknown size, inference loses the channels that are between them.
        known: list[int | None] = [None] * len(out.raw_shape)
        known[1 if channels_first(data_format) else -1] = window[-1]
        out.set_shape(known)
    return out


@extensible
def convolution(
    input: Any, filter: Any = None, padding: Any = None, strides: Any = None,
    dilation_rate: Any = None, name: str | None = None, data_format: str | None = None,
    filters: Any = None, dilations: Any = None,
) -> Tensor:  # fmt: skip
    """Convolution over 1, 2 or 3 spatial dimensions, with strides or dilation.

    Args:
        input: a tensor of rank N + 2.
        filter: a tensor of rank N + 2: the window, in_channels, out_channels.
        padding: "SAME" or "VALID".
        strides: N ints (default 1); all 1 when the dilation is not.
        dilation_rate: N ints (default 1).
        name: a name for the operation.
        data_format: None or "N...C" for channels last, "NC..." for channels second.
        filters: an alias of `filter`.
        dilations: an alias of `dilation_rate`.

    Returns:
        A tensor of the type of `input`.

    Raises:
        ValueError: ranks do not fit, or strides and dilation are both above 1.
    """
    filter = renamed("filters", filters, "filter", filter)
    rate = renamed("dilations", dilations, "dilation_rate", dilation_rate)
    with name_scope(name, "convolution", [input, filter]) as scope:
        input = convert_to_tensor(input, name="input")
        # An array takes the type of the input, as the op's own conversion would have it.
        filter = convert_to_tensor(filter, name="filter", preferred_dtype=input.dtype)
        count = _spatial_rank(input, filter)
        steps, rates = strides_and_rates(count, strides, rate)
        return convolve(input, filter, steps, padding, rates, data_format, scope)


class Convolution:
    """A convolution of known static shapes, which is called with its input and its filter.

    Args:
        input_shape: the input's static shape.
        filter_shape: the filter's static shape.
        padding: see `convolution`.
        strides: see `convolution`.
        dilation_rate: see `convolution`.
        name: see `convolution`.
        data_format: see `convolution`.

    Raises:
        ValueError: ranks or channels do not fit, or strides and dilation are both above 1.
    """

    def __init__(
        self, input_shape: Any, filter_shape: Any, padding: Any, strides: Any = None,
        dilation_rate: Any = None, name: str | None = None, data_format: str | None = None,
    ) -> None:  # fmt: skip
        self.input_shape = shapes.TensorShape(input_shape)
        self.filter_shape = shapes.TensorShape(filter_shape)
        given, window = self.input_shape.raw, self.filter_shape.raw
        known = window if window is not None else given
        if known is None:
            raise ValueError("rank of input or filter must be known")
        count = len(known) - 2
        for shape, what in ((given, "input"), (window, "filter")):
            if shape is not None and len(shape) != count + 2:
                raise ValueError(f"{what} tensor must have rank {count + 2}")
        if given is not None and window is not None:
            channels = given[1 if channels_first(data_format) else -1], window[count]
            if None not in channels and channels[0] != channels[1]:
                raise ValueError(
                    "number of input channels does not match corresponding dimension of filter, "
                    f"{channels[0]} != {channels[1]}"
                )
        self.strides, self.dilation_rate = strides_and_rates(count, strides, dilation_rate)
        self.padding, self.name, self.data_format = padding, name, data_format

    def __call__(self, inp: Any, filter: Any) -> Tensor:
        """The convolution of `inp` with `filter`."""
        return convolve(
            convert_to_tensor(inp), convert_to_tensor(filter), self.strides, self.padding,
            self.dilation_rate, self.data_format, self.name,
        )  # fmt: skip


def _spatial_rank(input: Tensor, filter: Tensor) -> int:
    if filter.raw_shape is not None:
        count = len(filter.raw_shape) - 2
    elif input.raw_shape is not None:
        count = len(input.raw_shape) - 2
    else:
        raise ValueError("rank of input or filter must be known")
    if not 1 <= count <= 3:
        raise ValueError(
            f"num_spatial_dims (input.shape.ndims - 2) must be one of [1, 2, 3] but saw {count}"
        )
    shapes.with_rank(input.raw_shape, count + 2)
    return count


def strides_and_rates(count: int, strides: Any, rates: Any) -> tuple[list[int], list[int]]:
    """The `count` strides and dilations, 1 by default.

    Raises:
        ValueError: a wrong number of entries, an entry below 1, or both above 1.
    """
    found = []
    for values, what in ((rates, "dilation_rate"), (strides, "strides")):
        if values is None:
            found.append([1] * count)
            continue
        entries = [int(v) for v in np.asarray(values).reshape(-1)]
        if len(entries) != count:
            raise ValueError(f"len({what})={len(entries)} but should be {count}")
        if any(v < 1 for v in entries):
            raise ValueError(f"all values of {what} must be positive")
        found.append(entries)
    if any(v > 1 for v in found[0]) and any(v > 1 for v in found[1]):
        raise ValueError("strides > 1 not supported in conjunction with dilation_rate > 1")
    return found[1], found[0]


@extensible
def atrous_conv2d(
    value: Any, filters: Any, rate: int, padding: str, name: str | None = None
) -> Tensor:
    """2-D convolution with holes: the window skips `rate - 1` pixels between its own.

    Args:
        value: a 4-D floating-point tensor [batch, height, width, channels].
        filters: a 4-D tensor [height, width, in_channels, out_channels].
        rate: a positive int, or two.
        padding: "SAME" or "VALID".
        name: a name for the operation.

    Returns:
        A 4-D tensor of the type of `value`.
    """
    rates = [int(r) for r in np.broadcast_to(rate, (2,))]
    return convolution(value, filters, padding, dilation_rate=rates, name=name)


@extensible
def atrous_conv2d_transpose(
    value: Any, filters: Any, output_shape: Any, rate: int, padding: str, name: str | None = None
) -> Tensor:
    """The transpose (gradient) of `atrous_conv2d`.

    Args:
        value: a 4-D floating-point tensor [batch, height, width, in_channels].
        filters: a 4-D tensor [height, width, out_channels, in_channels].
        output_shape: an int32 vector, the shape of the result.
        rate: a positive int.
        padding: "SAME" or "VALID".
        name: a name for the operation.

    Returns:
        A 4-D tensor of the type of `value`.

    Raises:
        ValueError: `rate` is below 1.
    """
    if rate < 1:
        raise ValueError(f"rate {rate} cannot be less than one")
    with name_scope(name, "atrous_conv2d_transpose", [value, filters, output_shape]) as scope:
        return conv2d_transpose(
            value, filters, output_shape, [1, 1, 1, 1], padding, name=scope, dilations=rate
        )
