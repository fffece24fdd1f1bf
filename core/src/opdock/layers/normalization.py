"""Batch normalization (Ioffe & Szegedy 2015, arXiv:1502.03167)."""

from __future__ import annotations

from typing import Any

from opdock import dtypes, errors
from opdock.graph.nodes.constant import constant
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import colocate_with, name_scope
from opdock.graph.variables.initializers import ones_initializer, zeros_initializer
from opdock.layers.base import Layer, static
from opdock.layers.spec import InputSpec
from opdock.layers.utils import smart_cond, static_bool
from opdock.ops.array import reshape
from opdock.ops.cast import cast
from opdock.ops.composed.moments import moments
from opdock.ops.norm import batch_normalization as nn_batch_normalization
from opdock.ops.norm import fused_batch_norm
from opdock.ops.state import assign_sub
from opdock.shapes import TensorShape


def _axis_of(axis: Any, data_format: str | None) -> Any:
    """The axis that an NCHW or NHWC `data_format` means.

    TF 1.15 has no such argument here. Slides and posts of its time pass it, as
    `tf.contrib.layers.batch_norm` takes it, so it is understood as another way to write `axis`.
    """
    if data_format is None:
        return axis
    formats = {"NCHW": 1, "channels_first": 1, "NHWC": -1, "channels_last": -1}
    if data_format not in formats:
        raise ValueError(
            "batch_normalization: `data_format` must be 'NCHW' (the same as axis=1) or 'NHWC' "
            f"(axis=-1), but was {data_format!r}. TF 1.15 has `axis` only."
        )
    meant = formats[data_format]
    if axis not in (-1, meant):
        raise ValueError(
            f"batch_normalization: data_format={data_format!r} means axis={meant}, but axis={axis} "
            "is given too; give `axis` only."
        )
    return meant


def _refuse(argument: str, reason: str) -> None:
    raise errors.UnimplementedError(
        None, None, f"batch normalization: `{argument}` is not supported: {reason}"
    )


