"""The public functions: a graph for training, or for judging, as it will compute in 8 bits."""

from __future__ import annotations

from typing import Final

from opdock.contrib.quantize.folding import fold_fused_batch_norms
from opdock.contrib.quantize.folding_by_name import fold_unfused_batch_norms
from opdock.contrib.quantize.insertion import quantize
from opdock.graph.nodes.graph import Graph, get_default_graph

__all__ = [
    "create_eval_graph", "create_training_graph", "experimental_create_eval_graph",
    "experimental_create_training_graph", "fold_batch_norms",
]  # fmt: skip

_TRAINING: Final = ("Apply", "SparseApply", "ResourceApply", "ResourceSparseApply")


def create_training_graph(input_graph: Graph | None = None, quant_delay: int = 0) -> None:
    """Rewrites a graph in place so that it trains as it will compute in 8 bits.

    Call it before gradients are asked for. A graph that is trained already can begin at once; one
    that is not should reach its accuracy with floats first (`quant_delay`).

    Args:
        input_graph: what to rewrite; the default graph without it.
        quant_delay: steps before weights and activations are rounded.

    Raises:
        ValueError: the graph has ops that train.
    """
    experimental_create_training_graph(input_graph, quant_delay=quant_delay)


def create_eval_graph(input_graph: Graph | None = None) -> None:
    """Rewrites a graph in place so that it computes as it will in 8 bits.

    Args:
        input_graph: what to rewrite; the default graph without it.

    Raises:
        ValueError: the graph has ops that train.
    """
    experimental_create_eval_graph(input_graph)


def experimental_create_training_graph(
    input_graph: Graph | None = None, weight_bits: int = 8, activation_bits: int = 8,
    symmetric: bool = False, quant_delay: int | None = 0, freeze_bn_delay: int | None = None,
    scope: str | None = None,
) -> None:  # fmt: skip
    """`create_training_graph` with more to choose.

    Args:
        input_graph: what to rewrite; the default graph without it.
        weight_bits: bits of weights.
        activation_bits: bits of activations.
        symmetric: whether the ends of ranges lie equally far from 0.
        quant_delay: steps before weights and activations are rounded.
        freeze_bn_delay: steps after which normalization uses the moving mean and variance, and
            these stay.
        scope: the scope to rewrite; all without it.

    Raises:
        ValueError: the graph has ops that train.
    """
    _rewrite(
        input_graph, True, weight_bits, activation_bits, symmetric, quant_delay, freeze_bn_delay,
        scope,
    )  # fmt: skip


def experimental_create_eval_graph(
    input_graph: Graph | None = None, weight_bits: int = 8, activation_bits: int = 8,
    symmetric: bool = False, quant_delay: int | None = None, scope: str | None = None,
) -> None:  # fmt: skip
    """`create_eval_graph` with more to choose; see `experimental_create_training_graph`.

    Args:
        input_graph: what to rewrite; the default graph without it.
        weight_bits: bits of weights.
        activation_bits: bits of activations.
        symmetric: whether the ends of ranges lie equally far from 0.
        quant_delay: steps before weights and activations are rounded.
        scope: the scope to rewrite; all without it.

    Raises:
        ValueError: the graph has ops that train.
    """
    _rewrite(input_graph, False, weight_bits, activation_bits, symmetric, quant_delay, None, scope)


def fold_batch_norms(
    graph: Graph, is_training: bool, freeze_batch_norm_delay: int | None = None
) -> None:
    """Folds batch normalizations into the layers before them, in place.

    Args:
        graph: what to change.
        is_training: whether the normalizations that several ops make up are being trained; fused
            ones say so themselves.
        freeze_batch_norm_delay: steps after which the moving mean and variance are used.

    Raises:
        ValueError: a normalization is not made as `tf.layers` and `tf.contrib.layers` do.
    """
    fold_fused_batch_norms(graph, freeze_batch_norm_delay)
    fold_unfused_batch_norms(graph, is_training, freeze_batch_norm_delay)


def _rewrite(
    graph: Graph | None, is_training: bool, weight_bits: int, activation_bits: int,
    symmetric: bool, quant_delay: int | None, freeze_bn_delay: int | None, scope: str | None,
) -> None:  # fmt: skip
    graph = get_default_graph() if graph is None else graph
    training = {op.type for op in graph.get_operations() if op.type.startswith(_TRAINING)}
    if training:
        raise ValueError(f"Training op found in graph, exiting {training}")
    with graph.as_default():
        fold_batch_norms(graph, is_training, freeze_bn_delay)
        quantize(
            graph, is_training, weight_bits=weight_bits, activation_bits=activation_bits,
            symmetric=symmetric, quant_delay=quant_delay, scope=scope,
        )  # fmt: skip
