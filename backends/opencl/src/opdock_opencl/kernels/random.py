"""Random tensors: Philox4x32-10, TF's bits for TF's seeds, one block of the stream a work item.

Normals are computed in double precision and rounded, so that every device gives the same bits.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from opdock.plugin import FLOATS, DType, KernelTable, NodeSig, codegen, dtypes
from opdock_opencl.array import Array
from opdock_opencl.dialect import OPENCL_C, TYPES

__all__ = ["table"]

table = KernelTable()

_RESERVED = 256  # blocks that TF sets aside for each output element
_MASK32, _MASK64, _MASK128 = (1 << 32) - 1, (1 << 64) - 1, (1 << 128) - 1
_MULTIPLY = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)
_SCRAMBLE = 0x02461E293EC8F720

_PHILOX = """
uint4 block(ulong key, ulong low, ulong high, ulong index) {
  low += index;
  high += low < index;
  uint4 c = (uint4)((uint)low, (uint)(low >> 32), (uint)high, (uint)(high >> 32));
  uint k0 = (uint)key, k1 = (uint)(key >> 32);
  for (int r = 0; r < 10; ++r) {
    uint a = 0xD2511F53u * c.s0, b = 0xCD9E8D57u * c.s2;
    c = (uint4)(mul_hi(0xCD9E8D57u, c.s2) ^ c.s1 ^ k0, b,
                mul_hi(0xD2511F53u, c.s0) ^ c.s3 ^ k1, a);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c;
}
float unit(uint w) { return as_float((w & 0x7FFFFF) | 0x3F800000) - 1.0f; }
#ifdef DOUBLES
double unit64(uint high, uint low) {
  return as_double(((ulong)(high & 0xFFFFF) << 32) | low | 0x3FF0000000000000UL) - 1.0;
}
float2 pair(uint first, uint second) {
  float u1 = fmax(unit(first), 1e-7f), v = (float)(6.283185307179586 * (double)unit(second));
  float u2 = (float)sqrt((double)(-2.0f * (float)log((double)u1)));
  return (float2)((float)sin((double)v) * u2, (float)cos((double)v) * u2);
}
double2 pair64(uint4 w) {
  double u1 = fmax(unit64(w.s0, w.s1), 1e-7), v = 6.283185307179586 * unit64(w.s2, w.s3);
  double u2 = sqrt(-2.0 * log(u1));
  return (double2)(sin(v) * u2, cos(v) * u2);
}
#endif
"""

# Group: outputs a work item. DRAW fills v[] from one block.
_FILL = """
__kernel void fill(__global T* y, long n, ulong key, ulong low, ulong high) {
  long g = get_global_id(0);
  if (g * GROUP >= n) return;
  uint4 w = block(key, low, high, g);
  A v[GROUP];
  DRAW
  for (int j = 0; j < GROUP; ++j) if (g * GROUP + j < n) { STORE(g * GROUP + j, v[j]) }
}
"""
# A group draws from a stretch of its own until it is full of values within two deviations.
_TRUNCATED = """
__kernel void fill(__global T* y, long n, ulong key, ulong low, ulong high) {
  long g = get_global_id(0);
  if (g * GROUP >= n) return;
  int have = 0;
  for (ulong step = 0; have < GROUP; ++step) {
    uint4 w = block(key, low, high, (ulong)g * (GROUP * 64) + step);
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
_NORMAL = "float2 p = pair(w.s0, w.s1), q = pair(w.s2, w.s3); " + _WORDS.format(
    "p.x", "p.y", "q.x", "q.y"
)
_NORMAL64 = "double2 p = pair64(w); v[0] = p.x; v[1] = p.y;"
_UNIFORM64 = "v[0] = unit64(w.s0, w.s1); v[1] = unit64(w.s2, w.s3);"


def _uniform(dtype: DType) -> str:
    if dtype is dtypes.float64:
        return _UNIFORM64
    unit = {
        dtypes.float32: "unit({})",
        dtypes.float16: "({} & 0x3FF) / 1024.0f",
        dtypes.bfloat16: "({} & 0x7F) / 128.0f",
    }[dtype]
    return _WORDS.format(*(unit.format(f"w.s{i}") for i in range(4)))


# ---------------------------------------------------------------- streams
def _host_block(key: int, counter: int) -> list[int]:
    c = [counter >> 32 * i & _MASK32 for i in range(4)]
    k = [key & _MASK32, key >> 32]
    for _ in range(10):
        a, b = _MULTIPLY[0] * c[0], _MULTIPLY[1] * c[2]
        c = [b >> 32 ^ c[1] ^ k[0], b & _MASK32, a >> 32 ^ c[3] ^ k[1], a & _MASK32]
        k = [(v + w) & _MASK32 for v, w in zip(k, _WEYL, strict=True)]
    return c


class _Stream:
    """A stateful node's place in its stream, in one session."""

    def __init__(self, seed: int, seed2: int) -> None:
        self.key = seed & _MASK64
        self._next = (seed2 & _MASK64) << 64
        self._lock = threading.Lock()

    def reserve(self, count: int) -> tuple[int, int]:
        """The key and the counter of the next stretch, `count` outputs long."""
        with self._lock:
            here = self._next
            self._next = (here + count * _RESERVED) & _MASK128
        return self.key, here


def _stream(sig: NodeSig) -> _Stream:
    seed, seed2 = int(sig.attrs["seed"]), int(sig.attrs["seed2"])

    def start() -> _Stream:
        if seed == 0 and seed2 == 0:
            fresh = os.urandom(16)
            return _Stream(*(int.from_bytes(fresh[i : i + 8], "little") for i in (0, 8)))
        return _Stream(seed, seed2)

    if sig.resources is None:
        return start()
    state: _Stream = sig.resources.node_state(f"{sig.name}@opencl", start)
    return state


def _stateless(seed: Any) -> tuple[int, int]:
    if np.shape(seed) != (2,):
        raise codegen.invalid(f"seed must have shape [2], not {list(np.shape(seed))}")
    words = _host_block(_SCRAMBLE, (int(seed[0]) & _MASK64) | (int(seed[1]) & _MASK64) << 64)
    return words[0] | words[1] << 32, (words[2] | words[3] << 32) << 64


def _shape(shape: Any) -> tuple[int, ...]:
    dims = np.asarray(shape)
    if dims.ndim != 1:
        raise codegen.invalid(
            f"shape must be a vector of {{int32,int64}}, got shape {list(dims.shape)}"
        )
    out = tuple(int(d) for d in dims)
    if any(d < 0 for d in out):
        raise codegen.invalid(f"Dimensions must be >= 0, got {list(out)}")
    return out


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
    store = OPENCL_C.store(dtype, "y", "(i)", "(v)")
    parts = [
        codegen.helpers(OPENCL_C, store),
        f"#define T {TYPES[dtype.name]}", f"#define A {OPENCL_C.computed(dtype)}",
        f"#define GROUP {group}", f"#define STORE(i, v) {store}",
        "#define DOUBLES" if device.has_double else "", _PHILOX, body.replace("DRAW", draw),
    ]  # fmt: skip
    kernel = device.kernel("\n".join(parts), "fill")

    def fill(shape: tuple[int, ...], place: tuple[int, int]) -> Array:
        out: Array = device.allocate(shape, dtype.np)
        key, counter = place
        words = (np.uint64(v) for v in (key, counter & _MASK64, counter >> 64))
        device.launch(kernel, -(-out.size // group), out, np.int64(out.size), *words)
        return out

    return fill


def _needs_double(sig: NodeSig) -> bool | str:
    if getattr(sig.device, "has_double", True):
        return True
    return "normals have the same bits everywhere only with double precision"


@table.binder("RandomUniform", dtype=FLOATS, host_inputs=("shape",))
@table.binder(
    "RandomStandardNormal", "TruncatedNormal", dtype=FLOATS, host_inputs=("shape",),
    when=_needs_double,
)  # fmt: skip
def stateful(sig: NodeSig) -> Callable[[Any], Array]:
    """The next stretch of the node's stream."""
    fill, stream = _filler(sig), _stream(sig)

    def run(shape: Any) -> Array:
        dims = _shape(shape)
        return fill(dims, stream.reserve(math.prod(dims)))

    return run


@table.binder("StatelessRandomUniform", dtype=FLOATS, host_inputs=("shape", "seed"))
@table.binder(
    "StatelessRandomNormal", "StatelessTruncatedNormal", dtype=FLOATS,
    host_inputs=("shape", "seed"), when=_needs_double,
)  # fmt: skip
def stateless(sig: NodeSig) -> Callable[[Any, Any], Array]:
    """A function of the seed."""
    fill = _filler(sig)
    return lambda shape, seed: fill(_shape(shape), _stateless(seed))
