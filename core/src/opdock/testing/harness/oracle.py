"""Asking the oracle: attributes with defaults, widened inputs, results as the op declares them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.dtypes import DType
from opdock.testing.harness.case import Failure
from opdock.testing.reference._registry import reference_for, widen

__all__ = ["as_storage", "expected_outputs", "flatten", "oracle_attrs", "reference_value"]

Array = npt.NDArray[Any]


def flatten(values: Any) -> list[Any]:
    """Nested lists and tuples as one list."""
    if isinstance(values, (list, tuple)):
        return [item for value in values for item in flatten(value)]
    return [values]


def oracle_attrs(attrs: Mapping[str, Any]) -> dict[str, Any]:
    """A node's attributes in plain Python and NumPy."""
    return {name: _plain(value) for name, value in attrs.items() if not name.startswith("_")}


def _plain(value: Any) -> Any:
    if isinstance(value, DType):
        base = value.base_dtype
        return base.np[0] if base.is_quantized else base.np
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value


def reference_value(op: str, attrs: Mapping[str, Any], inputs: Sequence[Any]) -> list[Any]:
    """The oracle's outputs, flattened, in its own wide types.

    Raises:
        Failure: there is no oracle, or it raised.
    """
    fn = reference_for(op)
    if fn is None:
        raise Failure(f"{op} has no reference in opdock.testing.reference")
    wide = [[widen(v) for v in x] if isinstance(x, (list, tuple)) else widen(x) for x in inputs]
    try:
        with np.errstate(all="ignore"):
            return flatten(fn(dict(attrs), *wide))
    except Exception as error:
        raise Failure(f"the reference of {op} raised {type(error).__name__}: {error}") from error


def expected_outputs(values: Sequence[Any], declared: Sequence[DType]) -> list[Array]:
    """The oracle's outputs in the declared element types.

    Raises:
        Failure: their number differs from the op's.
    """
    if len(values) != len(declared):
        raise Failure(f"the reference gives {len(values)} outputs, the op has {len(declared)}")
    return [_cast(v, d.base_dtype) for v, d in zip(values, declared, strict=True)]


def _cast(value: Any, dtype: DType) -> Array:
    if dtype.name == "string":
        out = np.asarray(value, object)
        flat = [v.encode() if isinstance(v, str) else v for v in out.reshape(-1)]
        cast = np.empty(len(flat), object)
        cast[:] = flat
        return cast.reshape(out.shape)
    target = dtype.np[0] if dtype.is_quantized else dtype.np
    with np.errstate(all="ignore"):
        return np.asarray(value).astype(target)


def as_storage(value: Any, dtype: DType) -> Array:
    """A fetched value as a plain array; quantized types as their storage integers."""
    if dtype.base_dtype.name == "string":
        return np.asarray(value, object)
    array = np.asarray(value)
    if dtype.base_dtype.is_quantized and array.dtype.names:
        return array[array.dtype.names[0]]
    if dtype.base_dtype.is_quantized:
        return array.astype(dtype.base_dtype.np[0], copy=False)
    return array
