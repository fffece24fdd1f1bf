"""The words that kernels are written in: the common ground of OpenCL C and CUDA C.

A kernel's source uses these words and plain C; each backend's dialect defines them in its prelude:

    KERNEL GLOBAL LOCAL INLINE BARRIER          qualifiers, and a barrier of the work group
                                                for its memory of both kinds
    GLOBAL_ID(d) LOCAL_ID(d) GROUP_ID(d)        the place of a work item
    i8 u8 i16 u16 i32 u32 i64 u64 w128          elements in memory; w128 is moved, never computed
    U32X4(a, b, c, d) F32X2(a, b) F64X2(a, b)   short vectors: fields x, y, z, w
    od_load_half od_store_half ...              16-bit floats, see `codegen.Dialect`
    od_bits_double(u64) od_mul_hi(u32, u32)     a number from its bits; a product's upper half

Mathematical functions carry no suffix for single precision: both dialects overload them.
"""

from __future__ import annotations

from typing import Final

__all__ = ["TYPES", "WORDS"]

TYPES: Final = {
    "bool": "u8", "int8": "i8", "uint8": "u8", "int16": "i16", "uint16": "u16", "int32": "i32",
    "uint32": "u32", "int64": "i64", "uint64": "u64", "float16": "half", "bfloat16": "u16",
    "float32": "float", "float64": "double",
}  # fmt: skip
"""The type of each element in memory, by the DType's name."""

WORDS: Final = {1: "u8", 2: "u16", 4: "u32", 8: "u64", 16: "w128"}
"""The type that moves elements of a size in bytes, whatever they mean."""
