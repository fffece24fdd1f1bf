"""The variables of a statement that becomes a part of the graph, and what they may hold."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from opdock import dtypes, shapes
from opdock.dtypes import DType
from opdock.graph.nodes.composite import SparseTensor
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.graph import get_default_graph
from opdock.graph.nodes.operation import Tensor, is_tensor
from opdock.graph.nodes.scopes import executing_eagerly
from opdock.ops.composed.effects import after, in_order
from opdock.ops.rewriting.undefined import Undefined, UndefinedReturnValue
from opdock.ops.support import common_shapes
from opdock.shapes import Shape
from opdock.util import nest
from opdock.values import to_array

__all__ = ["can_be_staged", "check_alike", "decides", "with_effects", "with_tensors"]

_PLAIN = (bool, numbers.Number, str, bytes, np.ndarray, np.generic)


def decides(value: Any) -> bool:
    """Whether a condition is known when the graph runs only.

    Where operations run as they are made, Python itself can look at any tensor.
    """
    return is_tensor(value) and not isinstance(value, SparseTensor) and not executing_eagerly()


def can_be_staged(value: Any) -> bool:
    """Whether a variable's value can be handed from node to node; None and functions cannot."""
    if isinstance(value, (Undefined, UndefinedReturnValue)):
        return False
    leaves = nest.flatten(value, expand_composites=True)
    return all(isinstance(leaf, _PLAIN) or is_tensor(leaf) for leaf in leaves)


def with_effects(body: Callable[..., Any]) -> Callable[..., Any]:
    """The function of a branch or a turn whose results wait for its effects, in their order."""

    def run(*args: Any) -> Any:
        graph = get_default_graph()
        before = len(graph.get_operations())
        result = body(*args)
        return after(in_order(graph.get_operations()[before:]), with_tensors(result))

    return run


def with_tensors(result: Any) -> Any:
    """What a function returned, with tensors in the place of numbers, strings and arrays."""
    if not any(isinstance(leaf, _PLAIN) for leaf in nest.flatten(result)):
        return result
    return nest.map_structure(
        lambda leaf: convert_to_tensor(leaf) if isinstance(leaf, _PLAIN) else leaf, result
    )


def check_alike(
    names: Sequence[str], ones: Sequence[Any], others: Sequence[Any], where: tuple[str, str],
    narrower: bool = False,
) -> None:  # fmt: skip
    """Checks that variables have the same structure and types in two places.

    Args:
        names: of the variables.
        ones, others: their values here and there.
        where: what these places are, for messages.
        narrower: whether the others' shapes have to be those of the first, or less open.

    Raises:
        TypeError: a structure or a type differs.
        ValueError: a shape does.
    """
    for name, one, other in zip(names, ones, others, strict=True):
        try:
            nest.assert_same_structure(one, other, expand_composites=True)
        except (TypeError, ValueError) as e:
            raise TypeError(
                f'"{name}" does not have the same nested structure {where[0]} and {where[1]}.\n\n'
                f"{e}"
            ) from None
        pairs = zip(
            nest.flatten(one, expand_composites=True), nest.flatten(other, expand_composites=True),
            strict=True,
        )  # fmt: skip
        for first, second in pairs:
            _check_pair(name, first, second, where, narrower)


def _check_pair(name: str, first: Any, second: Any, where: tuple[str, str], narrower: bool) -> None:
    one, other = _kind(first), _kind(second)
    if one is None or other is None:
        return
    if one.dtype is not other.dtype:
        raise TypeError(
            f'"{name}" has dtype {one.dtype.name} {where[0]}, but dtype {other.dtype.name} '
            f"{where[1]}. Where control flow depends on tensors, types must stay the same."
        )
    if narrower and not common_shapes.covers(one.shape, other.shape):
        raise ValueError(
            f'"{name}" has shape {shapes.TensorShape(one.shape)} {where[0]}, but shape '
            f"{shapes.TensorShape(other.shape)} {where[1]}. Where control flow depends on "
            "tensors, shapes must stay the same or become more specific."
        )


class _Kind(NamedTuple):
    dtype: DType
    shape: Shape


def _kind(leaf: Any) -> _Kind | None:
    """The type and shape of a tensor, or of what becomes one."""
    if isinstance(leaf, Tensor):
        return _Kind(leaf.dtype.base_dtype, leaf.raw_shape)
    if not isinstance(leaf, _PLAIN):
        return None
    array = to_array(leaf, None)
    return _Kind(dtypes.as_dtype(array.dtype), array.shape)
