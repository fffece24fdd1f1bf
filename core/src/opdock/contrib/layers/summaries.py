"""Summaries of tensors by what they are, and of whole collections."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable
from typing import Any

from opdock import dtypes
from opdock.graph.nodes.collections import GraphKeys, get_collection
from opdock.graph.nodes.operation import Tensor
from opdock.ops.cast import cast
from opdock.ops.compare import greater, less
from opdock.ops.reduce import reduce_mean
from opdock.ops.summary import histogram, scalar

__all__ = [
    "summarize_activation", "summarize_activations", "summarize_biases", "summarize_collection",
    "summarize_tensor", "summarize_tensors", "summarize_variables", "summarize_weights",
]  # fmt: skip


def summarize_activation(op: Tensor) -> Tensor:
    """A histogram of an activation, and what part of its inputs it cuts off.

    Args:
        op: the result of an activation.
    """
    made = op.op
    if made.type in ("Relu", "Softplus", "Relu6"):
        source = made.inputs[0]
        _part(less(source, cast(0.0, source.dtype)), f"{made.name}/zeros")
    if made.type == "Relu6":
        source = made.inputs[0]
        _part(greater(source, cast(6.0, source.dtype)), f"{made.name}/sixes")
    return histogram(f"{made.name}/activation", op)


def _part(condition: Tensor, tag: str) -> None:
    scalar(tag, reduce_mean(cast(condition, dtypes.float32)))


def summarize_tensor(tensor: Any, tag: str | None = None) -> Tensor | None:
    """A summary of a number, or a histogram of several.

    Args:
        tensor: a tensor or variable.
        tag: the summary's tag; the tensor's name and "_summary" by default.

    Returns:
        The summary; None for strings and booleans.
    """
    if tensor.dtype.base_dtype in (dtypes.string, dtypes.bool):
        return None
    name = tag or f"{tensor.op.name}_summary"
    return scalar(name, tensor) if tensor.shape.ndims == 0 else histogram(name, tensor)


def summarize_tensors(
    tensors: Iterable[Any], summarizer: Callable[[Any], Any] = summarize_tensor
) -> list[Any]:
    """The summaries of several tensors.

    Args:
        tensors: tensors or variables.
        summarizer: makes one of each.
    """
    return [summarizer(tensor) for tensor in tensors]


def summarize_collection(
    collection: str,
    name_filter: str | None = None,
    summarizer: Callable[[Any], Any] = summarize_tensor,
) -> list[Any]:
    """The summaries of what is in a collection.

    Args:
        collection: its name.
        name_filter: a regular expression with which names begin, or None for all.
        summarizer: makes one of each.
    """
    found = get_collection(collection)
    chosen = [o for o in found if name_filter is None or re.match(name_filter, o.op.name)]
    return summarize_tensors(chosen, summarizer)


def summarize_activations(
    name_filter: str | None = None, summarizer: Callable[[Any], Any] = summarize_activation
) -> list[Any]:
    """The summaries of the activations that layers have collected, as `summarize_collection`."""
    return summarize_collection(GraphKeys.ACTIVATIONS, name_filter, summarizer)


summarize_variables = functools.partial(summarize_collection, GraphKeys.GLOBAL_VARIABLES)
summarize_weights = functools.partial(summarize_collection, GraphKeys.WEIGHTS)
summarize_biases = functools.partial(summarize_collection, GraphKeys.BIASES)
