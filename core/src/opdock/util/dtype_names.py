"""What TF's `framework.dtypes` has beside the types: their `_ref` twins and groups of them."""

from __future__ import annotations

from typing import Any

from opdock import dtypes

DType = dtypes.DType
TYPE_TO_STRING = {int(t): t.name for t in dtypes.ALL}
QUANTIZED_DTYPES = dtypes.QUANTIZED


def bfloat16_type() -> Any:
    """NumPy's scalar type of bfloat16."""
    return dtypes.bfloat16.as_numpy_dtype


def __getattr__(name: str) -> Any:
    """The type `float32_ref` and its like."""
    base = name.removesuffix("_ref")
    if base != name and hasattr(dtypes, base):
        return getattr(dtypes, base).as_ref
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
