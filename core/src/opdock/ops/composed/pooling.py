"""The public pooling functions, from `max_pool1d` to `pool`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opdock.docstrings import explained
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.composed.dilated import strides_and_rates, with_space_to_batch
from opdock.ops.pool import avg_pool_op, max_pool_op
from opdock.ops.pool3d import avg_pool3d_op, max_pool3d_op
from opdock.ops.registry import OpSpec
from opdock.ops.support.nn_util import emit, renamed, sequence
from opdock.windows import channels_first

__all__ = [
    "avg_pool", "avg_pool1d", "avg_pool2d", "avg_pool3d", "avg_pool_v2", "max_pool", "max_pool1d",
    "max_pool2d", "max_pool3d", "max_pool_v2", "pool",
]  # fmt: skip

_SPACE = {1: "W", 2: "HW", 3: "DHW"}


def _words(rank: int, dtypes: str) -> dict[str, str]:
    """What the arguments are, for so many spatial dimensions."""
    space = _SPACE[rank]
    names = ", ".join({"W": "width", "H": "height", "D": "depth"}[d] for d in space)
    sizes = "1 or 3" if rank == 1 else f"1, {rank} or {rank + 2}"
    tensor = f'a {rank + 2}-D {dtypes} tensor, [batch, {names}, channels] for "N{space}C".'
    return {
        "input": tensor,
        "value": tensor,
        "ksize": f"an int, or a list of {sizes} ints: the window.",
        "strides": f"an int, or a list of {sizes} ints: the steps.",
        "padding": '"SAME" or "VALID".',
        "data_format": f'"N{space}C" or "NC{space}".',
        "name": "a name for the operation.",
        "returns": "The pooled tensor, of the type of `input`.",
    }


_ANY_RANK = {
    **_words(2, ""),
    "ksize": "an int or a list: the window.",
    "strides": "an int or a list: the steps.",
    "data_format": 'one of "NWC", "NCW", "NHWC", "NCHW", "NDHWC", "NCDHW".',
    "raises": "ValueError: the rank is none of 3, 4 and 5.",
}


def _check_ksize(ksize: Any) -> None:
    if np.any(np.asarray(ksize) == 0):
        raise ValueError("ksize cannot be zero.")


def _pool(
    op: OpSpec, title: str, rank: int, input: Any, ksize: Any, strides: Any, padding: str,
    data_format: str | None, name: str | None,
) -> Tensor:  # fmt: skip
    data_format = data_format or f"N{_SPACE[rank]}C"
    with name_scope(name, title, [input]) as scope:
        channel = 1 if channels_first(data_format) else rank + 1
        ksize = sequence(ksize, rank, channel, "ksize")
        _check_ksize(ksize)
        return op(  # type: ignore[no-any-return]
            input, ksize=ksize, strides=sequence(strides, rank, channel, "strides"),
            padding=padding, data_format=data_format, name=scope,
        )  # fmt: skip


def _pool1d(
    op: OpSpec, title: str, input: Any, ksize: Any, strides: Any, padding: str,
    data_format: str | None, name: str | None,
) -> Tensor:  # fmt: skip
    with name_scope(name, title, [input]) as scope:
        first = channels_first(data_format)
        channel, extra = (1, 2) if first else (2, 1)
        result = op(
            emit("ExpandDims", input, extra),
            ksize=[1, *sequence(ksize, 1, channel, "ksize")],
            strides=[1, *sequence(strides, 1, channel, "strides")],
            padding=padding,
            data_format="NCHW" if first else "NHWC",
            name=scope,
        )
        return emit("Squeeze", result, squeeze_dims=[extra])  # type: ignore[no-any-return]


# ---------------------------------------------------------------- max
@extensible
@explained(
    _words(2, "real"), input="an alias of `value`.",
    returns="The pooled tensor, of the type of `value`.",
    raises="ValueError: the window does not fit, or is zero.",
)  # fmt: skip
def max_pool(
    value: Any, ksize: Any, strides: Any, padding: str, data_format: str | None = "NHWC",
    name: str | None = None, input: Any = None,
) -> Tensor:  # fmt: skip
    """The maximum of each window."""
    value = renamed("input", input, "value", value)
    return _pool(max_pool_op, "MaxPool", 2, value, ksize, strides, padding, data_format, name)


@extensible
@explained(_words(2, "real"), input="a 4-D real tensor.")
def max_pool2d(
    input: Any, ksize: Any, strides: Any, padding: str, data_format: str | None = "NHWC",
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """`max_pool` under the name it has beside `max_pool1d` and `max_pool3d`."""
    return _pool(max_pool_op, "MaxPool2d", 2, input, ksize, strides, padding, data_format, name)


@extensible
@explained(_words(1, "real"))
def max_pool1d(
    input: Any, ksize: Any, strides: Any, padding: str, data_format: str | None = "NWC",
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """The maximum of each window of a sequence."""
    return _pool1d(max_pool_op, "MaxPool1d", input, ksize, strides, padding, data_format, name)


@extensible
@explained(_words(3, "floating-point"))
def max_pool3d(
    input: Any, ksize: Any, strides: Any, padding: str, data_format: str | None = "NDHWC",
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """The maximum of each window of a volume."""
    return _pool(max_pool3d_op, "MaxPool3D", 3, input, ksize, strides, padding, data_format, name)


# ---------------------------------------------------------------- average
@extensible
@explained(
    _words(2, "floating-point"), input="an alias of `value`.",
    returns="The pooled tensor, of the type of `value`.",
    raises="ValueError: the window does not fit, or is zero.",
)  # fmt: skip
def avg_pool(
    value: Any, ksize: Any, strides: Any, padding: str, data_format: str | None = "NHWC",
    name: str | None = None, input: Any = None,
) -> Tensor:  # fmt: skip
    """The mean of each window, over the elements that are not padding."""
    value = renamed("input", input, "value", value)
    return _pool(avg_pool_op, "AvgPool", 2, value, ksize, strides, padding, data_format, name)


avg_pool2d = avg_pool


@extensible
@explained(_words(1, "floating-point"))
def avg_pool1d(
    input: Any, ksize: Any, strides: Any, padding: str, data_format: str | None = "NWC",
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """The mean of each window of a sequence, over the elements that are not padding."""
    return _pool1d(avg_pool_op, "AvgPool1D", input, ksize, strides, padding, data_format, name)


@extensible
@explained(_words(3, "floating-point"))
def avg_pool3d(
    input: Any, ksize: Any, strides: Any, padding: str, data_format: str | None = "NDHWC",
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """The mean of each window of a volume, over the elements that are not padding."""
    return _pool(avg_pool3d_op, "AvgPool3D", 3, input, ksize, strides, padding, data_format, name)


# ---------------------------------------------------------------- any rank
_MAX: dict[int, Callable[..., Tensor]] = {1: max_pool1d, 2: max_pool2d, 3: max_pool3d}
_AVG: dict[int, Callable[..., Tensor]] = {1: avg_pool1d, 2: avg_pool2d, 3: avg_pool3d}


def _spatial_rank(input: Tensor, data_format: str | None) -> int:
    if data_format is not None:
        return len(data_format) - 2
    if input.raw_shape is None:
        raise ValueError("The rank of the input must be known when data_format is not given.")
    return len(input.raw_shape) - 2


@extensible
@explained(_ANY_RANK, input="a real tensor of rank 3, 4 or 5.")
def max_pool_v2(
    input: Any, ksize: Any, strides: Any, padding: str, data_format: str | None = None,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Max pooling over 1, 2 or 3 spatial dimensions, as the rank of `input` says."""
    return _pool_nd(_MAX, input, ksize, strides, padding, data_format, name)


