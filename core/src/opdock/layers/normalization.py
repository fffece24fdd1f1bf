"""Batch normalization (Ioffe & Szegedy 2015, arXiv:1502.03167)."""

from __future__ import annotations

from typing import Any

from opdock import dtypes
from opdock.graph.nodes.constant import constant
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import colocate_with, control_dependencies, name_scope
from opdock.graph.variables.flavour import VariableAggregation, VariableSynchronization
from opdock.graph.variables.initializers import ones_initializer, zeros_initializer
from opdock.layers import named
from opdock.layers.base import Layer, applied, static
from opdock.layers.spec import InputSpec
from opdock.layers.utils import smart_cond, static_bool
from opdock.ops.arithmetic import maximum, minimum
from opdock.ops.array import reshape, size
from opdock.ops.array import shape as tensor_shape
from opdock.ops.cast import cast
from opdock.ops.composed.moments import moments
from opdock.ops.elementary import sqrt
from opdock.ops.fill import ones_like, zeros_like
from opdock.ops.identity import identity, stop_gradient
from opdock.ops.nn import relu
from opdock.ops.norm import batch_normalization as nn_batch_normalization
from opdock.ops.norm import fused_batch_norm
from opdock.ops.reduce import reduce_mean
from opdock.ops.state import assign, assign_sub
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


