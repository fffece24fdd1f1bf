"""Pooling over one, two or three spatial dimensions."""

from __future__ import annotations

from typing import Any

from opdock.docstrings import explained
from opdock.graph.nodes.operation import Tensor
from opdock.layers.base import Layer, applied, static
from opdock.layers.spec import InputSpec
from opdock.layers.utils import (
    op_format,
    spatial,
    to_data_format,
    to_padding,
    to_tuple,
    window_length,
    with_spatial,
    words,
)
from opdock.ops.array import expand_dims, squeeze
from opdock.ops.composed.pooling import avg_pool, avg_pool3d, max_pool, max_pool3d
from opdock.ops.matrix import transpose
from opdock.shapes import TensorShape


class _Pooling(Layer):
    """Takes the largest or mean value of each window.

    Args:
        pool_size: the size of the window, an int or one per spatial dimension.
        strides: the step of the window, likewise.
        padding: "valid" or "same".
        data_format: "channels_last" or "channels_first".
        name: the layer's name.
        **kwargs: for `Layer`.
    """

    _rank = 2
    _largest = True

    def __init__(
        self, pool_size: Any, strides: Any, padding: str = "valid",
        data_format: str = "channels_last", name: Any = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(name=name, **kwargs)
        if strides is None:
            raise ValueError("Argument `strides` must not be None.")
        self.pool_size = to_tuple(pool_size, self._rank, "pool_size")
        self.strides = to_tuple(strides, self._rank, "strides")
        self.padding = to_padding(padding)
        self.data_format = to_data_format(data_format)
        self.input_spec = InputSpec(ndim=self._rank + 2)

    def call(self, inputs: Any) -> Tensor:
        """Pools."""
        if self._rank == 1:
            axis = 2 if self.data_format == "channels_last" else 3
            wide = expand_dims(inputs, axis)
            pooled = self._pool(wide, (*self.pool_size, 1), (*self.strides, 1), 2)
            return squeeze(pooled, [axis])
        if self._rank == 3 and self.data_format == "channels_first":
            # TF pools volumes with channels last only.
            moved = transpose(inputs, (0, 2, 3, 4, 1))
            pooled = self._pool(moved, self.pool_size, self.strides, 3, "channels_last")
            return transpose(pooled, (0, 4, 1, 2, 3))
        return self._pool(inputs, self.pool_size, self.strides, self._rank)

    def _pool(
        self, inputs: Any, size: tuple[int, ...], strides: tuple[int, ...], rank: int,
        data_format: str | None = None,
    ) -> Tensor:  # fmt: skip
        data_format = data_format or self.data_format
        if rank == 3:
            function: Any = max_pool3d if self._largest else avg_pool3d
        else:
            function = max_pool if self._largest else avg_pool
        return function(  # type: ignore[no-any-return]
            inputs, with_spatial(1, size, 1, data_format),
            strides=with_spatial(1, strides, 1, data_format),
            padding=self.padding.upper(), data_format=op_format(data_format, rank),
        )  # fmt: skip

    def compute_output_shape(self, input_shape: Any) -> TensorShape:
        """The number of windows along each spatial dimension."""
        dims = static(input_shape)
        windows = zip(spatial(dims, self.data_format), self.pool_size, self.strides, strict=True)
        space = [window_length(d, k, self.padding, s) for d, k, s in windows]
        channels = dims[1] if self.data_format == "channels_first" else dims[-1]
        return TensorShape(with_spatial(dims[0], space, channels, self.data_format))


class MaxPooling1D(_Pooling):
    """The largest value of each window of a 3-D tensor; see `max_pooling1d`."""

    _rank = 1


class MaxPooling2D(_Pooling):
    """The largest value of each window of a 4-D tensor; see `max_pooling2d`."""


class MaxPooling3D(_Pooling):
    """The largest value of each window of a 5-D tensor; see `max_pooling3d`."""

    _rank = 3


class AveragePooling1D(_Pooling):
    """The mean of each window of a 3-D tensor; see `average_pooling1d`."""

    _rank = 1
    _largest = False


class AveragePooling2D(_Pooling):
    """The mean of each window of a 4-D tensor; see `average_pooling2d`."""

    _largest = False


class AveragePooling3D(_Pooling):
    """The mean of each window of a 5-D tensor; see `average_pooling3d`."""

    _rank = 3
    _largest = False


def _words(rank: int) -> dict[str, str]:
    return words(rank) | {
        "inputs": f"a tensor of rank {rank + 2}.",
        "raises": "ValueError: an argument or the rank of the inputs does not fit.",
    }


@explained(_words(1))
def max_pooling1d(
    inputs: Any, pool_size: Any, strides: Any, padding: str = "valid",
    data_format: str = "channels_last", name: Any = None,
) -> Tensor:  # fmt: skip
    """The largest value of each window of a tensor with 1 spatial dimension."""
    return applied(MaxPooling1D, **locals())


@explained(_words(2))
def max_pooling2d(
    inputs: Any, pool_size: Any, strides: Any, padding: str = "valid",
    data_format: str = "channels_last", name: Any = None,
) -> Tensor:  # fmt: skip
    """The largest value of each window of a tensor with 2 spatial dimensions."""
    return applied(MaxPooling2D, **locals())


@explained(_words(3))
def max_pooling3d(
    inputs: Any, pool_size: Any, strides: Any, padding: str = "valid",
    data_format: str = "channels_last", name: Any = None,
) -> Tensor:  # fmt: skip
    """The largest value of each window of a tensor with 3 spatial dimensions."""
    return applied(MaxPooling3D, **locals())


@explained(_words(1))
def average_pooling1d(
    inputs: Any, pool_size: Any, strides: Any, padding: str = "valid",
    data_format: str = "channels_last", name: Any = None,
) -> Tensor:  # fmt: skip
    """The mean of each window of a tensor with 1 spatial dimension."""
    return applied(AveragePooling1D, **locals())


@explained(_words(2))
def average_pooling2d(
    inputs: Any, pool_size: Any, strides: Any, padding: str = "valid",
    data_format: str = "channels_last", name: Any = None,
) -> Tensor:  # fmt: skip
    """The mean of each window of a tensor with 2 spatial dimensions."""
    return applied(AveragePooling2D, **locals())


@explained(_words(3))
def average_pooling3d(
    inputs: Any, pool_size: Any, strides: Any, padding: str = "valid",
    data_format: str = "channels_last", name: Any = None,
) -> Tensor:  # fmt: skip
    """The mean of each window of a tensor with 3 spatial dimensions."""
    return applied(AveragePooling3D, **locals())
