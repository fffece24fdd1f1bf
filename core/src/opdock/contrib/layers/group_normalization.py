"""Normalization of each example by itself: channel by channel, or groups of channels."""

from __future__ import annotations

from typing import Any

from opdock.contrib.framework.arg_scope import add_arg_scope
from opdock.contrib.layers.common import channels, finish, model_variable
from opdock.contrib.layers.utils import get_variable_collections
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.variables.initializers import ones_initializer, zeros_initializer
from opdock.graph.variables.variable_scope import variable_scope
from opdock.ops.array import reshape, shape
from opdock.ops.composed.moments import moments, normalize_moments, sufficient_statistics
from opdock.ops.elementary import rsqrt
from opdock.ops.norm import batch_normalization

__all__ = ["group_norm", "instance_norm"]


def _parameters(
    center: bool, scale: bool, size: int, dtype: Any, param_initializers: Any,
    variables_collections: Any, trainable: bool,
) -> tuple[Any, Any]:  # fmt: skip
    """The variables `beta` and `gamma`, or None for what is not asked for."""
    begin = param_initializers or {}
    wanted = {"beta": (center, zeros_initializer()), "gamma": (scale, ones_initializer())}
    made = [
        model_variable(
            kind, [size], begin.get(kind, default), trainable,
            get_variable_collections(variables_collections, kind), dtype=dtype,
        )
        if asked
        else None
        for kind, (asked, default) in wanted.items()
    ]  # fmt: skip
    return made[0], made[1]


@add_arg_scope
def instance_norm(
    inputs: Any, center: bool = True, scale: bool = True, epsilon: float = 1e-6,
    activation_fn: Any = None, param_initializers: Any = None, reuse: Any = None,
    variables_collections: Any = None, outputs_collections: Any = None, trainable: bool = True,
    data_format: str = "NHWC", scope: Any = None,
) -> Tensor:  # fmt: skip
    """Instance normalization (Ulyanov et al. 2016, arXiv:1607.08022): each channel of each example.

    Args:
        inputs: a floating-point tensor of rank 2 or more, whose channels are known.
        center: whether there is a variable `beta` to add.
        scale: whether there is a variable `gamma` to multiply by.
        epsilon: added to the variance.
        activation_fn: a function on the result, or None.
        param_initializers: a dict by variable name.
        reuse: whether to share the variables of `scope`.
        variables_collections: collections for the variables, or a dict of them.
        outputs_collections: collections for the result.
        trainable: whether optimizers update the variables.
        data_format: "NHWC" or "NCHW", for channels last or second in a tensor of any rank.
        scope: the variable scope; "InstanceNorm", made unique, by default.

    Returns:
        A tensor like `inputs`.

    Raises:
        ValueError: the format is another one, or the rank or the channels are not known.
    """
    inputs = convert_to_tensor(inputs)
    rank = inputs.shape.ndims
    if rank is None:
        raise ValueError(f"Inputs {inputs.name} has undefined rank.")
    axis = 1 if channels(data_format) == "channels_first" else rank - 1
    with variable_scope(scope, "InstanceNorm", [inputs], reuse=reuse) as sc:
        size = inputs.shape.as_list()[axis]
        if size is None:
            raise ValueError(f"Inputs {inputs.name} has undefined channels dimension ({size},).")
        parameters = _parameters(
            center, scale, size, inputs.dtype.base_dtype, param_initializers,
            variables_collections, trainable,
        )  # fmt: skip
        if axis == 1:
            wide = [1, size] + [1] * (rank - 2)
            beta, gamma = (None if p is None else reshape(p, wide) for p in parameters)
        else:
            beta, gamma = parameters
        within = [d for d in range(1, rank) if d != axis]
        mean, variance = moments(inputs, within, keep_dims=True)
        outputs = batch_normalization(
            inputs, mean, variance, beta, gamma, epsilon, name="instancenorm"
        )
        return finish(outputs, activation_fn, outputs_collections, sc.name)


