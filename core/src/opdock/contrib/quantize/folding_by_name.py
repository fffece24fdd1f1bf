"""Folds batch normalizations that several ops make up, which are known by their names alone.

`tf.contrib.layers.batch_norm(fused=False)` makes them: BatchNorm/batchnorm_1/mul_1 and so on.
"""

from __future__ import annotations

from typing import Final

from opdock.contrib.quantize.folding import Correction, Statistics, copied, corrections
from opdock.contrib.quantize.wiring import (
    batch_norm_groups,
    context_of,
    endpoint_activation,
    reroute,
)
from opdock.graph.nodes.graph import Graph
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import device
from opdock.graph.variables.variable_scope import get_variable_scope
from opdock.ops.arithmetic import add, multiply
from opdock.ops.array import reshape
from opdock.ops.fill import ones
from opdock.ops.spacebatch import batch_to_space_nd

__all__ = ["fold_unfused_batch_norms"]

_NORM: Final = "BatchNorm/batchnorm_1/"


def fold_unfused_batch_norms(graph: Graph, is_training: bool, delay: int | None = None) -> None:
    """Folds all such normalizations of a graph in place; see `rewrites.fold_batch_norms`."""
    for scope in batch_norm_groups(graph):
        shifted = graph.get_operation_by_name(f"{scope}{_NORM}add_1")
        if not shifted.outputs[0].consumers():
            continue
        folded = _folded(graph, scope, shifted, is_training, delay)
        user = endpoint_activation(graph, scope)
        if user is None:
            # A bypass adds in the scope around that of the layer.
            around = context_of(scope.rstrip("/"))
            user = graph.get_operation_by_name(f"{around}/AddV2" if around else "AddV2")
        if reroute(folded, shifted.outputs[0], [user, *_waiting(shifted)]) != 1:
            raise ValueError(f"Unexpected inputs to op: {user.name}")


def _waiting(shifted: Operation) -> list[Operation]:
    """What hands a normalization on once its averages are updated, where a program asked for it."""
    scope = shifted.name.partition(_NORM)[0] + "BatchNorm/"
    return [
        user for user in shifted.outputs[0].consumers()
        if user.type == "Identity" and user.name.startswith(scope)
    ]  # fmt: skip


def _folded(
    graph: Graph, scope: str, shifted: Operation, is_training: bool, delay: int | None
) -> Tensor:
    """What a layer and its normalization give, without the normalization."""
    scaled = shifted.inputs[0].op
    # With a scale, its product with the reciprocal is what everything is multiplied by.
    has_scale = scaled.inputs[1].op.type == "Mul"
    layer, spread = scaled.inputs[0].op, None
    if layer.type == "BatchToSpaceND":
        layer, spread = layer.inputs[0].op, layer
    if layer.type not in ("Conv2D", "MatMul", "DepthwiseConv2dNative"):
        raise ValueError(f"Cannot handle operation of type: {layer.type}")
    weights, factor = layer.inputs[1], scaled.inputs[1]
    correction: Correction | None = None
    if is_training:
        correction = corrections(_statistics(graph, scope, has_scale), scope, delay)
    scale = None if correction is None else correction.scale
    if layer.type == "DepthwiseConv2dNative":
        by_channel = weights.get_shape().as_list()[2:]
        factor = reshape(factor, by_channel, f"{scope}scale_reshape")
        if scale is not None:
            scale = reshape(scale, by_channel, f"{scope}correction_reshape")
    with device(scaled.device):
        if scale is not None:
            weights = multiply(scale, weights, f"{scope}correction_mult")
        weights = multiply(weights, factor, name=f"{scope}mul_fold")
    out = copied(layer, (layer.inputs[0], weights), f"{layer.name}_Fold")
    if spread is not None:
        block, crops = spread.inputs[1:3]
        out = batch_to_space_nd(out, block, crops, name=f"{spread.name}_Fold")
    with device(layer.device):
        if correction is not None:
            out = multiply(correction.inverse, out, f"{scope}post_conv_mul")
            out = add(out, correction.offset, f"{scope}correction_add")
        return add(out, shifted.inputs[1], name=f"{scope}add_fold")


def _statistics(graph: Graph, scope: str, has_scale: bool) -> Statistics:
    """The tensors of a normalization, by their names.

    Raises:
        ValueError: there is none of a name.
    """
    read = "/read"
    gamma = "BatchNorm/gamma"
    if get_variable_scope().use_resource:
        read = "/Read/ReadVariableOp"
        gamma += read

    def find(name: str) -> Tensor:
        return _named(graph, f"BatchNorm/{name}", scope)

    average = find(f"moving_mean{read}")
    return Statistics(
        gamma=_named(graph, gamma, scope) if has_scale else ones(average.shape),
        mean=find("moments/Squeeze"), variance=find("moments/Squeeze_1"),
        moving_mean=average, moving_variance=find(f"moving_variance{read}"),
        epsilon=find("batchnorm_1/add/y"), mean_decay=find("AssignMovingAvg/decay"),
        variance_decay=find("AssignMovingAvg_1/decay"),
    )  # fmt: skip


def _named(graph: Graph, suffix: str, scope: str) -> Tensor:
    """The first result of the op with a name's ending that has most of a scope's words."""
    wanted = set(scope.split("/"))
    shared = {
        op: len(wanted & set(op.name.split("/")))
        for op in graph.get_operations() if op.name.endswith(suffix)
    }  # fmt: skip
    found = {op: count for op, count in shared.items() if count or not scope}
    if not found:
        raise ValueError(f"Error folding unfused batch norms: no op '{suffix}' in '{scope}'")
    tensor: Tensor = max(found, key=lambda op: found[op]).outputs[0]
    return tensor
