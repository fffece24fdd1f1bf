"""Core's kernels that leave elements in place: shapes, arrays, lists, staging, data, printing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opdock.plugin import KernelTable, NodeSig, as_dtype, codegen, errors
from opdock_ckernels.families.array import HELD
from opdock_ckernels.families.joining import join
from opdock_ckernels.pointwise import formula
from opdock_ckernels.protocols import Array
from opdock_ckernels.strided import strides_of, take, zeros

__all__ = ["table"]


class _Functions:
    """What those kernels ask of an array namespace, for the arrays of one device."""

    float32 = np.float32

    def __init__(self, sig: NodeSig) -> None:
        self._device = sig.device

    def asarray(self, x: Array) -> Array:
        """The array itself."""
        return x

    def reshape(self, x: Array, shape: Sequence[int]) -> Array:
        """The same memory under another shape."""
        return x.reshape(*shape)

    def zeros(self, shape: tuple[int, ...], dtype: Any) -> Array:
        """Zeros."""
        return zeros(self._device, shape, np.dtype(dtype))

    def add(self, a: Array, b: Array) -> Array:
        """The sum of two arrays of one shape."""
        dtype = as_dtype(a.dtype)
        if dtype not in codegen.RENDERED:
            raise errors.UnimplementedError(None, None, f"this device adds no {dtype.name} values")
        out: Array = formula(self._device, "a + b", {"a": dtype, "b": dtype}, dtype)(a, b)
        return out

    def concat(self, parts: Sequence[Array], axis: int) -> Array:
        """The arrays one after the other."""
        return join(self._device, parts, axis)

    def stack(self, parts: Sequence[Array], axis: int) -> Array:
        """The arrays as rows of a new one."""
        return join(self._device, [p.reshape(1, *p.shape) for p in parts], axis)

    def rows(self, x: Array, start: int, stop: int) -> Array:
        """Some of the rows, as an array of their own."""
        steps = strides_of(x.shape)
        return take(self._device, x, (stop - start, *x.shape[1:]), steps, start * steps[0])


table = KernelTable()
_SHAPES = ("Reshape", "ExpandDims", "Squeeze", "EnsureShape")
_DATA = (
    "data_elements", "data_functions", "data_iterators", "data_multi_device", "data_sources",
    "data_stats",
)  # fmt: skip
_LISTS = ("staging", "tensor_array", "tensor_list")
for _family in ("array", "check", "printing", *_DATA, *_LISTS):
    for _kernel in codegen.portable_family(_family, _Functions, HELD):
        if _family != "array" or _kernel.op in _SHAPES:
            table.add(_kernel)
