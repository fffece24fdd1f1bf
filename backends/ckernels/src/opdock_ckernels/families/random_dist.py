"""Samples of given distributions: categorical, gamma, Poisson.

Each output of gamma and Poisson owns a stretch of the stream and takes as much of it as its
rejection loop needs, so a work item needs nobody else's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from opdock.plugin import REALS, DType, KernelTable, NodeSig, codegen, dtypes, philox, random_stream
from opdock_ckernels.dialect import TYPES
from opdock_ckernels.families.random import PHILOX, needs_double, words_of
from opdock_ckernels.protocols import Array

__all__ = ["table"]

table = KernelTable()

_INDEX = frozenset({dtypes.int32, dtypes.int64})
_GAMMA = frozenset({dtypes.float16, dtypes.float32, dtypes.float64})

# ---------------------------------------------------------------- categorical
_CATEGORICAL = """
KERNEL void totals(GLOBAL const T* x, GLOBAL double* y, i64 rows, i64 classes) {
  i64 r = GLOBAL_ID(0);
  if (r >= rows) return;
  double top = -INFINITY, total = 0;
  for (i64 j = r * classes; j < (r + 1) * classes; ++j) {
    double v = (double)LOAD(j);
    if (v > top && v < INFINITY) top = v;
  }
  for (i64 j = r * classes; j < (r + 1) * classes; ++j) {
    double v = (double)LOAD(j);
    if (fabs(v) < INFINITY) total += exp(v - top);
    y[j] = total;
  }
}
KERNEL void choose(GLOBAL const double* totals, GLOBAL O* y, i64 n, i64 count, i64 classes,
                   u64 key, u64 low, u64 high) {
  i64 i = GLOBAL_ID(0);
  if (i >= n) return;
  uint4 w = block(key, low, high, i / 2);
  GLOBAL const double* row = totals + i / count * classes;
  double target = (i % 2 ? unit64(w.z, w.w) : unit64(w.x, w.y)) * row[classes - 1];
  i64 first = 0, last = classes;
  while (first < last) {
    i64 middle = (first + last) / 2;
    if (row[middle] <= target) first = middle + 1; else last = middle;
  }
  y[i] = (O)first;
}
"""


def _categorical(sig: NodeSig) -> Callable[[Array, int, tuple[int, int]], Array]:
    device, dtype, out_type = sig.device, sig.in_dtypes[0], sig.out_dtypes[0]
    text = _CATEGORICAL.replace("LOAD(j)", device.dialect.load(dtype, "x", "(j)"))
    source = codegen.helpers(device.dialect, text) + "#define DOUBLES\n" + PHILOX + text
    macros = {"T": TYPES[dtype.name], "O": TYPES[out_type.name]}
    totals, choose = (device.kernel(source, k, **macros) for k in ("totals", "choose"))

    def sample(logits: Array, count: int, place: tuple[int, int]) -> Array:
        rows, classes = logits.shape
        out: Array = device.allocate((rows, count), out_type.np)
        if out.size:
            sums: Array = device.allocate(logits.shape, np.dtype(np.float64))
            device.launch(totals, rows, logits, sums, np.int64(rows), np.int64(classes))
            sizes = (np.int64(v) for v in (out.size, count, classes))
            device.launch(choose, out.size, sums, out, *sizes, *words_of(place))
        return out

    return sample


@table.binder(
    "Multinomial", T=REALS, output_dtype=_INDEX, host_inputs=("num_samples",), when=needs_double
)
def multinomial(sig: NodeSig) -> Callable[[Array, Any], Array]:
    """Class numbers by the next stretch of the node's stream."""
    sample, stream = _categorical(sig), random_stream(sig)

    def run(logits: Array, num_samples: Any) -> Array:
        rows, count = philox.sample_counts(logits, num_samples)
        place = stream.reserve(rows * (-(-count // 4) * 4) * 2 * philox.RESERVED)
        return sample(logits, count, place)

    return run


@table.binder(
    "StatelessMultinomial", T=REALS, output_dtype=_INDEX, host_inputs=("num_samples", "seed"),
    when=needs_double,
)  # fmt: skip
def stateless_multinomial(sig: NodeSig) -> Callable[[Array, Any, Any], Array]:
    """Class numbers that are a function of the seed."""
    sample = _categorical(sig)

    def run(logits: Array, num_samples: Any, seed: Any) -> Array:
        _, count = philox.sample_counts(logits, num_samples)
        return sample(logits, count, philox.stateless_place(seed))

    return run


# ---------------------------------------------------------------- rejection sampling
# A pair of draws is used up from its second on.
_REJECTION = """
#define UNIFORM(r) \\
  if (!uniforms) { \\
    uint4 w = block(key, low, high, next++); \\
    first = unit64(w.x, w.y); second = unit64(w.z, w.w); uniforms = 2; \\
  } \\
  double r = --uniforms ? second : first;
#define NORMAL(r) \\
  if (!normals) { bell = pair64(block(key, low, high, next++)); normals = 2; } \\
  double r = --normals ? bell.y : bell.x;
#define DRAWS \\
  u64 next = (u64)i * RESERVED; \\
  int uniforms = 0, normals = 0; \\
  double first = 0, second = 0; \\
  double2 bell = F64X2(0, 0);
"""
_SAMPLES = {
    # Marsaglia and Tsang's squeeze; a shape below one is boosted, a shape of one exponential.
    "RandomGamma": """
  if (p == 1) { UNIFORM(u) value = -log(1 - u); }
  else if (p > 0) {
    double d = p + (p < 1 ? 2.0 / 3 : -1.0 / 3), c = 1.0 / 3 / sqrt(d);
    for (;;) {
      NORMAL(x)
      double v = 1 + c * x;
      if (!(v > 0)) continue;
      v = v * v * v;
      UNIFORM(u)
      double square = x * x;
      if (u < 1 - 0.0331 * square * square || log(u) < 0.5 * square + d * (1 - v + log(v))) {
        value = d * v;
        break;
      }
    }
    if (p < 1) { UNIFORM(u) value *= pow(u, 1 / p); }
  }
""",
    # Knuth's product of uniforms below a rate of ten, Hoermann's transformed rejection above.
    "RandomPoissonV2": """
  if (p >= 0 && p < 10) {
    double limit = exp(-p), product = 1;
    for (value = 0; ; value += 1) {
      UNIFORM(u)
      product *= u;
      if (product <= limit) break;
    }
  } else if (p >= 10 && p < INFINITY) {
    double b = 0.931 + 2.53 * sqrt(p), a = -0.059 + 0.02483 * b;
    double inverse = 1.1239 + 1.1328 / (b - 3.4);
    for (;;) {
      UNIFORM(r)
      double u = r - 0.5;
      UNIFORM(v)
      double room = 0.5 - fabs(u), k = floor((2 * a / room + b) * u + p + 0.43);
      value = k;
      if (room >= 0.07 && v <= 0.9277 - 3.6224 / (b - 2)) break;
      if (k < 0 || (room < 0.013 && v > room)) continue;
      if (log(v * inverse / (a / (room * room) + b)) <= k * log(p) - p - lgamma(k + 1)) break;
    }
  }
""",
}
_DRAW = """
KERNEL void draw(GLOBAL const P* x, GLOBAL T* y, i64 n, i64 each, i64 count, u64 key, u64 low,
                 u64 high) {
  i64 i = GLOBAL_ID(0);
  if (i >= n) return;
  double p = (double)LOAD(i / each), value = NAN;
  DRAWS
  BODY
  STORE(i % each * count + i / each, value)
}
"""


def _sampler(sig: NodeSig, out: DType) -> Callable[[Any, Array], Array]:
    device, dtype, stream = sig.device, sig.in_dtypes[1], random_stream(sig)
    dialect: codegen.Dialect = device.dialect
    macros = [
        f"#define RESERVED {philox.RESERVED}", "#define DOUBLES", f"#define P {TYPES[dtype.name]}",
        f"#define T {TYPES[out.name]}", f"#define LOAD(i) {dialect.load(dtype, 'x', '(i)')}",
        f"#define STORE(i, v) {dialect.store(out, 'y', '(i)', f'({dialect.computed(out)})(v)')}",
    ]  # fmt: skip
    parts = [*macros, PHILOX, _REJECTION, _DRAW.replace("BODY", _SAMPLES[sig.op])]
    text = "\n".join(parts)
    kernel = device.kernel(codegen.helpers(dialect, text) + "\n" + text, "draw")

    def run(shape: Any, parameter: Array) -> Array:
        dims = philox.draw_shape(shape)
        each = math.prod(dims)
        result: Array = device.allocate((*dims, *parameter.shape), out.np)
        if result.size:
            place = words_of(stream.reserve(result.size * philox.RESERVED))
            sizes = (np.int64(v) for v in (result.size, each, parameter.size))
            device.launch(kernel, result.size, parameter, result, *sizes, *place)
        return result

    return run


@table.binder("RandomGamma", T=_GAMMA, host_inputs=("shape",), when=needs_double)
def random_gamma(sig: NodeSig) -> Callable[[Any, Array], Array]:
    """Gamma samples of each shape parameter."""
    return _sampler(sig, sig.out_dtypes[0])


@table.binder(
    "RandomPoissonV2", R=_GAMMA | _INDEX, dtype=_GAMMA | _INDEX, host_inputs=("shape",),
    when=needs_double,
)  # fmt: skip
def random_poisson(sig: NodeSig) -> Callable[[Any, Array], Array]:
    """Counts of each rate."""
    return _sampler(sig, sig.out_dtypes[0])
