"""The buffer: contiguous elements in device memory under a shape and an element type."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

__all__ = ["Array", "Flag"]


class Array:
    """A tensor in device memory.

    Args:
        data: a pyopencl buffer, from its first byte.
        shape: the dimensions; elements are in row-major order.
        dtype: the NumPy element type.
        lease: what keeps the buffer in use, where it does not do so itself.
    """

    __slots__ = ("__weakref__", "data", "dtype", "lease", "shape")

    def __init__(
        self, data: Any, shape: tuple[int, ...], dtype: np.dtype[Any], lease: Any = None
    ) -> None:
        self.data = data
        self.shape = shape
        self.dtype = dtype
        self.lease = lease

    @property
    def ndim(self) -> int:
        """The rank."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The size in bytes."""
        return self.size * self.dtype.itemsize

    def reshape(self, *shape: int) -> Array:
        """The same memory under another shape of as many elements."""
        return Array(self.data, shape, self.dtype, self.lease)

    def view(self, dtype: np.dtype[Any]) -> Array:
        """The same memory as elements of another type of the same size."""
        return Array(self.data, self.shape, dtype, self.lease)

    def __repr__(self) -> str:
        return f"<OpenCL array {self.shape} {self.dtype}>"


class Flag(Array):
    """A zero of a device's, which a kernel may overwrite to report an error."""

    __slots__ = ()