class BatchNormalization(Layer):
    """Gives each channel a learned mean and variance; see `batch_normalization`.

    Variables: `gamma`, `beta`, `moving_mean` and `moving_variance`, one entry per channel. The
    last two are not trained: while training, the operations in `tf.GraphKeys.UPDATE_OPS` move
    them towards the statistics of the batch, and the program has to run these:

        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
            train = optimizer.minimize(loss)
    """

    def __init__(
        self, axis: Any = -1, momentum: float = 0.99, epsilon: float = 1e-3, center: bool = True,
        scale: bool = True, beta_initializer: Any = zeros_initializer(),  # noqa: B008
        gamma_initializer: Any = ones_initializer(),  # noqa: B008
        moving_mean_initializer: Any = zeros_initializer(),  # noqa: B008
        moving_variance_initializer: Any = ones_initializer(),  # noqa: B008
        beta_regularizer: Any = None, gamma_regularizer: Any = None, beta_constraint: Any = None,
        gamma_constraint: Any = None, renorm: bool = False, renorm_clipping: Any = None,
        renorm_momentum: float = 0.99, fused: bool | None = None, trainable: bool = True,
        virtual_batch_size: int | None = None, adjustment: Any = None, name: Any = None,
        data_format: str | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(trainable, name, **kwargs)
        if renorm or renorm_clipping is not None:
            _refuse("renorm", "batch renormalization needs statistics that no kernel here keeps.")
        if virtual_batch_size is not None:
            _refuse("virtual_batch_size", "batches are normalized as a whole.")
        if adjustment is not None:
            _refuse("adjustment", "there are no per-example adjustments.")
        axis = _axis_of(axis, data_format)
        if not isinstance(axis, (int, list, tuple)):
            raise TypeError(f"axis must be int or list, type given: {type(axis)}")
        self.axis: list[int] = [axis] if isinstance(axis, int) else list(axis)
        self.momentum, self.epsilon = momentum, epsilon
        self.center, self.scale = center, scale
        self.beta_initializer, self.gamma_initializer = beta_initializer, gamma_initializer
        self.moving_mean_initializer = moving_mean_initializer
        self.moving_variance_initializer = moving_variance_initializer
        self.beta_regularizer, self.gamma_regularizer = beta_regularizer, gamma_regularizer
        self.beta_constraint, self.gamma_constraint = beta_constraint, gamma_constraint
        self.fused: bool = True if fused is None else fused
        self.gamma: Any = None
        self.beta: Any = None
        self.moving_mean: Any = None
        self.moving_variance: Any = None
        self._data_format = "NHWC"

    # ------------------------------------------------------------ variables
    def build(self, input_shape: Any) -> None:
        """Makes the variables.

        Raises:
            ValueError: the rank or the number of channels is unknown, or an axis does not fit.
        """
        if TensorShape(input_shape).ndims is None:
            raise ValueError("Input has undefined rank:", input_shape)
        dims = static(input_shape)
        self.axis = self._checked_axes(len(dims))
        self._choose_fused(len(dims))
        sizes = {i: dims[i] for i in self.axis}
        if None in sizes.values():
            raise ValueError("Input has undefined `axis` dimension. Input shape: ", dims)
        self.input_spec = InputSpec(ndim=len(dims), axes=sizes)
        if len(sizes) == 1:
            shape: list[Any] = list(sizes.values())
        else:
            shape = [sizes.get(i, 1) for i in range(len(dims))]
        dtype = self._param_dtype
        if self.scale:
            self.gamma = self.add_weight(
                "gamma", shape, dtype, self.gamma_initializer, self.gamma_regularizer,
                constraint=self.gamma_constraint,
            )  # fmt: skip
        elif self.fused:
            self._gamma_const = constant(1.0, dtype=dtype, shape=shape)
        if self.center:
            self.beta = self.add_weight(
                "beta", shape, dtype, self.beta_initializer, self.beta_regularizer,
                constraint=self.beta_constraint,
            )  # fmt: skip
        elif self.fused:
            self._beta_const = constant(0.0, dtype=dtype, shape=shape)
        self.moving_mean = self.add_weight(
            "moving_mean", shape, dtype, self.moving_mean_initializer, trainable=False
        )
        self.moving_variance = self.add_weight(
            "moving_variance", shape, dtype, self.moving_variance_initializer, trainable=False
        )
        self.built = True

    @property
    def _param_dtype(self) -> dtypes.DType:
        half = self.dtype in (dtypes.float16, dtypes.bfloat16)
        return dtypes.float32 if half or self.dtype is None else self.dtype

    def _checked_axes(self, rank: int) -> list[int]:
        axes = [a + rank if a < 0 else a for a in self.axis]
        for a in axes:
            if a < 0 or a >= rank:
                raise ValueError(f"Invalid axis: {a}")
        if len(set(axes)) != len(axes):
            raise ValueError(f"Duplicate axis: {axes}")
        return axes

    def _choose_fused(self, rank: int) -> None:
        # Other ranks and types silently take the unfused form, as in TF.
        known = self._dtype in (dtypes.float32, dtypes.float16, dtypes.bfloat16, None)
        self.fused = self.fused and rank == 4 and len(self.axis) == 1 and known
        if self.fused:
            if self.axis not in ([1], [3]):
                raise ValueError(
                    "Unsupported axis, fused batch norm only supports axis == [1] or axis == [3]"
                )
            self._data_format = "NCHW" if self.axis == [1] else "NHWC"

    # ------------------------------------------------------------ ops
    def call(self, inputs: Any, training: Any = False) -> Tensor:
        """Normalizes by the batch when `training` holds, else by the moving statistics."""
        training = False if training is None else training
        inputs = convert_to_tensor(inputs)
        if self.fused:
            return self._fused(inputs, training)
        return self._unfused(inputs, training)

    def _fused(self, inputs: Tensor, training: Any) -> Tensor:
        gamma = self.gamma if self.scale else self._gamma_const
        beta = self.beta if self.center else self._beta_const
        common: dict[str, Any] = {"epsilon": self.epsilon, "data_format": self._data_format}

        def train() -> Any:
            return fused_batch_norm(inputs, gamma, beta, **common)

        def infer() -> Any:
            return fused_batch_norm(
                inputs, gamma, beta, mean=self.moving_mean, variance=self.moving_variance,
                is_training=False, **common,
            )  # fmt: skip

        output, mean, variance = smart_cond(training, train, infer)
        known = static_bool(training)
        if known is not False:
            momentum: Any
            if known is None:
                momentum = smart_cond(
                    training, lambda: constant(self.momentum), lambda: constant(1.0)
                )
            else:
                momentum = convert_to_tensor(self.momentum)
            self._move(inputs, mean, variance, momentum)
        output.set_shape(inputs.shape)
        return output  # type: ignore[no-any-return]

    def _unfused(self, inputs: Tensor, training: Any) -> Tensor:
        rank = len(static(inputs.shape))
        axes = [i for i in range(rank) if i not in self.axis]
        wide: list[int | None] = [1] * rank
        wide[self.axis[0]] = static(inputs.shape)[self.axis[0]]

        def spread(value: Any) -> Any:
            if value is None or len(value.shape) == rank or axes == list(range(rank - 1)):
                return value
            return reshape(value, wide)

        scale, offset = spread(self.gamma), spread(self.beta)
        mean, variance = self.moving_mean, self.moving_variance
        if static_bool(training) is not False:
            batch_mean, batch_variance = moments(
                cast(inputs, self._param_dtype), axes, keep_dims=len(self.axis) > 1
            )
            mean = smart_cond(
                training, lambda: batch_mean, lambda: convert_to_tensor(self.moving_mean)
            )
            variance = smart_cond(
                training, lambda: batch_variance, lambda: convert_to_tensor(self.moving_variance)
            )
            self._move(inputs, mean, variance, self.momentum)
        output = nn_batch_normalization(
            inputs, spread(cast(mean, inputs.dtype)), spread(cast(variance, inputs.dtype)),
            None if offset is None else cast(offset, inputs.dtype),
            None if scale is None else cast(scale, inputs.dtype), self.epsilon,
        )  # fmt: skip
        output.set_shape(inputs.shape)
        return output

    def _move(self, inputs: Tensor, mean: Any, variance: Any, momentum: Any) -> None:
        self.add_update(
            [
                _moving_average(self.moving_mean, mean, momentum),
                _moving_average(self.moving_variance, variance, momentum),
            ],
            inputs=inputs,
        )

    def compute_output_shape(self, input_shape: Any) -> TensorShape:
        """The shape of the input."""
        return TensorShape(input_shape)


def _moving_average(variable: Any, value: Any, momentum: Any) -> Any:
    with name_scope("AssignMovingAvg") as scope, colocate_with(variable.op):
        decay = convert_to_tensor(1.0 - momentum, name="decay")
        element = variable.dtype.base_dtype
        delta = (variable - cast(value, element)) * cast(decay, element)
        return assign_sub(variable, delta, name=scope)


def batch_normalization(
    inputs: Any, axis: Any = -1, momentum: float = 0.99, epsilon: float = 1e-3,
    center: bool = True, scale: bool = True,
    beta_initializer: Any = zeros_initializer(),  # noqa: B008
    gamma_initializer: Any = ones_initializer(),  # noqa: B008
    moving_mean_initializer: Any = zeros_initializer(),  # noqa: B008
    moving_variance_initializer: Any = ones_initializer(),  # noqa: B008
    beta_regularizer: Any = None, gamma_regularizer: Any = None, beta_constraint: Any = None,
    gamma_constraint: Any = None, training: Any = False, trainable: bool = True, name: Any = None,
    reuse: Any = None, renorm: bool = False, renorm_clipping: Any = None,
    renorm_momentum: float = 0.99, fused: bool | None = None,
    virtual_batch_size: int | None = None, adjustment: Any = None,
    data_format: str | None = None,
) -> Tensor:  # fmt: skip
    """Batch normalization of `inputs`.

    Run `tf.get_collection(tf.GraphKeys.UPDATE_OPS)` beside the training step; without it the
    moving statistics stay as they were initialized.

    Args:
        inputs: a floating-point tensor of known rank.
        axis: the channel dimension, or a list of dimensions; 1 for NCHW.
        momentum: how much of the moving statistics a step keeps.
        epsilon: added to the variance.
        center: whether there is a `beta` to add.
        scale: whether there is a `gamma` to multiply by.
        beta_initializer, gamma_initializer, moving_mean_initializer, moving_variance_initializer:
            make the variables.
        beta_regularizer, gamma_regularizer: functions from a variable to a loss.
        beta_constraint, gamma_constraint: applied after each update.
        training: a bool or a scalar bool tensor: normalize by the batch's statistics.
        trainable: whether optimizers update the variables.
        name: the layer's name.
        reuse: whether to share the variables of a layer of that name.
        renorm, renorm_clipping, renorm_momentum: batch renormalization is not supported.
        fused: whether to use one fused op, for inputs of rank 4; where it can, by default.
        virtual_batch_size: not supported.
        adjustment: not supported.
        data_format: "NCHW" for axis=1, "NHWC" for axis=-1; TF 1.15 has `axis` only.

    Returns:
        A tensor like `inputs`.

    Raises:
        ValueError: the axis does not fit, or its size is unknown.
        UnimplementedError: an argument that is not supported.
    """
    layer = BatchNormalization(
        axis=axis, momentum=momentum, epsilon=epsilon, center=center, scale=scale,
        beta_initializer=beta_initializer, gamma_initializer=gamma_initializer,
        moving_mean_initializer=moving_mean_initializer,
        moving_variance_initializer=moving_variance_initializer,
        beta_regularizer=beta_regularizer, gamma_regularizer=gamma_regularizer,
        beta_constraint=beta_constraint, gamma_constraint=gamma_constraint, renorm=renorm,
        renorm_clipping=renorm_clipping, renorm_momentum=renorm_momentum, fused=fused,
        trainable=trainable, virtual_batch_size=virtual_batch_size, adjustment=adjustment,
        name=name, data_format=data_format, _reuse=reuse, _scope=name,
    )  # fmt: skip
    return layer(inputs, training=training)  # type: ignore[no-any-return]
