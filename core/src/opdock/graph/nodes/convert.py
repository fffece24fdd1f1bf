"""`convert_to_tensor` and the registry of conversions that types of values add to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opdock import dtypes
from opdock.dtypes import DType
from opdock.graph.nodes.constant import constant
from opdock.graph.nodes.contents import convert_by
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.registry import get
from opdock.graph.nodes.scopes import name_scope
from opdock.shapes import Dimension, TensorShape

Conversion = Callable[..., Any]
_CONVERSIONS: list[tuple[int, int, Any, Conversion]] = []
_cache: dict[type, list[Conversion]] = {}


def register_tensor_conversion_function(
    base_type: Any, conversion_func: Conversion, priority: int = 100
) -> None:
    """Adds `conversion_func(value, dtype=None, name=None, as_ref=False)` for a type.

    Args:
        base_type: a type or tuple of types.
        conversion_func: returns a Tensor, or NotImplemented to pass.
        priority: lower numbers are asked first.
    """
    if not (
        isinstance(base_type, type)
        or (isinstance(base_type, tuple) and all(isinstance(t, type) for t in base_type))
    ):
        raise TypeError("base_type must be a type or a tuple of types.")
    if not callable(conversion_func):
        raise TypeError("conversion_func must be callable.")
    _CONVERSIONS.append((priority, len(_CONVERSIONS), base_type, conversion_func))
    _CONVERSIONS.sort(key=lambda c: c[:2])
    _cache.clear()


@extensible
def convert_to_tensor(
    value: Any,
    dtype: Any = None,
    name: str | None = None,
    preferred_dtype: Any = None,
    dtype_hint: Any = None,
) -> Tensor:
    """`value` as a Tensor of the current graph.

    Args:
        value: a Tensor, variable, number, string, array, nested list (of tensors too), ...
        dtype: the element type that must come out.
        name: the name of a node that has to be made.
        preferred_dtype: a type to try first when `dtype` is not given.
        dtype_hint: the same as `preferred_dtype`.

    Raises:
        TypeError: no conversion exists or the type does not fit.
        ValueError: the value is a Tensor of another type, or of another graph.
    """
    wanted = None if dtype is None else dtypes.as_dtype(dtype).base_dtype
    if isinstance(value, Tensor):
        return _check(value, wanted, value)
    preferred = preferred_dtype if preferred_dtype is not None else dtype_hint
    if wanted is None and preferred is not None:
        try:
            return _convert(value, dtypes.as_dtype(preferred), name)
        except (TypeError, ValueError):
            pass  # The hint does not fit the value; its own type decides.
    return _convert(value, wanted, name)


def _check(tensor: Tensor, wanted: DType | None, value: Any) -> Tensor:
    if wanted is not None and tensor._dtype.base_dtype is not wanted:
        raise ValueError(
            f"Tensor conversion requested dtype {wanted.name} for Tensor with dtype "
            f"{tensor._dtype.name}: {value!r}"
        )
    return tensor


def _convert(value: Any, wanted: DType | None, name: str | None) -> Tensor:
    kind = type(value)
    conversions = _cache.get(kind)
    if conversions is None:
        conversions = _cache[kind] = [c for _, _, t, c in _CONVERSIONS if issubclass(kind, t)]
    for conversion in conversions:
        result = conversion(value, dtype=wanted, name=name, as_ref=False)
        if result is not NotImplemented:
            return _check(result, wanted, value)
    if isinstance(value, (list, tuple)) and _holds_tensor(value):
        element = _element_dtype(value)
        if wanted is not None and element is not wanted:
            value = _cast_tensors(value, wanted)
        return _stack(value, wanted or element, name)
    if isinstance(value, Dimension):
        if value.value is None:
            raise ValueError(f"Cannot convert an unknown Dimension to a Tensor: {value}")
        value = int(value)
    elif isinstance(value, TensorShape):
        return _shape_constant(value, wanted, name)
    elif isinstance(value, (list, tuple)) and any(isinstance(v, Dimension) for v in value):
        value = [int(v) if isinstance(v, Dimension) else v for v in value]
    elif not isinstance(
        value, (np.ndarray, np.generic, list, tuple, int, float, complex, str, bytes)
    ):
        value = _last_resort(value, wanted)
    return constant(value, wanted, name=name or "Const")


def _last_resort(value: Any, wanted: DType | None) -> Any:
    if value is None:
        raise ValueError("None values not supported.")
    for method in ("__array__", "__index__", "__float__"):
        if hasattr(value, method):
            return (
                np.asarray(value)
                if method == "__array__"
                else value.__index__()
                if method == "__index__"
                else float(value)
            )
    if isinstance(value, range):
        return list(value)
    if getattr(getattr(value, "DESCRIPTOR", None), "name", "") == "TensorProto":
        return _of_proto(value, wanted)
    if isinstance(value, Operation):
        raise TypeError(
            f"Can't convert Operation '{value.name}' to Tensor (target dtype={wanted!r}). An "
            "operation has no value; its outputs are in `outputs`."
        )
    if wanted is not None:
        raise TypeError(
            f"Expected {wanted.name}, got {value!r} of type '{type(value).__name__}' instead."
        )
    raise TypeError(
        f"Failed to convert object of type {type(value)} to Tensor. Contents: {value!r}. "
        "Consider casting elements to a supported type."
    )


def _of_proto(value: Any, wanted: DType | None) -> np.ndarray[Any, Any]:
    """What an attribute of a NodeDef holds, say; it has its type, and is not made another."""
    from opdock.io.tensor_proto import make_ndarray

    array = make_ndarray(value)
    got = dtypes.as_dtype(value.dtype)
    if wanted is not None and got is not wanted:
        raise ValueError(
            f"Tensor conversion requested dtype {wanted.name} for a TensorProto of {got.name}"
        )
    return array


def _shape_constant(value: TensorShape, wanted: DType | None, name: str | None) -> Tensor:
    if not value.is_fully_defined():
        raise ValueError(f"Cannot convert a partially known TensorShape to a Tensor: {value}")
    if wanted is not None and wanted not in (dtypes.int32, dtypes.int64):
        raise TypeError(f"Cannot convert a TensorShape to dtype {wanted.name}.")
    entries: list[Any] = value.as_list()
    big = next((d for d in entries if d > 2**31 - 1), None)
    if big is not None and wanted is dtypes.int32:
        raise ValueError(f"Cannot convert a TensorShape to int32: a dimension is too large ({big})")
    return constant(
        entries,
        wanted or (dtypes.int32 if big is None else dtypes.int64),
        [len(entries)],
        name or "shape_as_tensor",
    )


def shape_to_tensor(
    s: TensorShape, dtype: Any = None, name: str | None = None, as_ref: bool = False
) -> Tensor:
    """A static shape as a constant vector, as TF's registered conversion makes it.

    Args:
        s: a fully defined shape.
        dtype: int32 or int64; the smaller one that holds the shape by default.
        name: the constant's name.
        as_ref: not used.

    Raises:
        ValueError: the shape is not fully defined.
        TypeError: another dtype.
    """
    return _shape_constant(s, None if dtype is None else dtypes.as_dtype(dtype), name)


def _holds_tensor(value: Sequence[Any]) -> bool:
    for item in value:
        if isinstance(item, Tensor) or getattr(item, "_is_tensor_like", False):
            return True
        if isinstance(item, (list, tuple)) and _holds_tensor(item):
            return True
    return False


def _element_dtype(value: Sequence[Any]) -> DType | None:
    for item in value:
        if isinstance(item, (list, tuple)):
            found = _element_dtype(item)
        elif isinstance(item, Tensor) or getattr(item, "_is_tensor_like", False):
            found = dtypes.as_dtype(item.dtype).base_dtype
        else:
            found = None
        if found is not None:
            return found
    return None


def _cast_tensors(value: Any, wanted: DType) -> Any:
    """A nested list whose tensors are cast: its first one has another type than is wanted."""
    if isinstance(value, (list, tuple)):
        return [_cast_tensors(v, wanted) for v in value]
    if isinstance(value, Tensor) or getattr(value, "_is_tensor_like", False):
        tensor = convert_to_tensor(value)
        return tensor if tensor._dtype.base_dtype is wanted else get("Cast")(tensor, DstT=wanted)
    return value


def _stack(value: Sequence[Any], element: DType | None, name: str | None) -> Tensor:
    """A nested list with tensors among its leaves: a tree of Pack ops, each naming its parts."""
    with name_scope(name or "packed", None, [v for v in value if isinstance(v, Tensor)]) as scope:
        items = [
            _stack(v, element, str(i))
            if isinstance(v, (list, tuple)) and _holds_tensor(v)
            else convert_to_tensor(v, None if isinstance(v, Tensor) else element, str(i))
            for i, v in enumerate(value)
        ]
        for item in items:
            if element is not None and item._dtype.base_dtype is not element:
                raise TypeError(
                    f"Cannot convert a list containing a tensor of dtype {item._dtype.name} to "
                    f"{element.name} (Tensor is: {item!r})"
                )
        packed: Tensor = get("Pack")(items, axis=0, name=scope)
    return packed


def convert_n_to_tensor(
    values: Sequence[Any], dtype: Any = None, name: str | None = None, preferred_dtype: Any = None
) -> list[Tensor]:
    """Each of `values` as a Tensor."""
    return [
        convert_to_tensor(v, dtype, None if name is None else f"{name}_{i}", preferred_dtype)
        for i, v in enumerate(values)
    ]


convert_by(convert_to_tensor)
