"""Generalized divisive normalization (Ballé et al. 2016, arXiv:1511.06281)."""

from __future__ import annotations

from typing import Any

from opdock.autodiff.custom import custom_gradient
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.layers.base import Layer, applied
from opdock.layers.spec import InputSpec
from opdock.layers.utils import to_data_format
from opdock.ops.arithmetic import maximum
from opdock.ops.array import reshape
from opdock.ops.bias import bias_add
from opdock.ops.cast import cast
from opdock.ops.compare import greater_equal, less, logical_or
from opdock.ops.composed.dilated import convolution
from opdock.ops.composed.eye import eye
from opdock.ops.elementary import sqrt, square
from opdock.ops.fill import ones, zeros_like
from opdock.shapes import TensorShape

__all__ = ["GDN", "gdn"]


@custom_gradient
def _lower_bound(inputs: Tensor, bound: Tensor) -> Any:
    """The larger of both, whose gradient also leads back over the bound from below it."""

    def grad(upper: Tensor) -> Any:
        passes = logical_or(greater_equal(inputs, bound), less(upper, zeros_like(upper)))
        return cast(passes, upper.dtype) * upper, None

    return maximum(inputs, bound), grad


class GDN(Layer):
    """Each channel over (or times) the root of a sum of the squares of all channels at its place.

    Its variables `reparam_beta` and `reparam_gamma` are the roots of what the sum has added and of
    its weights, so that these stay positive.

    Args:
        inverse: whether channels are multiplied by the root.
        beta_min: what is added to the sum at least.
        gamma_init: the weight of a channel's own square in the beginning.
        reparam_offset: how far the variables stay from 0, where they could not leave again.
        data_format: "channels_last" or "channels_first".
        activity_regularizer, trainable, name, **kwargs: as of any layer.

    Raises:
        ValueError: the format is another one.
    """

    def __init__(
        self, inverse: bool = False, beta_min: float = 1e-6, gamma_init: float = 0.1,
        reparam_offset: float = 2**-18, data_format: str = "channels_last",
        activity_regularizer: Any = None, trainable: bool = True, name: str | None = None,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(
            trainable=trainable, name=name, activity_regularizer=activity_regularizer, **kwargs
        )
        self.inverse = inverse
        self.data_format = to_data_format(data_format)
        self._beta_min, self._gamma_init = beta_min, gamma_init
        self._reparam_offset = reparam_offset
        self.input_spec: Any = InputSpec(min_ndim=3, max_ndim=5)

    @property
    def _axis(self) -> int:
        return 1 if self.data_format == "channels_first" else -1

    def build(self, input_shape: Any) -> None:
        """Makes `reparam_beta` and `reparam_gamma`."""
        shape = TensorShape(input_shape)
        count = self._channels(shape)
        self.input_spec = InputSpec(ndim=shape.ndims, axes={self._axis: count})
        pedestal = self._reparam_offset**2

        def beta_initializer(shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
            return sqrt(ones(shape, dtype) + pedestal)

        def gamma_initializer(shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
            return sqrt(self._gamma_init * eye(shape[0], dtype=dtype) + pedestal)

        beta = self.add_weight(
            "reparam_beta", [count], dtype=self.dtype, initializer=beta_initializer, trainable=True
        )
        gamma = self.add_weight(
            "reparam_gamma", [count, count], dtype=self.dtype, initializer=gamma_initializer,
            trainable=True,
        )  # fmt: skip
        self.beta = square(self._bounded(beta, (self._beta_min + pedestal) ** 0.5)) - pedestal
        self.gamma = square(self._bounded(gamma, self._reparam_offset)) - pedestal
        super().build(input_shape)

    def _bounded(self, variable: Any, bound: float) -> Any:
        return _lower_bound(
            convert_to_tensor(variable), convert_to_tensor(bound, variable.dtype.base_dtype)
        )

    def _channels(self, shape: TensorShape) -> int:
        count: int | None = shape.as_list()[self._axis]
        if count is None:
            raise ValueError("The channel dimension of the inputs to `GDN` must be defined.")
        return count

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Tensor:
        """The normalized inputs."""
        inputs = convert_to_tensor(inputs, self.dtype)
        rank = inputs.shape.ndims
        first = self.data_format == "channels_first"
        formats = {"NWC": "NCW", "NHWC": "NCHW", "NDHWC": "NCDHW"}
        last = ("NWC", "NHWC", "NDHWC")[rank - 3]
        kernel = reshape(self.gamma, [1] * (rank - 2) + self.gamma.shape.as_list())
        pool = convolution(
            square(inputs), kernel, "VALID", data_format=formats[last] if first else last
        )
        beta = self.beta
        if first:
            pool += reshape(beta, [-1] + [1] * (rank - 2))
        else:
            pool = bias_add(pool, beta)
        root = sqrt(pool)
        outputs = inputs * root if self.inverse else inputs / root
        outputs.set_shape(inputs.shape)
        return outputs  # type: ignore[no-any-return]

    def compute_output_shape(self, input_shape: Any) -> TensorShape:
        """The shape of the inputs."""
        shape = TensorShape(input_shape)
        if shape.ndims is None or not 3 <= shape.ndims <= 5:
            raise ValueError("`input_shape` must be of rank 3 to 5, inclusive.")
        self._channels(shape)
        return shape


def gdn(
    inputs: Any, inverse: bool = False, beta_min: float = 1e-6, gamma_init: float = 0.1,
    reparam_offset: float = 2**-18, data_format: str = "channels_last",
    activity_regularizer: Any = None, trainable: bool = True, name: Any = None, reuse: Any = None,
) -> Tensor:  # fmt: skip
    """Generalized divisive normalization, or its inverse, as a function; see `GDN`.

    Args:
        inputs: a floating-point tensor of rank 3 to 5.
        inverse, beta_min, gamma_init, reparam_offset, data_format, activity_regularizer,
            trainable, name: as of `GDN`.
        reuse: whether to share the variables of `name`.
    """
    return applied(GDN, **locals())