_CLIPPING = frozenset({"rmax", "rmin", "dmax"})


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
        axis, self.data_format = _axis_of(axis, data_format), data_format
        if not isinstance(axis, (int, list, tuple)):
            raise TypeError(f"axis must be int or list, type given: {type(axis)}")
        self.axis: list[int] = [axis] if isinstance(axis, int) else list(axis)
        self.momentum, self.epsilon = momentum, epsilon
        self.center, self.scale = center, scale
        self.beta_initializer, self.gamma_initializer = beta_initializer, gamma_initializer
        self.moving_mean_initializer = moving_mean_initializer
        self.moving_variance_initializer = named.initializer(moving_variance_initializer)
        self.beta_regularizer, self.gamma_regularizer = beta_regularizer, gamma_regularizer
        self.beta_constraint, self.gamma_constraint = beta_constraint, gamma_constraint
        self.fused: bool = True if fused is None else fused
        self.renorm, self.renorm_momentum = renorm, renorm_momentum
        self.renorm_clipping: dict[str, Any] = renorm_clipping or {}
        if renorm and set(self.renorm_clipping) - _CLIPPING:
            raise ValueError(
                f"renorm_clipping {renorm_clipping} contains keys not in {sorted(_CLIPPING)}"
            )
        self.virtual_batch_size, self.adjustment = virtual_batch_size, adjustment
        self.gamma: Any = None
        self.beta: Any = None
        self.moving_mean: Any = None
        self.moving_variance: Any = None
        self.moving_stddev: Any = None
        self.renorm_mean: Any = None
        self.renorm_stddev: Any = None
        self._data_format = "NHWC"
        # Whether the moving variance of a fused layer is the unbiased one, which that of an unfused
        # layer is not; TF's tests switch it off to compare them.
        self._bessels_correction_test_only = True

    def get_config(self) -> dict[str, Any]:
        """The arguments that make such a layer; `axis` says what `data_format` meant."""
        config = super().get_config()
        del config["data_format"]
        return config

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
        self._check_virtual_batch()
        self._choose_fused(len(dims))
        sizes = {i: dims[i] for i in self.axis}
        if None in sizes.values():
            raise ValueError("Input has undefined `axis` dimension. Input shape: ", dims)
        self.input_spec = InputSpec(ndim=len(dims), axes=sizes)
        if len(sizes) == 1 and self.virtual_batch_size is None:
            shape: list[Any] = list(sizes.values())
        else:
            shape = [sizes.get(i, 1) for i in range(len(dims))]
        if self.virtual_batch_size is not None:
            # The batch becomes two dimensions in `call`.
            shape.insert(1, 1)
            self.axis = [a + 1 for a in self.axis]
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
        self._add_statistics(shape)
        self.built = True

    def _add_statistics(self, shape: list[Any]) -> None:
        """Makes the variables that no optimizer updates; they are never partitioned."""
        partitioner = self._scope.partitioner if self._scope else None
        if self._scope:
            self._scope.set_partitioner(None)

        def statistic(name: str, initializer: Any) -> Any:
            return self.add_weight(
                name, shape, self._param_dtype, initializer, trainable=False,
                synchronization=VariableSynchronization.ON_READ,
                aggregation=VariableAggregation.MEAN,
            )  # fmt: skip

        def deviations(shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
            return sqrt(self.moving_variance_initializer(shape, dtype, partition_info))

        try:
            self.moving_mean = statistic("moving_mean", self.moving_mean_initializer)
            self.moving_variance = statistic("moving_variance", self.moving_variance_initializer)
            if self.renorm:
                self.moving_stddev = statistic("moving_stddev", deviations)
                self.renorm_mean = statistic("renorm_mean", self.moving_mean_initializer)
                self.renorm_stddev = statistic("renorm_stddev", deviations)
        finally:
            if self._scope:
                self._scope.set_partitioner(partitioner)

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

    def _check_virtual_batch(self) -> None:
        if self.virtual_batch_size is None:
            return
        if self.virtual_batch_size <= 0:
            raise ValueError(
                "virtual_batch_size must be a positive integer that divides the true batch size "
                "of the input Tensor"
            )
        if 0 in self.axis:
            raise ValueError(
                "When using virtual_batch_size, the batch dimension must be 0 and thus axis "
                "cannot include 0"
            )
        if self.adjustment is not None:
            raise ValueError("When using virtual_batch_size, adjustment cannot be specified")

    def _choose_fused(self, rank: int) -> None:
        # What the op cannot do silently takes the unfused form, as in TF.
        known = self._dtype in (dtypes.float32, dtypes.float16, dtypes.bfloat16, None)
        plain = not self.renorm and self.virtual_batch_size is None and self.adjustment is None
        self.fused = self.fused and plain and known and rank == 4 and self.axis in ([1], [3])
        if self.fused:
            self._data_format = "NCHW" if self.axis == [1] else "NHWC"

    # ------------------------------------------------------------ ops
    def call(self, inputs: Any, training: Any = False) -> Tensor:
        """Normalizes by the batch when `training` holds, else by the moving statistics."""
        training = False if training is None else training
        inputs = convert_to_tensor(inputs)
        if self.fused:
            output = self._fused(inputs, training)
        elif self.virtual_batch_size is None:
            output = self._unfused(inputs, training)
        else:
            whole = [-1, *inputs.shape.as_list()[1:]]
            parts = reshape(inputs, [self.virtual_batch_size, -1, *whole[1:]])
            output = reshape(self._unfused(parts, training), whole)
        output.set_shape(inputs.shape)
        return output

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
        if not self._bessels_correction_test_only:
            count = cast(size(inputs) / size(variance), variance.dtype)
            variance *= (count - 1) / count
        if known is not False:
            momentum: Any
            if known is None:
                momentum = smart_cond(
                    training, lambda: constant(self.momentum), lambda: constant(1.0)
                )
            else:
                momentum = convert_to_tensor(self.momentum)
            self._move(inputs, mean, variance, momentum)
        return output  # type: ignore[no-any-return]

    def _unfused(self, inputs: Tensor, training: Any) -> Tensor:
        rank, virtual = len(static(inputs.shape)), self.virtual_batch_size is not None
        axes = [i for i in range(rank) if i not in self.axis]
        if virtual:
            del axes[1]
        wide: list[int | None] = [1] * rank
        wide[self.axis[0]] = static(inputs.shape)[self.axis[0]]

        def spread(value: Any) -> Any:
            if value is None or len(value.shape) == rank or axes == list(range(rank - 1)):
                return value
            return reshape(value, wide)

        scale, offset = spread(self.gamma), spread(self.beta)
        mean, variance = self.moving_mean, self.moving_variance
        if static_bool(training) is not False:
            if self.adjustment is not None:
                scale, offset = _composed(*self._adjusted(inputs, training), scale, offset)
            batch_mean, batch_variance = moments(
                cast(inputs, self._param_dtype), axes, keep_dims=virtual or len(self.axis) > 1
            )
            mean = smart_cond(
                training, lambda: batch_mean, lambda: convert_to_tensor(self.moving_mean)
            )
            variance = smart_cond(
                training, lambda: batch_variance, lambda: convert_to_tensor(self.moving_variance)
            )
            new_mean, new_variance = mean, variance
            if virtual:
                new_mean = reduce_mean(mean, axis=1, keepdims=True)
                new_variance = reduce_mean(variance, axis=1, keepdims=True)
            if self.renorm:
                r, d, new_mean, new_variance = self._renorm(new_mean, new_variance, training)
                scale, offset = _composed(spread(r), spread(d), scale, offset)
            self._move(inputs, new_mean, new_variance, self.momentum, training)
        return nn_batch_normalization(
            inputs, spread(cast(mean, inputs.dtype)), spread(cast(variance, inputs.dtype)),
            None if offset is None else cast(offset, inputs.dtype),
            None if scale is None else cast(scale, inputs.dtype), self.epsilon,
        )  # fmt: skip

    def _adjusted(self, inputs: Tensor, training: Any) -> tuple[Any, Any]:
        """The adjustment's scale and bias; 1 and 0 when not training."""
        scale, bias = (convert_to_tensor(v) for v in self.adjustment(tensor_shape(inputs)))
        return (
            smart_cond(training, lambda: scale, lambda: ones_like(scale)),
            smart_cond(training, lambda: bias, lambda: zeros_like(bias)),
        )

    def _renorm(self, mean: Any, variance: Any, training: Any) -> tuple[Any, Any, Any, Any]:
        """The corrections r and d (Ioffe 2017, arXiv:1702.03275), and the statistics to move to."""
        stddev = sqrt(variance + self.epsilon)
        known = maximum(self.renorm_stddev, sqrt(self.epsilon))
        r, d = stddev / known, (mean - self.renorm_mean) / known
        with control_dependencies([r, d]):
            mean, stddev = identity(mean), identity(stddev)
        rmin, rmax, dmax = (self.renorm_clipping.get(key) for key in ("rmin", "rmax", "dmax"))
        if rmin is not None:
            r = maximum(r, rmin)
        if rmax is not None:
            r = minimum(r, rmax)
        if dmax is not None:
            d = minimum(maximum(d, -dmax), dmax)
        r = smart_cond(training, lambda: r, lambda: ones_like(r))
        d = smart_cond(training, lambda: d, lambda: zeros_like(d))
        moved = [
            self._when_training(training, variable, value, self.renorm_momentum)
            for variable, value in ((self.renorm_mean, mean), (self.renorm_stddev, stddev))
        ]
        with control_dependencies(moved):
            mean, variance = identity(mean), identity(variance)
        r = stop_gradient(r, name="renorm_r")
        return r, stop_gradient(d, name="renorm_d"), mean, variance

    def _when_training(self, training: Any, variable: Any, value: Any, momentum: Any) -> Any:
        """Moves a variable towards a value, or leaves it; the variable's value in both cases."""
        return smart_cond(
            training,
            lambda: identity(_moving_average(variable, identity(value), momentum)),
            lambda: identity(variable),
        )

    def _moved_mean(self, mean: Any, momentum: Any) -> Any:
        return _moving_average(self.moving_mean, mean, momentum)

    def _move(
        self, inputs: Tensor, mean: Any, variance: Any, momentum: Any, training: Any = True
    ) -> None:
        first = self._moved_mean(mean, momentum)
        if self.renorm:
            stddev = sqrt(variance + self.epsilon)

            def from_stddev() -> Any:
                moved = _moving_average(self.moving_stddev, stddev, momentum)
                with name_scope("AssignNewValue") as scope:
                    fresh = relu(moved * moved - self.epsilon)
                    return identity(assign(self.moving_variance, fresh, name=scope))

            last = smart_cond(training, from_stddev, lambda: identity(self.moving_variance))
        else:
            last = _moving_average(self.moving_variance, variance, momentum)
        self.add_update([first, last], inputs=inputs)

    def compute_output_shape(self, input_shape: Any) -> TensorShape:
        """The shape of the input."""
        return TensorShape(input_shape)


def _composed(scale: Any, offset: Any, then_scale: Any, then_offset: Any) -> tuple[Any, Any]:
    """One scale and offset for two, applied in order."""
    if then_scale is not None:
        scale, offset = scale * then_scale, offset * then_scale
    if then_offset is not None:
        offset = offset + then_offset
    return scale, offset


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
        renorm: whether to correct towards moving statistics in training too (batch
            renormalization), which adds variables.
        renorm_clipping: bounds of the corrections: "rmin", "rmax", "dmax".
        renorm_momentum: how much of those statistics a step keeps.
        fused: whether to use one fused op, for inputs of rank 4; where it can, by default.
        virtual_batch_size: normalizes parts of the batch, which have this many examples each.
        adjustment: a function from the dynamic shape of the inputs to a scale and a bias that are
            applied to the normalized values in training, before gamma and beta.
        data_format: "NCHW" for axis=1, "NHWC" for axis=-1; TF 1.15 has `axis` only.

    Returns:
        A tensor like `inputs`.

    Raises:
        ValueError: the axis does not fit, or its size is unknown.
    """
    return applied(BatchNormalization, **locals())
