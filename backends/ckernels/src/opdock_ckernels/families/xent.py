"""Softmax and cross entropies, each in one kernel: a work-group takes a row, an item on a CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opdock.plugin import FLOATS, KernelTable, NodeSig, checks, codegen, dtypes
from opdock_ckernels.dialect import TYPES
from opdock_ckernels.pointwise import broadcast_shape
from opdock_ckernels.protocols import Array
from opdock_ckernels.strided import strides_of, take

__all__ = ["table"]

table = KernelTable()

# The largest element and the sum of powers of a row, known to every item of its group.
_ROW = """
#define GROUP_FOLD(result, mine, STEP) \\
  scratch[lane] = mine; \\
  BARRIER; \\
  for (int half_ = L / 2; half_; half_ /= 2) { \\
    if (lane < half_) { A u = scratch[lane], w = scratch[lane + half_]; scratch[lane] = STEP; } \\
    BARRIER; \\
  } \\
  A result = scratch[0]; \\
  BARRIER;

KERNEL void row(GLOBAL const T* x, PARAMS int n) {
  LOCAL A scratch[L];
  int lane = LOCAL_ID(0);
  i64 r = GROUP_ID(0), at = r * n;
  A mine = -INFINITY;
  for (int j = lane; j < n; j += L) { A v = X(at + j); mine = v > mine || v != v ? v : mine; }
  GROUP_FOLD(top, mine, u > w || u != u ? u : w)
  mine = 0;
  for (int j = lane; j < n; j += L) mine += exp(X(at + j) - top);
  GROUP_FOLD(total, mine, u + w)
  BODY
}
"""
_SOFTMAX = "for (int j = lane; j < n; j += L) { STORE_Y(at + j, exp(X(at + j) - top) / total) }"
_LOG = "for (int j = lane; j < n; j += L) { STORE_Y(at + j, X(at + j) - top - log(total)) }"
# As in TF, a class of no probability spoils the loss though its label is 0.
_XENT = """
  mine = 0;
  for (int j = lane; j < n; j += L) {
    A label = P(at + j), shifted = X(at + j) - top;
    mine += label * (log(total) - shifted);
    STORE_Y(at + j, exp(shifted) / total - label)
  }
  GROUP_FOLD(sum, mine, u + w)
  if (lane == 0) { STORE_LOSS(r, sum) }
"""
_SPARSE = """
  i64 label = p[r];
  if (label < 0 || label >= n) { if (lane == 0) *flag = (int)r + 1; return; }
  for (int j = lane; j < n; j += L) {
    STORE_Y(at + j, exp(X(at + j) - top) / total - (j == label ? (A)1 : (A)0))
  }
  if (lane == 0) { STORE_LOSS(r, log(total) - (X(at + label) - top)) }
"""

# The same by vectors of sixteen: work items of a group that wait for each other become none.
_LINE = """
#define EACH(STATEMENTS) \\
  for (j = 0; j + 16 <= n; j += 16) { STATEMENTS(float16, vload16(0, x + at + j), WIDE) } \\
  for (; j < n; ++j) { STATEMENTS(float, x[at + j], ONE) }
#define LOAD_WIDE(p) vload16(0, p + at + j)
#define LOAD_ONE(p) p[at + j]
#define STORE_WIDE(p, v) vstore16(v, 0, p + at + j)
#define STORE_ONE(p, v) p[at + j] = v
#define ADD_WIDE(v) sums += v
#define ADD_ONE(v) rest += v
#define POWERS(V, value, KIND) ADD_##KIND(exp(value - top));
#define SUM(result) \\
  float result = rest; \\
  vstore16(sums, 0, parts); \\
  for (j = 0; j < 16; ++j) result += parts[j];

KERNEL void row(GLOBAL const T* x, PARAMS int n) {
  i64 r = GLOBAL_ID(0), at = r * n;
  int j = 0;
  float parts[16], top = -INFINITY, rest = 0;
  float16 tops = -INFINITY, sums = 0;
  for (; j + 16 <= n; j += 16) {
    float16 v = LOAD_WIDE(x);
    tops = select(tops, v, isgreater(v, tops) | isnan(v));
  }
  for (; j < n; ++j) { float v = x[at + j]; top = v > top || v != v ? v : top; }
  vstore16(tops, 0, parts);
  for (j = 0; j < 16; ++j) top = parts[j] > top || parts[j] != parts[j] ? parts[j] : top;
  EACH(POWERS)
  SUM(total)
  float log_total = log(total);
  BODY
}
"""
_LINE_BODIES = {
    "Softmax": """
#define SHARES(V, value, KIND) STORE_##KIND(y, exp(value - top) / total);
  EACH(SHARES)
""",
    "LogSoftmax": """
#define LOGS(V, value, KIND) STORE_##KIND(y, value - top - log_total);
  EACH(LOGS)
""",
    "SoftmaxCrossEntropyWithLogits": """
#define BOTH(V, value, KIND) \\
    V shifted = value - top, label = LOAD_##KIND(p); \\
    ADD_##KIND(label * (log_total - shifted)); \\
    STORE_##KIND(y, exp(shifted) / total - label);
  sums = 0;
  rest = 0;
  EACH(BOTH)
  SUM(found)
  loss[r] = found;
