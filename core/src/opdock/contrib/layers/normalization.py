"""`batch_norm` and `layer_norm` of contrib."""

from __future__ import annotations

from typing import Any

from opdock import errors
from opdock.contrib.framework.arg_scope import add_arg_scope
from opdock.contrib.layers.common import channels, collect_variable, finish, variable_getter
from opdock.graph.nodes.collections import GraphKeys, add_to_collections
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import control_dependencies
from opdock.graph.variables.initializers import ones_initializer, zeros_initializer
from opdock.graph.variables.variable_scope import get_variable, variable_scope
from opdock.layers.normalization import BatchNormalization
from opdock.ops.array import reshape, shape
from opdock.ops.composed.moments import moments
from opdock.ops.identity import identity
from opdock.ops.norm import batch_normalization as nn_batch_normalization
from opdock.train.moving_averages import assign_moving_average


class _BatchNorm(BatchNormalization):
    """Batch normalization whose updates the caller collects."""

    def __init__(self, zero_debias: bool, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._updates_collection = None
        self._zero_debias = zero_debias

    def _moved_mean(self, mean: Any, momentum: Any) -> Any:
        if self._zero_debias:
            return assign_moving_average(self.moving_mean, mean, momentum, zero_debias=True)
        return super()._moved_mean(mean, momentum)


@add_arg_scope
def batch_norm(
    inputs: Any, decay: float = 0.999, center: bool = True, scale: bool = False,
    epsilon: float = 0.001, activation_fn: Any = None, param_initializers: Any = None,
    param_regularizers: Any = None, updates_collections: Any = GraphKeys.UPDATE_OPS,
    is_training: Any = True, reuse: Any = None, variables_collections: Any = None,
    outputs_collections: Any = None, trainable: bool = True, batch_weights: Any = None,
    fused: bool | None = None, data_format: str = "NHWC", zero_debias_moving_mean: bool = False,
    scope: Any = None, renorm: bool = False, renorm_clipping: Any = None,
    renorm_decay: float = 0.99, adjustment: Any = None,
) -> Tensor:  # fmt: skip
    """Batch normalization with variables `beta`, `gamma`, `moving_mean`, `moving_variance`.

    Run `tf.get_collection(tf.GraphKeys.UPDATE_OPS)` beside the training step, or pass
    `updates_collections=None` to have the moving averages updated whenever the result is used.

    Args:
        inputs: a floating-point tensor of rank 2 or more.
        decay: how much of the moving averages a step keeps.
        center: whether there is a `beta` to add.
        scale: whether there is a `gamma` to multiply by.
        epsilon: added to the variance.
        activation_fn: a function on the result, or None.
        param_initializers, param_regularizers: dicts by variable name.
        updates_collections: collections for the updates; None to update in place.
        is_training: a bool or a bool tensor: normalize by the batch's statistics.
        reuse: whether to share the variables of `scope`.
        variables_collections: collections for the variables, or a dict of them.
        outputs_collections: collections for the result.
        trainable: whether optimizers update the variables.
        batch_weights: not supported.
        fused: whether to use one fused op; where it can, by default.
        data_format: "NHWC" or "NCHW".
        zero_debias_moving_mean: correct the moving mean for its start at zero.
        scope: the variable scope; "BatchNorm", made unique, by default.
        renorm, renorm_clipping, renorm_decay, adjustment: as of `tf.layers.batch_normalization`.

    Returns:
        A tensor like `inputs`.

    Raises:
        ValueError: the format is unknown, or the shape of the inputs does not fit.
        UnimplementedError: an argument that is not supported.
    """
    if batch_weights is not None:
        raise errors.UnimplementedError(
            None, None, "batch_norm: `batch_weights` is not supported: examples weigh the same."
        )
    first = channels(data_format) == "channels_first"
    with variable_scope(
        scope, "BatchNorm", [inputs], reuse=reuse, custom_getter=variable_getter()
    ) as sc:
        inputs = convert_to_tensor(inputs)
        rank = inputs.shape.ndims
        if rank is None:
            raise ValueError(f"Inputs {inputs.name} has undefined rank")
        initial, penalty = param_initializers or {}, param_regularizers or {}
        layer = _BatchNorm(
            zero_debias_moving_mean,
            axis=1 if first else -1, momentum=decay, epsilon=epsilon, center=center, scale=scale,
            beta_initializer=initial.get("beta", zeros_initializer()),
            gamma_initializer=initial.get("gamma", ones_initializer()),
            moving_mean_initializer=initial.get("moving_mean", zeros_initializer()),
            moving_variance_initializer=initial.get("moving_variance", ones_initializer()),
            beta_regularizer=penalty.get("beta"), gamma_regularizer=penalty.get("gamma"),
            renorm=renorm, renorm_clipping=renorm_clipping, renorm_momentum=renorm_decay,
            fused=fused, trainable=trainable, adjustment=adjustment, name=sc.name, _scope=sc,
            _reuse=reuse,
        )  # fmt: skip
        # The fused op knows images only, so a matrix goes in as images of one pixel.
        wide = rank == 2 and fused is not False
        taken = _as_image(inputs, first) if wide else inputs
        outputs: Tensor = layer(taken, training=is_training)
        if wide:
            outputs = reshape(outputs, shape(inputs))
            outputs.set_shape(inputs.shape)
        for kind in ("beta", "gamma", "moving_mean", "moving_variance"):
            collect_variable(getattr(layer, kind), variables_collections, kind)
        # Unlike `tf.layers`, contrib moves the averages of frozen layers too.
        updates = layer._updates
        if updates_collections is None:
            with control_dependencies(updates):
                outputs = identity(outputs)
        else:
            names = (
                [updates_collections]
                if isinstance(updates_collections, str)
                else (updates_collections)
            )
            for update in updates:
                add_to_collections(names, update)
        return finish(outputs, activation_fn, outputs_collections, sc.name)


def _as_image(inputs: Tensor, first: bool) -> Any:
    channels = inputs.shape.as_list()[-1]
    if channels is None:
        raise ValueError("`C` dimension must be known but is None")
    return reshape(inputs, [-1, channels, 1, 1] if first else [-1, 1, 1, channels])


@add_arg_scope
def layer_norm(
    inputs: Any, center: bool = True, scale: bool = True, activation_fn: Any = None,
    reuse: Any = None, variables_collections: Any = None, outputs_collections: Any = None,
    trainable: bool = True, begin_norm_axis: int = 1, begin_params_axis: int = -1,
    scope: Any = None,
) -> Tensor:  # fmt: skip
    """Layer normalization (Ba et al. 2016, arXiv:1607.06450): each example by itself.

    Args:
        inputs: a floating-point tensor of known rank.
        center: whether there is a `beta` to add.
        scale: whether there is a `gamma` to multiply by.
        activation_fn: a function on the result, or None.
        reuse: whether to share the variables of `scope`.
        variables_collections: collections for the variables, or a dict of them.
        outputs_collections: collections for the result.
        trainable: whether optimizers update the variables.
        begin_norm_axis: the first dimension to take statistics over.
        begin_params_axis: the first dimension of `beta` and `gamma`.
        scope: the variable scope; "LayerNorm", made unique, by default.

    Returns:
        A tensor like `inputs`.

    Raises:
        ValueError: the rank is unknown, or an axis does not fit.
    """
    with variable_scope(
        scope, "LayerNorm", [inputs], reuse=reuse, custom_getter=variable_getter()
    ) as sc:
        inputs = convert_to_tensor(inputs)
        rank = inputs.shape.ndims
        if rank is None:
            raise ValueError(f"Inputs {inputs.name} has undefined rank.")
        begin = begin_norm_axis + rank if begin_norm_axis < 0 else begin_norm_axis
        if begin_params_axis >= rank or begin >= rank:
            raise ValueError(
                f"begin_params_axis ({begin_params_axis}) and begin_norm_axis ({begin}) must be < "
                f"rank(inputs) ({rank})"
            )
        params = inputs.shape[begin_params_axis:]
        if not params.is_fully_defined():
            raise ValueError(
                f"Inputs {inputs.name}: shape(inputs)[{begin_params_axis}:] is not fully defined: "
                f"{inputs.shape}"
            )
        dtype = inputs.dtype.base_dtype
        wanted = {"beta": (center, zeros_initializer()), "gamma": (scale, ones_initializer())}
        made: dict[str, Any] = {}
        for kind, (asked, initializer) in wanted.items():
            if asked:
                made[kind] = get_variable(
                    kind, params.as_list(), dtype, initializer, trainable=trainable
                )
                collect_variable(made[kind], variables_collections, kind)
        mean, variance = moments(inputs, list(range(begin, rank)), keep_dims=True)
        outputs = nn_batch_normalization(
            inputs, mean, variance, made.get("beta"), made.get("gamma"),
            1e-3 if dtype.size == 2 else 1e-12,
        )  # fmt: skip
        outputs.set_shape(inputs.shape)
        return finish(outputs, activation_fn, outputs_collections, sc.name)
