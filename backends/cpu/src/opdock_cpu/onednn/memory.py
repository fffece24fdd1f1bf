"""Memory descriptors: the shape, type and layout of what primitives read and write."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from opdock.plugin import DType, dtypes
from opdock_cpu.onednn.api import Api, api
from opdock_cpu.onednn.declarations import Type

__all__ = ["TYPES", "Desc", "activations", "aligned", "any_layout", "cut", "dense", "strided"]

TYPES: Final[dict[DType, int]] = {
    dtypes.float32: Type.F32,
    dtypes.bfloat16: Type.BF16,
    dtypes.float16: Type.F16,
    dtypes.int32: Type.S32,
    dtypes.int8: Type.S8,
    dtypes.uint8: Type.U8,
}
"""oneDNN's element types by opdock's."""

_BYTES: Final = {kind: dtype.size for dtype, kind in TYPES.items()}
_ANY_TAG: Final = 1


class Desc:
    """An owned memory descriptor.

    Attributes:
        ptr: oneDNN's object.
        dims: the logical dimensions, empty for one that a primitive chose.
        kind: the element type, 0 for one that a primitive chose.
        strides: those of plain data, in elements; empty for other layouts.
    """

    __slots__ = ("dims", "kind", "ptr", "strides")

    def __init__(
        self, ptr: Any, dims: Sequence[int] = (), kind: int = 0, strides: Sequence[int] = ()
    ) -> None:
        self.ptr = ptr
        self.dims = tuple(dims)
        self.kind = kind
        self.strides = tuple(strides)

    @property
    def size(self) -> int:
        """Bytes of a buffer in this layout; 0 for nothing."""
        return int(api().lib.dnnl_memory_desc_get_size(self.ptr))

    def same(self, other: Desc) -> bool:
        """Whether both lay out the same data equally."""
        return bool(api().lib.dnnl_memory_desc_equal(self.ptr, other.ptr))


def strided(dims: Sequence[int], strides: Sequence[int], kind: int = Type.F32) -> Desc:
    """A descriptor for plain data with strides in elements."""
    a = api()
    ptr = a.make(
        a.lib.dnnl_memory_desc_create_with_strides, len(dims), list(dims), kind, list(strides),
        destroy=a.lib.dnnl_memory_desc_destroy,
    )  # fmt: skip
    return Desc(ptr, dims, kind, strides)


def cut(desc: Desc, axis: int, start: int, size: int) -> tuple[Desc, int]:
    """A range of plain data along a dimension: its descriptor, and where it begins, in bytes."""
    dims = (*desc.dims[:axis], size, *desc.dims[axis + 1 :])
    place = start * desc.strides[axis] * _BYTES[desc.kind]
    return strided(dims, desc.strides, desc.kind), place


def dense(dims: Sequence[int], kind: int = Type.F32) -> Desc:
    """A descriptor for a C-contiguous array."""
    return strided(dims, [math.prod(dims[i + 1 :]) for i in range(len(dims))], kind)


def activations(dims: Sequence[int], first: bool, kind: int = Type.F32) -> Desc:
    """A contiguous array of dims [batch, channels, *space], its channels first or last."""
    if first:
        return dense(dims, kind)
    _, channels, *space = dims
    inner = [math.prod(space[i + 1 :]) * channels for i in range(len(space))]
    return strided(dims, [math.prod(space) * channels, 1, *inner], kind)


def any_layout(dims: Sequence[int], kind: int = Type.F32) -> Desc:
    """A descriptor whose layout the primitive chooses."""
    a = api()
    ptr = a.make(
        a.lib.dnnl_memory_desc_create_with_tag, len(dims), list(dims), kind, _ANY_TAG,
        destroy=a.lib.dnnl_memory_desc_destroy,
    )  # fmt: skip
    return Desc(ptr, dims, kind)


def copied(a: Api, ptr: Any) -> Desc:
    """An owned copy of a descriptor that a primitive descriptor owns."""
    return Desc(a.make(a.lib.dnnl_memory_desc_clone, ptr, destroy=a.lib.dnnl_memory_desc_destroy))


def aligned(size: int) -> npt.NDArray[Any]:
    """An uninitialized buffer of bytes that begins a cache line."""
    raw = np.empty(size + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + size]
