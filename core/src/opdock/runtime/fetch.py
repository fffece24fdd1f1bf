"""Fetches and feeds: from what users pass to tensors, and back to the structure they passed."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any

import numpy as np

from opdock import dtypes, shapes
from opdock.graph.nodes.composite import (
    IndexedSlices,
    IndexedSlicesValue,
    SparseTensor,
    SparseTensorValue,
)
from opdock.graph.nodes.graph import Graph
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.runtime.handles import TensorHandle
from opdock.values import to_array

Rebuild = Callable[["list[Any]"], Any]


class FetchPlan:
    """The tensors and operations that a fetch structure stands for, and how to rebuild it.

    Attributes:
        tensors, targets: what has to be computed, each once.
        restore: makes the user's structure of a list with one value per tensor.
    """

    __slots__ = ("restore", "targets", "tensors")

    def __init__(self, graph: Graph, fetches: Any) -> None:
        self.tensors: list[Tensor] = []
        self.targets: list[Operation] = []
        self.restore = self._build(graph, fetches, {})

    # ------------------------------------------------------------ structure
    def _build(self, graph: Graph, fetch: Any, index: dict[Tensor, int]) -> Rebuild:
        if fetch is None:
            raise TypeError(f"Fetch argument {fetch!r} has invalid type {type(fetch)!r}")
        if isinstance(fetch, (list, tuple)):
            parts = [self._build(graph, f, index) for f in fetch]
            return _sequence(type(fetch), parts)
        if isinstance(fetch, Mapping):
            keys = list(fetch)
            built = [self._build(graph, fetch[k], index) for k in keys]
            kind: Any = type(fetch)
            return lambda values: _mapping(kind, keys, [b(values) for b in built])
        if hasattr(type(fetch), "__attrs_attrs__"):
            names = [a.name for a in type(fetch).__attrs_attrs__]
            built = [self._build(graph, getattr(fetch, n), index) for n in names]
            cls: Any = type(fetch)
            return lambda values: cls(*[b(values) for b in built])
        if isinstance(fetch, SparseTensor):
            return self._composite(
                graph, [fetch.indices, fetch.values, fetch.dense_shape], SparseTensorValue, index
            )
        if isinstance(fetch, IndexedSlices):
            items = [fetch.values, fetch.indices]
            if fetch.dense_shape is not None:
                items.append(fetch.dense_shape)
            return self._composite(
                graph, items,
                lambda v, i, d=None: IndexedSlicesValue(v, i, d), index,
            )  # fmt: skip
        if hasattr(fetch, "_composite_value"):
            make = fetch._composite_value
            return self._composite(graph, fetch._composite_parts(), _packer(make), index)
        for base, expand in _FETCHED_TYPES.items():
            if isinstance(fetch, base):
                items, contract = expand(fetch)
                return self._composite(graph, list(items), _packer(contract), index)
        return self._leaf(graph, fetch, index)

    def _composite(
        self, graph: Graph, items: list[Any], make: Callable[..., Any], index: dict[Tensor, int]
    ) -> Rebuild:
        built = [self._leaf(graph, t, index) for t in items]
        return lambda values: make(*[b(values) for b in built])

    def _leaf(self, graph: Graph, fetch: Any, index: dict[Tensor, int]) -> Rebuild:
        try:
            element = graph.as_graph_element(fetch)
        except TypeError as e:
            raise TypeError(
                f"Fetch argument {fetch!r} has invalid type {type(fetch)!r}, must be a "
                f"string or Tensor. ({e})"
            ) from None
        except (ValueError, KeyError) as e:
            raise ValueError(
                f"Fetch argument {fetch!r} cannot be interpreted as a Tensor. ({e})"
            ) from None
        if not graph.is_fetchable(element):
            op = element if isinstance(element, Operation) else element.op
            raise ValueError(
                f"Operation {op.name!r} has been marked as not fetchable. Typically this happens "
                "when it is defined in another function or code block. Use return values, explicit "
                "Python locals or TensorFlow collections to access it."
            )
        if isinstance(element, Operation):
            if element not in self.targets:
                self.targets.append(element)
            return lambda values: None
        if element not in index:
            index[element] = len(self.tensors)
            self.tensors.append(element)
        return operator.itemgetter(index[element])


def has_conversion(fetch: Any) -> bool:
    """Whether a user's function says what a fetch stands for."""
    return isinstance(fetch, tuple(_FETCHED_TYPES))


