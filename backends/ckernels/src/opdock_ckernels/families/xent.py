"""Softmax and cross entropies, each in one kernel: a work-group takes a row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opdock.plugin import FLOATS, DType, KernelTable, NodeSig, checks, codegen, dtypes
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


def _kernel(device: Any, dtype: DType, params: str, body: str) -> tuple[Any, int]:
    dialect: codegen.Dialect = device.dialect
    lanes = 8 if device.is_cpu else 64
    text = _ROW.replace("PARAMS", params).replace("BODY", body)
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
    body = _SOFTMAX if sig.op == "Softmax" else _LOG
    kernel, lanes = _kernel(device, sig.in_dtypes[0], "GLOBAL T* y,", body)

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
    device, dtype = sig.device, sig.in_dtypes[0]
    params = "GLOBAL const T* p, GLOBAL T* loss, GLOBAL T* y,"
    kernel, lanes = _kernel(device, dtype, params, _XENT)

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
    device, dtype = sig.device, sig.in_dtypes[0]
    ids = TYPES[sig.in_dtypes[1].name]
    params = f"GLOBAL const {ids}* p, GLOBAL T* loss, GLOBAL T* y, GLOBAL int* flag,"
    kernel, lanes = _kernel(device, dtype, params, _SPARSE)

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