@add_arg_scope
def group_norm(
    inputs: Any, groups: int = 32, channels_axis: int = -1, reduction_axes: Any = (-3, -2),
    center: bool = True, scale: bool = True, epsilon: float = 1e-6, activation_fn: Any = None,
    param_initializers: Any = None, reuse: Any = None, variables_collections: Any = None,
    outputs_collections: Any = None, trainable: bool = True, scope: Any = None,
    mean_close_to_zero: bool = False,
) -> Tensor:  # fmt: skip
    """Group normalization (Wu and He 2018, arXiv:1803.08494): groups of channels of each example.

    Args:
        inputs: a floating-point tensor of known rank, whose channels are known.
        groups: how many groups there are, a divisor of the channels.
        channels_axis: the dimension of the channels.
        reduction_axes: the dimensions over which statistics are taken beside, of known sizes.
        center: whether there is a variable `beta` to add.
        scale: whether there is a variable `gamma` to multiply by.
        epsilon: added to the variance.
        activation_fn: a function on the result, or None.
        param_initializers: a dict by variable name.
        reuse: whether to share the variables of `scope`.
        variables_collections: collections for the variables, or a dict of them.
        outputs_collections: collections for the result.
        trainable: whether optimizers update the variables.
        scope: the variable scope; "GroupNorm", made unique, by default.
        mean_close_to_zero: whether sums may be taken in one pass, as they are no sums of large
            numbers.

    Returns:
        A tensor like `inputs`.

    Raises:
        ValueError: a dimension is not known or is none, or the groups do not fit the channels.
    """
    inputs = convert_to_tensor(inputs)
    axis, others, size = _grouped_axes(inputs, groups, channels_axis, reduction_axes)
    known = inputs.shape.as_list()
    late = shape(inputs)
    sizes = [late[i] if dim is None else dim for i, dim in enumerate(known)]
    split = [groups, size // groups]
    parts = reshape(inputs, sizes[:axis] + split + sizes[axis + 1 :])
    within = [axis + 1, *(d + 1 if d > axis else d for d in others)]
    with variable_scope(scope, "GroupNorm", [inputs], reuse=reuse) as sc:
        parameters = _parameters(
            center, scale, size, inputs.dtype.base_dtype, param_initializers,
            variables_collections, trainable,
        )  # fmt: skip
        wide = [1] * axis + split + [1] * (len(known) - axis - 1)
        beta, gamma = (None if p is None else reshape(p, wide) for p in parameters)
        if mean_close_to_zero:
            counts, sums, squares, _ = sufficient_statistics(parts, within, keep_dims=True)
            mean, variance = normalize_moments(counts, sums, squares, shift=None)
        else:
            mean, variance = moments(parts, within, keep_dims=True)
        gain = rsqrt(variance + epsilon)
        offset = -mean * gain
        if gamma is not None:
            gain *= gamma
            offset *= gamma
        if beta is not None:
            offset += beta
        outputs = reshape(parts * gain + offset, sizes)
        return finish(outputs, activation_fn, outputs_collections, sc.name)


def _grouped_axes(
    inputs: Tensor, groups: int, channels_axis: int, reduction_axes: Any
) -> tuple[int, list[int], int]:
    """The channels' dimension and the others, counted from the first, and how many channels."""
    rank = inputs.shape.ndims
    if rank is None:
        raise ValueError(f"Inputs {inputs.name} has undefined rank.")
    if channels_axis > rank - 1:
        raise ValueError("Axis is out of bounds.")
    axis = channels_axis + rank if channels_axis < 0 else channels_axis
    size = inputs.shape.as_list()[axis]
    if size is None:
        raise ValueError(f"Inputs {inputs.name} has undefined channel dimension: {axis}.")
    others = [a + rank if a < 0 else a for a in reduction_axes]
    for other in others:
        if other >= rank:
            raise ValueError("Axis is out of bounds.")
        if inputs.shape.as_list()[other] is None:
            raise ValueError(f"Inputs {inputs.name} has undefined dimensions {other}.")
        if other == axis:
            raise ValueError("reduction_axis must be mutually exclusive with channels_axis")
    if groups > size:
        raise ValueError(f"Invalid groups {groups} for {size} channels.")
    if size % groups:
        raise ValueError(f"{size} channels is not commensurate with {groups} groups.")
    return axis, others, size