def _packer(contract: Callable[[list[Any]], Any]) -> Callable[..., Any]:
    return lambda *values: contract(list(values))


_FETCHED_TYPES: dict[type, Callable[[Any], tuple[Any, Callable[[list[Any]], Any]]]] = {}
_FED_TYPES: dict[type, Callable[[Any, Any], Any]] = {}
_ANNOUNCED_TYPES: dict[type, Callable[[Any], list[Any]]] = {}


def register_session_run_conversion_functions(
    tensor_type: type,
    fetch_function: Callable[[Any], tuple[list[Any], Callable[[list[Any]], Any]]] | None = None,
    feed_function: Callable[[Any, Any], list[tuple[Any, Any]]] | None = None,
    feed_function_for_partial_run: Callable[[Any], list[Any]] | None = None,
) -> None:
    """Lets `Session.run` fetch and feed objects of a user's type.

    Args:
        tensor_type: the type.
        fetch_function: object to (list of tensors, function from their values to the result).
        feed_function: (object, fed value) to pairs (tensor, value).
        feed_function_for_partial_run: object to the tensors that are fed in the place of it.

    Raises:
        ValueError: the type is registered already.
    """
    if any(issubclass(tensor_type, t) for t in (*_FETCHED_TYPES, *_FED_TYPES)):
        raise ValueError(f"{tensor_type} has already been registered so ignore it.")
    if fetch_function is not None:
        _FETCHED_TYPES[tensor_type] = fetch_function
    if feed_function is not None:
        _FED_TYPES[tensor_type] = feed_function
    if feed_function_for_partial_run is not None:
        _ANNOUNCED_TYPES[tensor_type] = feed_function_for_partial_run


def _sequence(kind: Any, parts: list[Rebuild]) -> Rebuild:
    if kind is list:
        return lambda values: [p(values) for p in parts]
    if hasattr(kind, "_fields"):
        return lambda values: kind(*[p(values) for p in parts])
    return lambda values: kind([p(values) for p in parts])


def _mapping(kind: Any, keys: list[Any], values: list[Any]) -> Any:
    pairs = zip(keys, values, strict=True)
    if not issubclass(kind, MutableMapping):
        return kind(pairs)
    made = kind()  # what else it is made of, as a defaultdict is, nobody knows
    made.update(pairs)
    return made


# ---------------------------------------------------------------- feeds
def feed_items(graph: Graph, feed_dict: Any) -> list[tuple[Tensor, Any]]:
    """`feed_dict` as (tensor, value) pairs, composites taken apart.

    Raises:
        TypeError: a key is no tensor.
        ValueError: a key names no tensor of the graph, or may not be fed.
    """
    out: list[tuple[Tensor, Any]] = []
    for key, value in feed_dict.items():
        if isinstance(key, SparseTensor):
            # The shape may be left out where it is a constant.
            out += zip((key.indices, key.values, key.dense_shape), value, strict=False)
            continue
        if isinstance(key, IndexedSlices):
            tensors = [key.values, key.indices] + (
                [key.dense_shape] if key.dense_shape is not None else []
            )
            out += zip(tensors, value, strict=False)
            continue
        if hasattr(key, "_composite_feed"):
            out += key._composite_feed(value)
            continue
        if isinstance(key, tuple):
            out += feed_items(graph, dict(zip(key, value, strict=True)))
            continue
        expand = next((f for t, f in _FED_TYPES.items() if isinstance(key, t)), None)
        if expand is not None:
            out += [(_feed_tensor(graph, k), v) for k, v in expand(key, value)]
            continue
        out.append((_feed_tensor(graph, key), value))
    return out


