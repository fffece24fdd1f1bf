"""What the neural-network op families share: building nodes of other families, zero tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opdock import dtypes
from opdock.graph.nodes.constant_value import constant_value
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.registry import get

HALF_TYPES = (dtypes.float16, dtypes.bfloat16)
"""Types whose losses are computed in float32."""


def emit(op_type: str, *inputs: Any, name: str | None = None, **attrs: Any) -> Any:
    """Adds a node of any registered op type; families call each other by TF's op names."""
    return get(op_type)(*inputs, name=name, **attrs)


def as_type(tensor: Any, dtype: dtypes.DType) -> Any:
    """The tensor itself if it has the type, else a cast of it."""
    # The type of a reference to a variable is the variable's.
    wanted = dtype.base_dtype
    return tensor if tensor.dtype.base_dtype is wanted else emit("Cast", tensor, DstT=wanted)


def is_zero(grad: Any) -> bool:
    """Whether an incoming gradient is known to be zero, so its terms need not be built."""
    if grad is None:
        return True
    if grad.op.type in ("ZerosLike", "Zeros"):
        return True
    # Large zeros are filled in when they run; what with is a constant.
    # Where operations run as they are made, a tensor is known and need not know where it is from.
    filled = grad.op.type == "Fill" and grad.op.inputs
    value = constant_value(grad.op.inputs[1] if filled else grad)
    return value is not None and not np.any(value)


def zeros_like(tensor: Tensor) -> Tensor:
    """A tensor of zeros shaped like `tensor`."""
    return emit("ZerosLike", tensor)  # type: ignore[no-any-return]


def sequence(value: Any, n: int, channel_index: int, name: str) -> list[int]:
    """A per-dimension list from an int, one number, `n` spatial numbers or a full list.

    Args:
        value: the user's `strides`, `ksize` or `dilations`.
        n: the number of spatial dimensions.
        channel_index: where the channel dimension is: 1, or anything else for last.
        name: the argument's name, for the message.

    Raises:
        ValueError: the length is none of 1, `n` and `n + 2`.
    """
    if value is None:
        value = [1]
    elif not isinstance(value, (Sequence, np.ndarray)):
        value = [value]
    count = len(value)
    if count == n + 2:
        return list(value)
    if count == 1:
        spatial = [value[0]] * n
    elif count == n:
        spatial = list(value)
    else:
        raise ValueError(f"{name} should be of length 1, {n} or {n + 2} but was {count}")
    return [1, 1, *spatial] if channel_index == 1 else [1, *spatial, 1]


def renamed(new_name: str, new: Any, old_name: str, old: Any) -> Any:
    """The value of an argument that has a second, deprecated name.

    Raises:
        ValueError: both are given.
    """
    if old is not None:
        if new is not None:
            raise ValueError(f"Cannot specify both '{old_name}' and '{new_name}'")
        return old
    return new
