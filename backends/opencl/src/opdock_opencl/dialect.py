"""OpenCL C as a dialect: what the common words of the kernels mean in it."""

from __future__ import annotations

from opdock.plugin import codegen
from opdock_ckernels.dialect import TYPES

__all__ = ["OPENCL_C"]

# Without cl_khr_fp16 a half can be loaded and stored, but not declared.
_PRELUDE = """
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#pragma OPENCL FP_CONTRACT OFF
#define KERNEL __kernel
#define GLOBAL __global
#define LOCAL __local
#define INLINE inline __attribute__((always_inline))
#define BARRIER barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)
#define GLOBAL_ID(d) get_global_id(d)
#define LOCAL_ID(d) get_local_id(d)
#define GROUP_ID(d) get_group_id(d)
#define U32X4 (uint4)
#define F32X2 (float2)
#define F64X2 (double2)
typedef char i8;
typedef uchar u8;
typedef short i16;
typedef ushort u16;
typedef int i32;
typedef uint u32;
typedef long i64;
typedef ulong u64;
typedef ulong2 w128;
#define od_mul_hi(a, b) mul_hi(a, b)
#define od_bits_double(v) as_double(v)
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
    function="inline __attribute__((always_inline)) ",
    index="get_global_id(0)",
    prelude=_PRELUDE,
)
"""The dialect; math functions are overloaded, so they have no suffix."""
