"""CUDA C as a dialect: what the common words of the kernels mean in it.

The text is complete: NVRTC compiles it without a header of the CUDA toolkit, so nothing but the
compiler's library has to be there.
"""

from __future__ import annotations

from typing import Final

from opdock.plugin import codegen
from opdock_ckernels.dialect import TYPES

__all__ = ["CUDA_C", "OPTIONS"]

OPTIONS: Final = ("-fmad=false", "--std=c++14")
"""How every source is compiled: an expression's products and sums are rounded one by one."""

# 16-bit floats are their bits; the processor converts them, so no cuda_fp16.h is needed.
_PRELUDE = """
#define KERNEL extern "C" __global__
#define GLOBAL
#define LOCAL __shared__
#define INLINE static __device__ __forceinline__
#define BARRIER __syncthreads()
#define GLOBAL_ID(d) od_global_id(d)
#define LOCAL_ID(d) od_local_id(d)
#define GROUP_ID(d) od_group_id(d)
#define U32X4(a, b, c, d) make_uint4(a, b, c, d)
#define F32X2(a, b) make_float2(a, b)
#define F64X2(a, b) make_double2(a, b)
#define restrict __restrict__
typedef signed char i8;
typedef unsigned char u8;
typedef short i16;
typedef unsigned short u16;
typedef int i32;
typedef unsigned int u32;
typedef long long i64;
typedef unsigned long long u64;
typedef ulonglong2 w128;
typedef u16 half;
#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fc00000)
#endif
INLINE i64 od_local_id(int d) { return d == 0 ? threadIdx.x : d == 1 ? threadIdx.y : threadIdx.z; }
INLINE i64 od_group_id(int d) { return d == 0 ? blockIdx.x : d == 1 ? blockIdx.y : blockIdx.z; }
INLINE i64 od_global_id(int d) {
  return od_group_id(d) * (d == 0 ? blockDim.x : d == 1 ? blockDim.y : blockDim.z) + od_local_id(d);
}
#define od_mul_hi(a, b) __umulhi(a, b)
#define od_bits_double(v) __longlong_as_double((i64)(v))
#define od_float_bits(v) ((u32)__float_as_int(v))
#define od_bits_float(v) __int_as_float((int)(v))
#ifdef __CUDACC_RTC__
INLINE float od_half_float(u16 h) {
  float v;
  asm("cvt.f32.f16 %0, %1;" : "=f"(v) : "h"(h));
  return v;
}
INLINE u16 od_float_half(float v) {
  u16 h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(v));
  return h;
}
#endif
#define od_load_half(p, i) od_half_float((p)[i])
#define od_store_half(p, i, v) ((p)[i] = od_float_half(v))
#define od_round_half(v) od_half_float(od_float_half(v))
"""

CUDA_C: Final = codegen.Dialect(
    name="CUDA C",
    types=TYPES,
    kernel='extern "C" __global__ void',
    pointer="",
    function="static __device__ __forceinline__ ",
    index="od_global_id(0)",
    prelude=_PRELUDE,
)
"""The dialect; math functions are overloaded, so they have no suffix."""