@extensible
@explained(_ANY_RANK, input="a floating-point tensor of rank 3, 4 or 5.")
def avg_pool_v2(
    input: Any, ksize: Any, strides: Any, padding: str, data_format: str | None = None,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Average pooling over 1, 2 or 3 spatial dimensions, as the rank of `input` says."""
    return _pool_nd(_AVG, input, ksize, strides, padding, data_format, name)


def _pool_nd(
    functions: Any, input: Any, ksize: Any, strides: Any, padding: str, data_format: str | None,
    name: str | None,
) -> Tensor:  # fmt: skip
    input = convert_to_tensor(input, name="input")
    count = _spatial_rank(input, data_format)
    if count not in functions:
        raise ValueError(f"Input tensor must be of rank 3, 4 or 5 but was {count + 2}.")
    return functions[count](  # type: ignore[no-any-return]
        input, ksize, strides, padding, data_format=data_format, name=name
    )


@extensible
def pool(
    input: Any, window_shape: Sequence[int], pooling_type: str, padding: str,
    dilation_rate: Any = None, strides: Any = None, name: str | None = None,
    data_format: str | None = None, dilations: Any = None,
) -> Tensor:  # fmt: skip
    """Pooling over 1, 2 or 3 spatial dimensions, with strides or dilation.

    Args:
        input: a tensor of rank N + 2.
        window_shape: N ints.
        pooling_type: "MAX" or "AVG".
        padding: "SAME" or "VALID".
        dilation_rate: N ints (default 1): the step inside the window.
        strides: N ints (default 1): the step of the window.
        name: a name for the operation.
        data_format: None or "N...C" for channels last, "NC..." for channels second.
        dilations: an alias of `dilation_rate`.

    Returns:
        The pooled tensor.

    Raises:
        ValueError: an unknown pooling type, or a combination that is not defined.
    """
    rate = renamed("dilations", dilations, "dilation_rate", dilation_rate)
    with name_scope(name, f"{pooling_type.lower()}_pool", [input]) as scope:
        input = convert_to_tensor(input, name="input")
        count = len(window_shape)
        if not 1 <= count <= 3:
            raise ValueError("It is required that 1 <= num_spatial_dims <= 3.")
        input.get_shape().with_rank(count + 2)
        steps, rates = strides_and_rates(count, strides, rate)
        if padding == "SAME" and any(r > 1 for r in rates):
            raise ValueError("pooling with SAME padding is not implemented for dilation_rate > 1")
        if any(s > w for s, w in zip(steps, window_shape, strict=True)):
            raise ValueError(
                "strides > window_shape not supported due to inconsistency between CPU and GPU "
                "implementations"
            )
        functions = {"MAX": _MAX, "AVG": _AVG}.get(pooling_type)
        if functions is None:
            raise ValueError(f"{count}-D {pooling_type} pooling is not supported.")
        pooling = functions[count]

        def windowed(converted: Tensor, _: int, padding: str) -> Tensor:
            return pooling(converted, list(window_shape), steps, padding, data_format, scope)

        first = 2 if channels_first(data_format) else 1
        return with_space_to_batch(
            input, rates, padding, windowed, filter_shape=np.array(window_shape, np.int32),
            spatial_dims=range(first, count + first), data_format=data_format,
        )  # fmt: skip