""",
    "SparseSoftmaxCrossEntropyWithLogits": """
#define SHARES(V, value, KIND) STORE_##KIND(y, exp(value - top) / total);
  i64 label = p[r];
  if (label < 0 || label >= n) { *flag = (int)r + 1; return; }
  EACH(SHARES)
  y[at + label] -= 1;
  loss[r] = log_total - (x[at + label] - top);
""",
}
_BODIES = {
    "Softmax": _SOFTMAX,
    "LogSoftmax": _LOG,
    "SoftmaxCrossEntropyWithLogits": _XENT,
    "SparseSoftmaxCrossEntropyWithLogits": _SPARSE,
}


def _kernel(sig: NodeSig, params: str) -> tuple[Any, int]:
    """The kernel of a node, and how many work items of it take a row."""
    device: Any = sig.device
    dtype, dialect = sig.in_dtypes[0], device.dialect
    if device.is_cpu and dtype is dtypes.float32:
        text = _LINE.replace("PARAMS", params).replace("BODY", _LINE_BODIES[sig.op])
        macros = ["#define T float"]
        return device.kernel("\n".join([codegen.helpers(dialect, text), *macros, text]), "row"), 1
    lanes = 8 if device.is_cpu else 64
    text = _ROW.replace("PARAMS", params).replace("BODY", _BODIES[sig.op])
    kind, acc = TYPES[dtype.name], dialect.computed(dtype)
    macros = [
        f"#define X(i) {dialect.load(dtype, 'x', '(i)')}",
        f"#define P(i) {dialect.load(dtype, 'p', '(i)')}",
        f"#define STORE_Y(i, v) {dialect.store(dtype, 'y', '(i)', '(v)')}",
        f"#define STORE_LOSS(i, v) {dialect.store(dtype, 'loss', '(i)', '(v)')}",
        f"#define T {kind}",
        f"#define A {acc}",
        f"#define L {lanes}",
    ]
    source = "\n".join([codegen.helpers(dialect, "\n".join(macros)), *macros, text])
    return device.kernel(source, "row"), lanes


@table.binder("Softmax", "LogSoftmax", T=FLOATS)
def softmax(sig: NodeSig) -> Callable[[Array], Array]:
    """exp(x) / sum(exp(x)) along the last dimension, or its logarithm."""
    device = sig.device
    kernel, lanes = _kernel(sig, "GLOBAL T* y,")

    def run(x: Array) -> Array:
        if not x.ndim:
            raise checks.invalid("logits must have at least 1 dimension, got shape []")
        out: Array = device.allocate(x.shape, x.dtype)
        n = x.shape[-1]
        if out.size:
            device.launch(kernel, out.size // n * lanes, x, out, np.int32(n), group=lanes)
        return out

    return run


@table.binder("SoftmaxCrossEntropyWithLogits", T=FLOATS)
def xent(sig: NodeSig) -> Callable[[Array, Array], tuple[Array, Array]]:
    """Loss and gradient against a distribution over the classes."""
    device = sig.device
    kernel, lanes = _kernel(sig, "GLOBAL const T* p, GLOBAL T* loss, GLOBAL T* y,")

    def spread(x: Array, shape: tuple[int, ...]) -> Array:
        if x.shape == shape:
            return x
        wide = (1,) * (len(shape) - x.ndim) + x.shape
        steps = [0 if n == 1 else s for n, s in zip(wide, strides_of(wide), strict=True)]
        return take(device, x, shape, steps)

    def run(features: Array, labels: Array) -> tuple[Array, Array]:
        shape = broadcast_shape([features.shape, labels.shape])
        logits, target = spread(features, shape), spread(labels, shape)
        rows, n = shape
        loss, back = device.allocate((rows,), logits.dtype), device.allocate(shape, logits.dtype)
        if n == 0:
            device.fill_zero(loss)
        elif rows:
            sizes = np.int32(n)
            device.launch(kernel, rows * lanes, logits, target, loss, back, sizes, group=lanes)
        return loss, back

    return run


@table.binder(
    "SparseSoftmaxCrossEntropyWithLogits", T=FLOATS,
    Tlabels=frozenset({dtypes.int32, dtypes.int64}),
)  # fmt: skip
def sparse_xent(sig: NodeSig) -> Callable[[Array, Array], tuple[Array, Array]]:
    """Loss and gradient against class ids."""
    device = sig.device
    ids = TYPES[sig.in_dtypes[1].name]
    params = f"GLOBAL const {ids}* p, GLOBAL T* loss, GLOBAL T* y, GLOBAL int* flag,"
    kernel, lanes = _kernel(sig, params)

    def run(features: Array, labels: Array) -> tuple[Array, Array]:
        rows, n = features.shape
        loss = device.allocate((rows,), features.dtype)
        back = device.allocate((rows, n), features.dtype)
        checks.check_classes(features, labels)
        if rows:
            flag = device.flag()
            device.launch(
                kernel, rows * lanes, features, labels, loss, back, flag, np.int32(n), group=lanes
            )
            wrong = device.read_int(flag)
            if wrong:
                raise checks.no_class(device.download(labels), wrong - 1, n)
        return loss, back

    return run
