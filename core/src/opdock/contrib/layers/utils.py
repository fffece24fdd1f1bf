"""What TensorFlow's layers of contrib, and programs with layers like them, share.

Outputs that are collected have aliases, the names of the scopes that made them, by which programs
look up what lies between the layers of a network.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

from opdock import dtypes
from opdock.graph.nodes.collections import add_to_collections, get_collection
from opdock.graph.nodes.constant_value import constant_value as known_value
from opdock.graph.nodes.graph import get_default_graph
from opdock.graph.nodes.operation import Tensor
from opdock.graph.variables.variable import Variable
from opdock.ops.control import cond
from opdock.shapes import TensorShape

__all__ = [
    "NamedOutputs", "append_tensor_alias", "channel_dimension", "collect_named_outputs",
    "constant_value", "convert_collection_to_dict", "gather_tensors_aliases", "get_tensor_aliases",
    "get_variable_collections", "last_dimension", "n_positive_integers", "smart_cond",
    "static_cond", "two_element_tuple",
]  # fmt: skip

_T = TypeVar("_T")


class NamedOutputs(NamedTuple):
    """Outputs with the name that they have."""

    name: str
    outputs: Any


# ------------------------------------------------------------------------- aliases of outputs
def collect_named_outputs(collections: Any, alias: str, outputs: _T) -> _T:
    """Adds a tensor to collections, if there are any, under one more alias.

    Args:
        collections: a name of a collection, or several.
        alias: the alias; a "/" at its end is left off.
        outputs: the tensor.

    Returns:
        The tensor.
    """
    if collections:
        append_tensor_alias(outputs, alias)
        add_to_collections(collections, outputs)
    return outputs


def append_tensor_alias(tensor: Any, alias: str) -> Any:
    """Gives a tensor one more alias, in its attribute `aliases`, and returns it."""
    tensor.aliases = [*getattr(tensor, "aliases", ()), alias.removesuffix("/")]
    return tensor


def get_tensor_aliases(tensor: Any) -> list[str]:
    """The aliases of a tensor: its name, without ":0", where it was given none."""
    given: list[str] | None = getattr(tensor, "aliases", None)
    return [tensor.name.removesuffix(":0")] if given is None else given


def gather_tensors_aliases(tensors: Iterable[Any]) -> list[str]:
    """The aliases of several tensors."""
    return [alias for tensor in tensors for alias in get_tensor_aliases(tensor)]


def convert_collection_to_dict(collection: Any, clear_collection: bool = False) -> dict[str, Any]:
    """The tensors of a collection by their aliases.

    Args:
        collection: its name.
        clear_collection: whether nothing is left in it.
    """
    found = {a: tensor for tensor in get_collection(collection) for a in get_tensor_aliases(tensor)}
    if clear_collection:
        get_default_graph().clear_collection(collection)
    return found


# --------------------------------------------------------------------------------- conditions
def constant_value(value_or_tensor_or_var: Any, dtype: Any = None) -> Any:
    """The value of a constant; None for a variable, or where it is known only in a step.

    Args:
        value_or_tensor_or_var: a value, a tensor or a variable.
        dtype: the type that a tensor has to have.

    Raises:
        ValueError: there is nothing, or a tensor of another type.
    """
    given = value_or_tensor_or_var
    if given is None:
        raise ValueError("value_or_tensor_or_var cannot be None")
    if not isinstance(given, (Tensor, Variable)):
        return given
    if dtype and given.dtype != dtypes.as_dtype(dtype):
        raise ValueError(f"It has the wrong type {given.dtype} instead of {dtype}")
    return None if isinstance(given, Variable) else known_value(given)


def static_cond(pred: Any, fn1: Callable[[], Any], fn2: Callable[[], Any]) -> Any:
    """What one of two functions returns.

    Raises:
        TypeError: one of them cannot be called.
    """
    for name, function in (("fn1", fn1), ("fn2", fn2)):
        if not callable(function):
            raise TypeError(f"{name} must be callable.")
    return fn1() if pred else fn2()


def smart_cond(
    pred: Any, fn1: Callable[[], Any], fn2: Callable[[], Any], name: str | None = None
) -> Any:
    """`tf.cond`, decided now where the condition is known now.

    Args:
        pred: a bool, or a scalar bool tensor.
        fn1, fn2: what is returned where it holds, and where it does not.
        name: a name for the conditional, if there is one.
    """
    known = constant_value(pred)
    if known is not None:
        return static_cond(known, fn1, fn2)
    return cond(pred, true_fn=fn1, false_fn=fn2, name=name)


# ------------------------------------------------------------------------------- arguments
def get_variable_collections(variables_collections: Any, name: str) -> Any:
    """The collections for a layer's variables of a kind.

    Args:
        variables_collections: collections for all of them, or a dict of such by kind.
        name: the kind: "weights", "biases", ...
    """
    if isinstance(variables_collections, Mapping):
        return variables_collections.get(name)
    return variables_collections


def _dimension(shape: Any, dim: int, min_rank: int) -> int:
    dims = TensorShape(shape).dims
    if dims is None:
        raise ValueError("dims of shape must be known but is None")
    if len(dims) < min_rank:
        raise ValueError(f"rank of shape must be at least {min_rank} not: {len(dims)}")
    value: int | None = dims[dim].value
    if value is None:
        raise ValueError(f"dimension {dim} of shape must be known but is None: {shape}")
    return value


def channel_dimension(shape: Any, data_format: str, min_rank: int = 1) -> int:
    """The number of channels.

    Args:
        shape: a static shape.
        data_format: "channels_first" or "channels_last".
        min_rank: the rank that it has at least.

    Raises:
        ValueError: it is not known, or the rank is less.
    """
    return _dimension(shape, 1 if data_format == "channels_first" else -1, min_rank)


def last_dimension(shape: Any, min_rank: int = 1) -> int:
    """The size of the last dimension.

    Raises:
        ValueError: it is not known, or the rank is less than `min_rank`.
    """
    return _dimension(shape, -1, min_rank)


def two_element_tuple(int_or_tuple: Any) -> tuple[Any, Any]:
    """An int twice, or two as they are.

    Raises:
        ValueError: it is neither an int, two of them, nor a shape of two dimensions.
    """
    given = int_or_tuple
    if isinstance(given, (list, tuple)):
        if len(given) != 2:
            raise ValueError(f"Must be a list with 2 elements: {given}")
        return int(given[0]), int(given[1])
    if isinstance(given, int):
        return given, given
    if isinstance(given, TensorShape) and given.ndims == 2:
        return given[0], given[1]
    raise ValueError("Must be an int, a list with 2 elements or a TensorShape of length 2")


def n_positive_integers(n: int, value: Any) -> tuple[int, ...]:
    """A positive integer n times, or n of them as they are.

    Raises:
        ValueError: n is no positive integer, there are not n, or one is not positive.
    """
    count = int(n)
    if count < 1 or count != n:
        raise ValueError("n must be a positive integer")
    told = f"Expected sequence of {n} positive integers, but received {value!r}"
    try:
        found = (int(value),) * count
    except (TypeError, ValueError):
        try:
            found = tuple(int(one) for one in value)
        except (TypeError, ValueError) as error:
            raise ValueError(told) from error
    if len(found) != count:
        raise ValueError(told)
    for one in found:
        if one < 1:
            raise ValueError(f"expected positive integer, but received {one}")
    return found
