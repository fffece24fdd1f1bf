"""OpenCL C as a dialect of core's renderer."""

from __future__ import annotations

from opdock.plugin import codegen

__all__ = ["OPENCL_C", "TYPES"]

TYPES = {
    "bool": "uchar", "int8": "char", "uint8": "uchar", "int16": "short", "uint16": "ushort",
    "int32": "int", "uint32": "uint", "int64": "long", "uint64": "ulong", "float16": "half",
    "bfloat16": "ushort", "float32": "float", "float64": "double",
}  # fmt: skip
"""The type of each element in memory."""

# Without cl_khr_fp16 a half can be loaded and stored, but not declared.
_PRELUDE = """
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#pragma OPENCL FP_CONTRACT OFF
#define od_load_half(p, i) vload_half(i, p)
#define od_store_half(p, i, v) vstore_half(v, i, p)
#define od_float_bits(v) as_uint(v)
#define od_bits_float(v) as_float(v)
inline float od_round_half(float v) {
  ushort h;
  vstore_half(v, 0, (half*)&h);
  return vload_half(0, (half*)&h);
}
"""

OPENCL_C = codegen.Dialect(
    name="OpenCL C",
    types=TYPES,
    kernel="__kernel void",
    pointer="__global ",
    function="inline ",
    index="get_global_id(0)",
    prelude=_PRELUDE,
)
"""The dialect; math functions are overloaded, so they have no suffix."""
