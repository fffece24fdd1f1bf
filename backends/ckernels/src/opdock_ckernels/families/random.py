"""Random tensors: Philox4x32-10, TF's bits for TF's seeds, one block of the stream a work item.

Normals are computed in double precision and rounded, so that every device gives the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from opdock.plugin import (
    FLOATS,
    DType,
    KernelTable,
    NodeSig,
    codegen,
    dtypes,
    philox,
    random_stream,
)
from opdock_ckernels.dialect import TYPES, WORDS
from opdock_ckernels.families.array import HELD
from opdock_ckernels.protocols import Array

__all__ = ["PHILOX", "needs_double", "table", "words_of"]

table = KernelTable()

_MASK32, _MASK64 = (1 << 32) - 1, (1 << 64) - 1

PHILOX = """
INLINE uint4 block(u64 key, u64 low, u64 high, u64 index) {
  low += index;
  high += low < index;
  uint4 c = U32X4((u32)low, (u32)(low >> 32), (u32)high, (u32)(high >> 32));
  u32 k0 = (u32)key, k1 = (u32)(key >> 32);
  for (int r = 0; r < 10; ++r) {
    u32 a = 0xD2511F53u * c.x, b = 0xCD9E8D57u * c.z;
    c = U32X4(od_mul_hi(0xCD9E8D57u, c.z) ^ c.y ^ k0, b,
                od_mul_hi(0xD2511F53u, c.x) ^ c.w ^ k1, a);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c;
}
INLINE float unit(u32 w) { return od_bits_float((w & 0x7FFFFF) | 0x3F800000) - 1.0f; }
#ifdef DOUBLES
INLINE double unit64(u32 high, u32 low) {
  return od_bits_double(((u64)(high & 0xFFFFF) << 32) | low | (u64)0x3FF0000000000000) - 1.0;
}
INLINE float2 pair(u32 first, u32 second) {
  float u1 = fmax(unit(first), 1e-7f), v = (float)(6.283185307179586 * (double)unit(second));
  float u2 = (float)sqrt((double)(-2.0f * (float)log((double)u1)));
  return F32X2((float)sin((double)v) * u2, (float)cos((double)v) * u2);
}
INLINE double2 pair64(uint4 w) {
  double u1 = fmax(unit64(w.x, w.y), 1e-7), v = 6.283185307179586 * unit64(w.z, w.w);
  double u2 = sqrt(-2.0 * log(u1));
  return F64X2(sin(v) * u2, cos(v) * u2);
}
#endif
"""

# Group: outputs a work item. DRAW fills v[] from one block.
_FILL = """
KERNEL void fill(GLOBAL T* y, i64 n, u64 key, u64 low, u64 high) {
  i64 g = GLOBAL_ID(0);
  if (g * GROUP >= n) return;
  uint4 w = block(key, low, high, g);
  A v[GROUP];
  DRAW
  for (int j = 0; j < GROUP; ++j) if (g * GROUP + j < n) { STORE(g * GROUP + j, v[j]) }
}
"""
# A group draws from a stretch of its own until it is full of values within two deviations.
_TRUNCATED = """
KERNEL void fill(GLOBAL T* y, i64 n, u64 key, u64 low, u64 high) {
  i64 g = GLOBAL_ID(0);
  if (g * GROUP >= n) return;
  int have = 0;
  for (u64 step = 0; have < GROUP; ++step) {
    uint4 w = block(key, low, high, (u64)g * (GROUP * 64) + step);
    A v[GROUP];
    DRAW
    for (int j = 0; j < GROUP && have < GROUP; ++j)
      if (fabs(v[j]) < 2) {
        if (g * GROUP + have < n) { STORE(g * GROUP + have, v[j]) }
        ++have;
      }
  }
}
"""
_WORDS = "v[0] = {0}; v[1] = {1}; v[2] = {2}; v[3] = {3};"
_NORMAL = "float2 p = pair(w.x, w.y), q = pair(w.z, w.w); " + _WORDS.format(
    "p.x", "p.y", "q.x", "q.y"
)
_NORMAL64 = "double2 p = pair64(w); v[0] = p.x; v[1] = p.y;"
_UNIFORM64 = "v[0] = unit64(w.x, w.y); v[1] = unit64(w.z, w.w);"


def _uniform(dtype: DType) -> str:
    if dtype is dtypes.float64:
        return _UNIFORM64
    unit = {
        dtypes.float32: "unit({})",
        dtypes.float16: "({} & 0x3FF) / 1024.0f",
        dtypes.bfloat16: "({} & 0x7F) / 128.0f",
    }[dtype]
    return _WORDS.format(*(unit.format(f"w.{i}") for i in "xyzw"))


# ---------------------------------------------------------------- streams
def words_of(place: tuple[int, int]) -> tuple[np.uint64, ...]:
    """A key and a counter as kernels take them: key, lower and upper half of the counter."""
    key, counter = place
    return tuple(np.uint64(v) for v in (key, counter & _MASK64, counter >> 64))


# ---------------------------------------------------------------- floats
def _filler(sig: NodeSig) -> Callable[[tuple[int, ...], tuple[int, int]], Array]:
    device, dtype = sig.device, sig.out_dtypes[0]
    wide = dtype is dtypes.float64
    body = _FILL
    if "Uniform" in sig.op:
        draw = _uniform(dtype)
    else:
        draw = _NORMAL64 if wide else _NORMAL
        body = _TRUNCATED if "Truncated" in sig.op else _FILL
    group = 2 if wide else 4
    store = device.dialect.store(dtype, "y", "(i)", "(v)")
    parts = [
        codegen.helpers(device.dialect, store),
        f"#define T {TYPES[dtype.name]}", f"#define A {device.dialect.computed(dtype)}",
        f"#define GROUP {group}", f"#define STORE(i, v) {store}",
        "#define DOUBLES" if device.has_double else "", PHILOX, body.replace("DRAW", draw),
    ]  # fmt: skip
    kernel = device.kernel("\n".join(parts), "fill")

    def fill(shape: tuple[int, ...], place: tuple[int, int]) -> Array:
        out: Array = device.allocate(shape, dtype.np)
        device.launch(kernel, -(-out.size // group), out, np.int64(out.size), *words_of(place))
        return out

    return fill


def needs_double(sig: NodeSig) -> bool | str:
    """Whether the device has the precision in which distributions are computed."""
    if getattr(sig.device, "has_double", True):
        return True
    return "normals have the same bits everywhere only with double precision"


@table.binder("RandomUniform", dtype=FLOATS, host_inputs=("shape",))
@table.binder(
    "RandomStandardNormal", "TruncatedNormal", dtype=FLOATS, host_inputs=("shape",),
    when=needs_double,
)  # fmt: skip
def stateful(sig: NodeSig) -> Callable[[Any], Array]:
    """The next stretch of the node's stream."""
    fill, stream = _filler(sig), random_stream(sig)

    def run(shape: Any) -> Array:
        dims = philox.draw_shape(shape)
        return fill(dims, stream.reserve(math.prod(dims) * philox.RESERVED))

    return run


@table.binder("StatelessRandomUniform", dtype=FLOATS, host_inputs=("shape", "seed"))
@table.binder(
    "StatelessRandomNormal", "StatelessTruncatedNormal", dtype=FLOATS,
    host_inputs=("shape", "seed"), when=needs_double,
)  # fmt: skip
def stateless(sig: NodeSig) -> Callable[[Any, Any], Array]:
    """A function of the seed."""
    fill = _filler(sig)
    return lambda shape, seed: fill(philox.draw_shape(shape), philox.stateless_place(seed))


# ---------------------------------------------------------------- integers
_INTS = frozenset({dtypes.int32, dtypes.int64})
_INTEGERS = """
KERNEL void fill(GLOBAL T* y, i64 n, u64 key, u64 low, u64 high, T span, T first) {
  i64 g = GLOBAL_ID(0);
  if (g * GROUP >= n) return;
  uint4 w = block(key, low, high, g);
  T v[GROUP];
  DRAW
  for (int j = 0; j < GROUP; ++j) if (g * GROUP + j < n) y[g * GROUP + j] = v[j] % span + first;
}
"""
_DRAW64 = "v[0] = w.x | (u64)w.y << 32; v[1] = w.z | (u64)w.w << 32;"


def _integers(sig: NodeSig) -> Callable[..., Array]:
    device, dtype = sig.device, sig.out_dtypes[0]
    wide = dtype is dtypes.int64
    group, unsigned = (2, np.uint64) if wide else (4, np.uint32)
    draw = _DRAW64 if wide else _WORDS.format("w.x", "w.y", "w.z", "w.w")
    source = PHILOX + _INTEGERS.replace("DRAW", draw)
    kernel = device.kernel(source, "fill", T="u64" if wide else "u32", GROUP=group)
    mask = _MASK64 if wide else _MASK32

    def fill(shape: tuple[int, ...], place: tuple[int, int], low: Any, high: Any) -> Array:
        first, span = philox.int_range(low, high, math.prod(shape))
        out: Array = device.allocate(shape, dtype.np)
        if out.size:
            limits = (unsigned(span & mask), unsigned(first & mask))
            device.launch(
                kernel, -(-out.size // group), out, np.int64(out.size), *words_of(place), *limits
            )
        return out

    return fill


@table.binder("RandomUniformInt", Tout=_INTS, host_inputs=("shape", "minval", "maxval"))
def random_uniform_int(sig: NodeSig) -> Callable[[Any, Any, Any], Array]:
    """Integers of the next stretch of the node's stream."""
    fill, stream = _integers(sig), random_stream(sig)

    def run(shape: Any, low: Any, high: Any) -> Array:
        dims = philox.draw_shape(shape)
        return fill(dims, stream.reserve(math.prod(dims) * philox.RESERVED), low, high)

    return run


@table.binder(
    "StatelessRandomUniformInt", dtype=_INTS, host_inputs=("shape", "seed", "minval", "maxval")
)
def stateless_uniform_int(sig: NodeSig) -> Callable[[Any, Any, Any, Any], Array]:
    """Integers that are a function of the seed."""
    fill = _integers(sig)

    def run(shape: Any, seed: Any, low: Any, high: Any) -> Array:
        return fill(philox.draw_shape(shape), philox.stateless_place(seed), low, high)

    return run


# ---------------------------------------------------------------- shuffle
# The swaps are one after another by nature: one work item does them all.
_SHUFFLE = """
KERNEL void order(GLOBAL int* y, int n, u64 key, u64 low, u64 high) {
  if (GLOBAL_ID(0)) return;
  for (int i = 0; i < n; ++i) y[i] = i;
  for (int g = 0; g * 4 < n - 1; ++g) {
    uint4 w = block(key, low, high, g);
    u32 v[4];
    v[0] = w.x; v[1] = w.y; v[2] = w.z; v[3] = w.w;
    for (int k = 0; k < 4 && g * 4 + k < n - 1; ++k) {
      int i = g * 4 + k, j = i + v[k] % (u32)(n - i), kept = y[i];
      y[i] = y[j];
      y[j] = kept;
    }
  }
}
KERNEL void rows(GLOBAL const T* x, GLOBAL const int* order, GLOBAL T* y, i64 n, i64 inner) {
  i64 i = GLOBAL_ID(0);
  if (i < n) y[i] = x[order[i / inner] * inner + i % inner];
}
"""


@table.binder("RandomShuffle", T=HELD)
def random_shuffle(sig: NodeSig) -> Callable[[Array], Array]:
    """The rows in another order."""
    device, stream = sig.device, random_stream(sig)
    word = WORDS[sig.in_dtypes[0].size]

    def run(x: Array) -> Array:
        length = x.shape[0] if x.ndim else 1
        out: Array = device.allocate(x.shape, x.dtype)
        if x.size <= 1 or length <= 1:
            device.copy_into(x, out, 0)
            return out
        order: Array = device.allocate((length,), np.dtype(np.int32))
        place = words_of(stream.reserve(-(-(length - 1) // 4)))
        kernels = [device.kernel(PHILOX + _SHUFFLE, k, T=word) for k in ("order", "rows")]
        device.launch(kernels[0], 1, order, np.int32(length), *place)
        sizes = (np.int64(x.size), np.int64(x.size // length))
        device.launch(kernels[1], x.size, x, order, out, *sizes)
        return out

    return run
