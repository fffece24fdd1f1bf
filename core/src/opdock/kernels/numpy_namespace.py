"""NumPy as the array API standard has it.

`array_api_compat.numpy` says that as well, but imports all of NumPy, with its tools for tests and
for Fortran. Most names mean the same in NumPy and in the standard, so it is imported for the others
alone, when one is first asked for.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from types import MappingProxyType, ModuleType
from typing import Any, Final

import numpy as np

__all__ = ["NATIVE", "WRAPPED", "NumpyNamespace"]

NATIVE: Final = frozenset({
    "arange", "asarray", "empty", "empty_like", "eye", "full", "full_like", "linspace", "matmul",
    "matrix_transpose", "ones", "ones_like", "permute_dims", "tensordot", "zeros", "zeros_like",
})  # fmt: skip
"""What array_api_compat wraps for the sake of releases before NumPy 2.1, or of other libraries."""

WRAPPED: Final = frozenset({
    "UniqueAllResult", "UniqueCountsResult", "UniqueInverseResult", "__array_api_version__",
    "__array_namespace_info__", "argsort", "ceil", "clip", "count_nonzero", "cumulative_prod",
    "cumulative_sum", "fft", "finfo", "floor", "iinfo", "linalg", "nonzero", "sign", "sort", "std",
    "take_along_axis", "trunc", "unique_all", "unique_counts", "unique_inverse", "unique_values",
    "var",
})  # fmt: skip
"""What means something else in NumPy, or takes other arguments."""

_FOLLOWS: Final = str(getattr(np, "__array_api_version__", "")) >= "2023.12"
"""Whether NumPy follows the standard on its own, but for what is wrapped."""


class NumpyNamespace(ModuleType):
    """NumPy's functions and types by the standard's names, each found when it is first asked for.

    Args:
        name: the module's name.
        parts: what the namespace has instead, or beyond: by name, what makes it.
    """

    # What a namespace that traces has, which kernels ask for in every step: NumPy's has values.
    is_traced = opaque = None

    def __init__(
        self, name: str, parts: Mapping[str, Callable[[], Any]] = MappingProxyType({})
    ) -> None:
        super().__init__(name, self.__doc__)
        self._parts = parts

    def __getattr__(self, name: str) -> Any:
        found = self._found(name)
        # From now on an attribute: to come here each time would cost more than many a kernel.
        setattr(self, name, found)
        return found

    def _found(self, name: str) -> Any:
        if name in self._parts:
            return self._parts[name]()
        if name.startswith("_") and name not in WRAPPED:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        if name in _OWN:
            return _OWN[name]
        return getattr(np if _FOLLOWS and name not in WRAPPED else standard(), name)


def standard() -> Any:
    """The wrapped namespace; NumPy itself where array_api_compat is not installed."""
    try:
        return importlib.import_module("array_api_compat.numpy")
    except ModuleNotFoundError:
        return np


def _astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
    """The array in another type; unlike NumPy's function it takes 0-d results that are scalars."""
    return x.astype(dtype=dtype, copy=copy)


def _reshape(x: Any, /, shape: Any, *, copy: bool | None = None) -> Any:
    """The array in another shape; NumPy's function takes longer to find the array's method."""
    if type(x) is np.ndarray and copy is None:
        return x.reshape(shape)
    return (np if _FOLLOWS else standard()).reshape(x, shape, copy=copy)


_OWN: Final = {"astype": _astype, "reshape": _reshape}
