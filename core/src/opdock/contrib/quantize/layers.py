"""Layers with weights, and what belongs to them: bias, bypass, activation.

weights or folded weights
|
convolution or product
|
[batch_to_space_nd]
|
[correction of a folded batch normalization]
|
[bias]
|
[bypass]
|
activation
|
[bypass after it]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from opdock.api import logging
from opdock.graph.nodes.graph import Graph
from opdock.graph.nodes.operation import Operation, Tensor

__all__ = ["ACTIVATIONS", "RELUS", "Layer", "layers"]

ACTIVATIONS: Final = frozenset({"Relu", "Relu6", "Identity"})
RELUS: Final = frozenset({"Relu", "Relu6"})
_LAYERS: Final = frozenset({"Conv2D", "MatMul", "DepthwiseConv2dNative"})
_SUMS: Final = frozenset({"Add", "AddV2"})
_VARIABLES: Final = frozenset({"Variable", "VariableV2"})
_NORMS: Final = frozenset({"FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"})


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer as far as it is known.

    Attributes:
        op: the convolution or product.
        weights: what it multiplies by.
        bias: the op that adds a bias.
        bypass: the sum with what goes around the layer.
        activation: the op whose results are to be rounded.
        post_bypass: such a sum behind the activation.
    """

    op: Operation
    weights: Tensor
    bias: Operation | None = None
    bypass: Operation | None = None
    activation: Operation | None = None
    post_bypass: Operation | None = None


Finder = Callable[[Operation], Layer | None]


def layers(graph: Graph) -> list[Layer]:
    """The layers of a graph, each once, with as much of what follows as belongs to it."""
    ops = graph.get_operations()
    found: dict[Operation, Layer] = {}
    for layer in _all(ops, _post_bypass):
        found.setdefault(layer.op, layer)
    for layer in _all(ops, _activation):
        if not _feeds_norm(layer.activation):
            found.setdefault(layer.op, layer)
    # A last layer ends in its bias, whose results are rounded.
    for layer in _all(ops, _last):
        found.setdefault(layer.op, Layer(layer.op, layer.weights, activation=layer.bias))
    for layer in _all(ops, _separable):
        found.setdefault(layer.op, layer)
    return list(found.values())


def _all(ops: Iterable[Operation], finder: Finder) -> Iterator[Layer]:
    return (layer for op in ops if (layer := finder(op)) is not None)


def _feeds_norm(activation: Operation | None) -> bool:
    """Whether an Identity leads to a batch normalization alone.

    Once that is folded, it serves to estimate mean and variance, which are not rounded.
    """
    if activation is None or activation.type != "Identity":
        return False
    users = activation.outputs[0].consumers()
    if len(users) != 1 or users[0].type not in _NORMS:
        return False
    logging.info(
        "Skipping quantizing %s, because it is the output of a conv/fc followed by a identity, "
        "feeding a fused batch norm.",
        activation.name,
    )
    return True


# ---------------------------------------------------------------- from the inside out
def _any(ops: Iterable[Operation], finders: Iterable[Finder]) -> Layer | None:
    """What the first that finds something in the first op where it does finds."""
    for op in ops:
        for finder in finders:
            found = finder(op)
            if found is not None:
                return found
    return None


def _sources(op: Operation) -> list[Operation]:
    return [tensor.op for tensor in op.inputs]


def _is_weight(op: Operation) -> bool:
    if op.type in ("ReadVariableOp", "Mul"):
        return True
    if op.type != "Identity":
        return False
    source = op.inputs[0].op
    if source.type == "ConcatV2" and len(source.inputs) == 3:
        source = source.inputs[0].op
        return source.type == "Identity" and source.inputs[0].op.type in _VARIABLES
    if source.type == "Identity":
        source = source.inputs[0].op
    return source.type in _VARIABLES


def _layer(op: Operation) -> Layer | None:
    if op.type not in _LAYERS or len(op.inputs) != 2:
        return None
    weights = next((t for t in reversed(op.inputs) if _is_weight(t.op)), None)
    return None if weights is None else Layer(op, weights)


def _output(op: Operation) -> Layer | None:
    if op.type == "BatchToSpaceND":
        op = op.inputs[0].op
    return _layer(op)


def _folded(op: Operation) -> Layer | None:
    """A bias that came of a batch normalization in training: product * factor + summand + bias."""
    if op.type not in _SUMS:
        return None
    for corrected in _sources(op):
        if corrected.type not in _SUMS:
            continue
        for scaled in _sources(corrected):
            if scaled.type == "Mul":
                found = _any(reversed(_sources(scaled)), [_output])
                if found is not None:
                    return replace(found, bias=op)
    return None


def _norm_identity(op: Operation) -> Layer | None:
    """A normalization whose statistics are updated before its result is taken."""
    return _folded(op.inputs[0].op) if op.type == "Identity" else None


def _bias(op: Operation) -> Layer | None:
    if op.type not in {*_SUMS, "BiasAdd"}:
        return None
    found = _any(_sources(op), [_output])
    return None if found is None else replace(found, bias=op)


def _bypass(op: Operation) -> Layer | None:
    if op.type not in _SUMS:
        return None
    found = _any(_sources(op), [_bias, _folded, _norm_identity])
    return None if found is None else replace(found, bypass=op)


def _activation(op: Operation) -> Layer | None:
    if op.type not in ACTIVATIONS:
        return None
    found = _any(_sources(op), [_bias, _folded, _norm_identity, _bypass, _layer])
    return None if found is None else replace(found, activation=op)


def _post_bypass(op: Operation) -> Layer | None:
    if op.type not in _SUMS:
        return None
    found = _any(reversed(_sources(op)), [_activation])
    return None if found is None else replace(found, post_bypass=op)


def _last(op: Operation) -> Layer | None:
    return _any([op], [_bias, _folded])


def _separable(op: Operation) -> Layer | None:
    """A layer that another one follows at once: its own results are rounded."""
    if op.type not in _LAYERS:
        return None
    found = _any(_sources(op), [_output])
    return None if found is None else replace(found, activation=found.op)