def announced_feeds(graph: Graph, feeds: Any) -> set[Tensor]:
    """The tensors that keys of a feed_dict to come stand for.

    Raises:
        TypeError: a key is no tensor.
        ValueError: a key names no tensor of the graph, or may not be fed.
    """
    found: set[Tensor] = set()
    for key in feeds:
        expand = next((f for t, f in _ANNOUNCED_TYPES.items() if isinstance(key, t)), None)
        if expand is not None:
            found |= announced_feeds(graph, expand(key))
        elif isinstance(key, SparseTensor):
            found |= {key.indices, key.values, key.dense_shape}
        elif isinstance(key, IndexedSlices):
            parts = (key.values, key.indices, key.dense_shape)
            found |= {part for part in parts if part is not None}
        elif hasattr(key, "_composite_feed"):
            found |= set(key._composite_parts())
        elif isinstance(key, tuple):
            found |= announced_feeds(graph, key)
        else:
            found.add(_feed_tensor(graph, key))
    return found


def _feed_tensor(graph: Graph, key: Any) -> Tensor:
    try:
        tensor: Tensor = graph.as_graph_element(key, allow_operation=False)
    except (TypeError, ValueError, KeyError) as e:
        text = e.args[0] if e.args else str(e)
        raise TypeError(f"Cannot interpret feed_dict key as Tensor: {text}") from None
    if not graph.is_feedable(tensor):
        raise ValueError(f"Tensor {tensor} may not be fed.")
    return tensor


def feed_array(tensor: Tensor, value: Any, any_shape: bool = False) -> Any:
    """`value` as an array of the tensor's type and a shape that fits it.

    Args:
        tensor: what is fed.
        value: what it is fed.
        any_shape: whether the shape may be another one.

    Raises:
        TypeError: the value is a tensor.
        ValueError: the shape does not fit, or the elements do not convert.
    """
    if isinstance(value, Tensor):
        raise TypeError(
            "The value of a feed cannot be a tf.Tensor object. Acceptable feed values include "
            f"Python scalars, strings, lists, numpy ndarrays. For reference, the tensor object was "
            f"{value} which was passed to the feed with key {tensor}."
        )
    wanted = tensor._dtype.base_dtype
    if isinstance(value, TensorHandle):
        value = value.handle if wanted is dtypes.string else value._fed_value()
    if isinstance(value, int) and not _holds(wanted, value):
        raise TypeError(
            f"Type of feed value {value} with type {type(value)} is not compatible with Tensor "
            f"type {wanted.as_numpy_dtype}. Try explicitly setting the type of the feed tensor to "
            "a larger type (e.g. int64)."
        )
    if wanted is dtypes.string:
        array = to_array(value, wanted)
    elif wanted is dtypes.resource or wanted is dtypes.variant:
        return value
    else:
        try:
            array = _as_array(value, wanted)
        except (ValueError, TypeError) as e:
            kind = TypeError if isinstance(e, TypeError) else ValueError
            raise kind(f"Cannot feed {value!r} to {tensor}: {e}") from None
    if not any_shape and not shapes.is_compatible(tensor._shape, array.shape):
        raise ValueError(
            f"Cannot feed value of shape {array.shape} for Tensor {tensor.name!r}, which has shape "
            f"'{shapes.TensorShape(tensor._shape)}'"
        )
    return array


def _holds(dtype: dtypes.DType, number: int) -> bool:
    """Whether the type has this number: a float type may have to round it."""
    if dtype is dtypes.string:
        return False
    if not dtype.is_numpy_compatible or dtype.is_quantized:
        return True
    if dtype.is_integer:
        limits = np.iinfo(dtype.np)
        return int(limits.min) <= number <= int(limits.max)
    try:
        return complex(dtype.np.type(number)) == number
    except OverflowError:
        return False


def _as_array(value: Any, wanted: dtypes.DType) -> Any:
    if wanted.is_quantized:
        plain = np.asarray(value)
        return plain if plain.dtype == wanted.np else plain.astype(wanted.np[0]).view(wanted.np)
    if isinstance(value, np.ndarray) and value.dtype != wanted.np:
        with np.errstate(invalid="ignore"):
            return value.astype(wanted.np)
    try:
        return np.asarray(value, wanted.np)
    except OverflowError:
        return np.asarray(value).astype(wanted.np)
