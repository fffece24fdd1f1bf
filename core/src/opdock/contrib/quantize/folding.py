"""Folds fused batch normalizations into the layers before them.

    weights * gamma / sqrt(variance + epsilon),    beta - mean * gamma / sqrt(variance + epsilon)

are the weights and the bias of a layer that needs no normalization. In training the statistics are
those of the batch, and so is what the product becomes; what is rounded are weights scaled by the
moving average, which changes slowly, and a correction brings the product back to the batch's scale.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from opdock import dtypes
from opdock.contrib.quantize.wiring import chosen, quantization_step, reroute
from opdock.graph.nodes.constant import constant
from opdock.graph.nodes.gradient_registry import RegisterGradient
from opdock.graph.nodes.graph import Graph, get_default_graph
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.ops.arithmetic import add, multiply, subtract
from opdock.ops.array import reshape, size
from opdock.ops.cast import cast
from opdock.ops.compare import greater_equal
from opdock.ops.composed.division import divide
from opdock.ops.conv import conv2d
from opdock.ops.depthwise import depthwise_conv2d_native
from opdock.ops.elementary import reciprocal, rsqrt
from opdock.ops.fill import ones, zeros
from opdock.ops.identity import identity
from opdock.ops.linalg import matmul
from opdock.ops.spacebatch import batch_to_space_nd

__all__ = ["Correction", "Statistics", "copied", "corrections", "fold_fused_batch_norms"]

_GRADIENT: Final = "FoldFusedBatchNormGrad"
_NORMS: Final = frozenset({"FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"})
_LAYERS: Final = frozenset({"Conv2D", "DepthwiseConv2dNative", "MatMul"})


@dataclass(frozen=True, slots=True)
class Statistics:
    """What a normalization knows of its inputs in training.

    Attributes:
        gamma: its scale.
        mean, variance: those of the batch.
        moving_mean, moving_variance: their moving averages.
        epsilon: what is added to variances.
        mean_decay, variance_decay: how quickly the averages move.
    """

    gamma: Any
    mean: Any
    variance: Any
    moving_mean: Any
    moving_variance: Any
    epsilon: Any
    mean_decay: Any
    variance_decay: Any


@dataclass(frozen=True, slots=True)
class Correction:
    """From products of weights scaled by moving averages to those of the batch's scale.

    Attributes:
        scale: a factor of the weights.
        inverse: a factor of the products.
        offset: what is added to them.
    """

    scale: Any
    inverse: Any
    offset: Any


def corrections(known: Statistics, prefix: str, delay: int | None) -> Correction:
    """The correction, which ends once the moving averages are used.

    Args:
        known: the statistics.
        prefix: what the scope's name begins with.
        delay: steps after which the averages are used, and stay; never without it.
    """
    with get_default_graph().name_scope(f"{prefix}batch_norm_correction"):
        average = rsqrt(known.moving_variance + known.epsilon)
        batch = rsqrt(known.variance + known.epsilon)
        scale = identity(divide(average, batch, name="scale_compute"), name="correction_scale")
        inverse = reciprocal(scale, name="reciprocal_compute")
        apart = known.mean * batch - known.moving_mean * average
        offset = multiply(known.gamma, apart, name="offset_compute")
        if delay is None:
            return Correction(scale, inverse, zeros(offset.shape))
        frozen = greater_equal(quantization_step(), delay, name="use_moving_average")
        for decay, name in (
            (known.mean_decay, "freeze_moving_mean"),
            (known.variance_decay, "freeze_moving_var"),
        ):
            users = list(decay.consumers())
            reroute(chosen(frozen, constant(0.0), decay, name), decay, users)
        inverse = chosen(frozen, ones(scale.shape), inverse, "correction_recip")
        # What the batch's statistics give needs no offset.
        offset = chosen(frozen, offset, zeros(offset.shape), "correction_offset")
    return Correction(scale, inverse, offset)


def copied(layer: Operation, inputs: tuple[Tensor, Tensor], name: str) -> Tensor:
    """The same convolution or product of other inputs.

    Raises:
        ValueError: there is no such layer.
    """
    attrs = layer.attrs
    if layer.type == "MatMul":
        return matmul(
            *inputs, transpose_a=attrs["transpose_a"], transpose_b=attrs["transpose_b"], name=name
        )
    if layer.type not in _LAYERS:
        raise ValueError(f"Cannot handle operation of type: {layer.type}")
    same = {key: attrs[key] for key in ("strides", "padding", "data_format", "dilations")}
    make = conv2d if layer.type == "Conv2D" else depthwise_conv2d_native
    found: Tensor = make(*inputs, **same, name=name)
    return found


# ---------------------------------------------------------------- fused normalizations
@dataclass(frozen=True, slots=True)
class _Match:
    """A fused normalization and the layer before it.

    Attributes:
        norm: the normalization.
        layer: the convolution or product.
        spread: the op that undoes a dilation between the two.
        output: what is taken of the normalization.
    """

    norm: Operation
    layer: Operation
    spread: Operation | None
    output: Tensor


def fold_fused_batch_norms(graph: Graph, freeze_batch_norm_delay: int | None = None) -> None:
    """Folds all fused normalizations of a graph in place; see `rewrites.fold_batch_norms`."""
    with graph.as_default():
        for match in list(_matches(graph)):
            _fold(graph, match, freeze_batch_norm_delay)


def _matches(graph: Graph) -> Iterator[_Match]:
    taken: set[Operation] = set()
    for norm in graph.get_operations():
        if norm.type not in _NORMS:
            continue
        source, output = norm.inputs[0].op, norm.outputs[0]
        # A product has a shape of rank 4 around its normalization.
        shaped = source.type == "Reshape"
        if shaped:
            source = source.inputs[0].op
        if source.type == "Identity":
            source = source.inputs[0].op
        spread = source if source.type == "BatchToSpaceND" else None
        layer = source if spread is None else source.inputs[0].op
        if layer.type not in _LAYERS or layer in taken:
            continue
        if layer.type == "MatMul":
            back = [user for user in output.consumers() if user.type == "Reshape"]
            if not back:
                continue
            output = back[0].outputs[0]
        if output.consumers():
            taken.add(layer)
            yield _Match(norm, layer, spread, output)


def _fold(graph: Graph, match: _Match, delay: int | None) -> None:
    norm, layer = match.norm, match.layer
    known = _statistics(graph, match) if norm.attrs["is_training"] else None
    gamma, beta, mean, variance = norm.inputs[1:5]
    if known is not None:
        mean, variance = known.mean, known.variance
    scope, _, last = layer.name.rpartition("/")
    scope += "/" if scope else ""
    with graph.name_scope(scope or None):
        with graph.name_scope(f"{scope}BatchNorm_Fold/"):
            factor = gamma * rsqrt(variance + norm.attrs["epsilon"])
            bias = subtract(beta, mean * factor, name="bias")
            correction = None if known is None else corrections(known, "", delay)
            weights = layer.inputs[1]
            scale = None if correction is None else correction.scale
            if layer.type == "DepthwiseConv2dNative":
                by_channel = weights.get_shape().as_list()[2:]
                factor = reshape(factor, by_channel, name="scale_reshape")
                if scale is not None:
                    scale = reshape(scale, by_channel, name="correction_reshape")
        if scale is not None:
            weights = multiply(scale, weights, name="correction_mult")
        weights = multiply(weights, factor, name="mul_fold")
        out = copied(layer, (layer.inputs[0], weights), f"{last}_Fold")
        if match.spread is not None:
            name = match.spread.name.rpartition("/")[2]
            block, crops = match.spread.inputs[1:3]
            out = batch_to_space_nd(out, block, crops, name=f"{name}_Fold")
        if correction is not None:
            out = multiply(correction.inverse, out, name="post_conv_mul")
            out = add(out, correction.offset, "correction_add")
        out = add(out, bias, name="add_fold")
    if reroute(out, match.output) == 0:
        raise ValueError(f"Folding batch norms failed, {match.output.name} had no outputs.")


def _statistics(graph: Graph, match: _Match) -> Statistics:
    """What a normalization in training knows; its gradient becomes that of its statistics."""
    norm = match.norm
    mean, spread = (_moving(tensor) for tensor in norm.outputs[1:3])
    if mean is None or spread is None:
        missing = [tensor.name for tensor in norm.outputs[1:3] if _moving(tensor) is None]
        raise ValueError(
            f"Folding batch norm {norm.name} failed: no moving average is made of {missing}"
        )
    # Only its statistics are taken from now on, of which the op has no gradient of its own.
    norm._set_attr("_gradient_op_type", _proto(_GRADIENT))
    scope = norm.name.rpartition("/")[0]
    with graph.name_scope(f"{scope}/" if scope else None):
        count = cast(size(match.layer.outputs[0]) / size(norm.outputs[1]), dtypes.float32)
        # The op tells the variance of the population, and normalizes by that of the sample.
        variance = multiply(norm.outputs[2], (count - 1.0) / count, name="Undo_Bessel_Correction")
    return Statistics(
        norm.inputs[1], norm.outputs[1], variance, mean.average, spread.average,
        norm.attrs["epsilon"], mean.rate, spread.rate,
    )  # fmt: skip


class _Moving(NamedTuple):
    """A moving average, and by how much a batch moves it."""

    average: Tensor
    rate: Tensor


def _moving(statistic: Tensor) -> _Moving | None:
    """The moving average that a statistic goes to: (average - statistic) * rate."""
    for difference in statistic.consumers():
        if difference.type == "Sub" and difference.inputs[1] is statistic:
            for step in difference.outputs[0].consumers():
                if step.type == "Mul" and step.inputs[0] is difference.outputs[0]:
                    return _Moving(difference.inputs[0], step.inputs[1])
    return None


def _proto(text: str) -> Any:
    from opdock.io.protos import AttrValue

    return AttrValue(s=text.encode())


@RegisterGradient(_GRADIENT)
def _statistics_gradient(op: Operation, *grads: Any) -> list[Any]:
    """The gradient of a normalization of which only mean and variance are taken."""
    x, (_, of_mean, of_variance) = op.inputs[0], grads[:3]
    count = cast(size(x) / size(of_mean), dtypes.float32)
    return [
        of_mean / count + 2.0 * of_variance * (x - op.outputs[1]) / (count - 1.0),
        *[None] * (len(op.inputs) - 1),
    ]
