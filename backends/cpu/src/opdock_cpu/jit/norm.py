"""Batch normalization in generated code: one pass for the sums, one for the results.

Sums of differences from one row of the data, and of their squares, are folded in double precision:
a mean far from zero takes no digits from the variance (Chan, Golub and LeVeque, "Algorithms for
computing the sample variance", 1983, shifted data).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from opdock.plugin import KernelTable, NodeSig, codegen, dtypes
from opdock_cpu.jit import llvm
from opdock_cpu.jit.generated import Generated
from opdock_cpu.kernels import norm as numpy_kernels

__all__ = ["table"]

table = KernelTable()
_F32: Final = frozenset({dtypes.float32})
_PRIORITY: Final = 20
_SMALL: Final = 1 << 12
_KEPT: Final = 32
_FORWARD: Final = ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
_BACKWARD: Final = ("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3")
Array = np.ndarray[Any, Any]


def _when(sig: NodeSig) -> bool | str:
    if not llvm.available():
        return llvm.why_not()
    if sig.attrs["data_format"] != "NHWC":
        return "channels first"
    shape = sig.in_shapes[0]
    if shape is None or None in shape:
        return "the shape is not known"
    if np.prod([n or 0 for n in shape]) < _SMALL:
        return "few elements"
    return True


class _Pass:
    """Expressions over a matrix `x` (and `dy`) and vectors of its columns, compiled per shape.

    Args:
        texts: what is computed, an expression each.
        matrices: the names of the inputs that are matrices; all others are vectors.
        vectors: the names of those.
        summed: whether results are sums over the rows, in double precision.
    """

    def __init__(
        self, texts: list[str], matrices: tuple[str, ...], vectors: tuple[str, ...], summed: bool
    ) -> None:
        self._names = (*matrices, *vectors)
        self._wide = len(matrices)
        self._summed = summed
        self._result = dtypes.float64 if summed else dtypes.float32
        if summed:
            texts = [f"cast({t}, float64)" for t in texts]
        types = dict.fromkeys(self._names, dtypes.float32)
        self._line = codegen.lower(
            [codegen.parse(t) for t in texts], types, results=[self._result] * len(texts)
        )
        self._made: dict[tuple[int, ...], Generated] = {}

    def for_shape(self, rows: int, columns: int) -> Generated:
        """The code for a matrix; it may not be ready."""
        found = self._made.get((rows, columns))
        if found is None:
            if len(self._made) >= _KEPT:
                self._made.clear()
            shape, count = (rows, columns), len(self._line.results)
            inputs = [
                (dtypes.float32, shape if i < self._wide else (columns,))
                for i in range(len(self._names))
            ]
            out = (columns,) if self._summed else shape
            reduce = codegen.Reduce("sum", (0,), False) if self._summed else None
            found = self._made[rows, columns] = Generated(
                self._line, self._names, inputs, shape, [(self._result, out)] * count, reduce,
                count,
            )  # fmt: skip
        return found


def _single(*values: Array) -> list[Array]:
    return [np.asarray(v, np.float32) for v in values]


def _moments(sums: Generated, matrix: Array) -> tuple[Array, Array]:
    """Mean and biased variance of the columns, in double precision."""
    shift = np.where(np.isfinite(matrix[0]), matrix[0], np.float32(0))
    first, second = sums([matrix, shift])
    off = first / len(matrix)
    return shift + off, np.maximum(second / len(matrix) - off * off, 0)


@table.binder(*_FORWARD, T=_F32, when=_when, priority=_PRIORITY)
def fused_batch_norm(sig: NodeSig) -> Callable[..., tuple[Any, ...]]:
    """Normalizes by the batch's statistics or by given ones."""
    plain, attrs = numpy_kernels.fused_batch_norm(sig), sig.attrs
    training, epsilon = bool(attrs["is_training"]), float(attrs["epsilon"])
    factor = np.float32(attrs.get("exponential_avg_factor", 1.0))
    third = sig.op == "FusedBatchNormV3"
    sums = _Pass(["x - k", "(x - k) * (x - k)"], ("x",), ("k",), summed=True)
    scaled = _Pass(["(x - m) * g + o"], ("x",), ("m", "g", "o"), summed=False)

    def run(x: Array, scale: Array, offset: Array, mean: Array, variance: Array) -> Any:
        rows = x.size // len(scale) if len(scale) else 0
        fold, spread = sums.for_shape(rows, len(scale)), scaled.for_shape(rows, len(scale))
        if not x.size or not (fold.ready and spread.ready):
            return plain(x, scale, offset, mean, variance)
        matrix = x.reshape(rows, -1)
        used_mean, used_variance = _moments(fold, matrix) if training else (mean, variance)
        gain = scale / np.sqrt(used_variance + epsilon)
        (y,) = spread([matrix, *_single(used_mean, gain, offset)])
        used = _single(used_mean, used_variance)
        batch = [v.copy() for v in used]
        if training:
            batch[1] *= np.float32(rows / max(rows - 1, 1))
            if factor != 1:
                old = (mean, variance)
                batch = [a * (1 - factor) + b * factor for a, b in zip(old, batch, strict=True)]
        reserves = [v.copy() for v in used]
        extra = (np.zeros((), np.float32),) if third else ()
        return (y.reshape(x.shape), *batch, *reserves, *extra)

    return run


@table.binder(*_BACKWARD, T=_F32, when=_when, priority=_PRIORITY)
def fused_batch_norm_grad(sig: NodeSig) -> Callable[..., tuple[Array, ...]]:
    """Gradients with respect to x, scale and offset."""
    plain, training = numpy_kernels.fused_batch_norm_grad(sig), bool(sig.attrs["is_training"])
    epsilon = float(sig.attrs["epsilon"])
    sums = _Pass(["dy", "dy * (x - m)"], ("dy", "x"), ("m",), summed=True)
    through = _Pass(["(dy - a - (x - m) * b) * c"], ("dy", "x"), ("m", "a", "b", "c"), summed=False)

    def run(grad: Array, x: Array, scale: Array, mean: Array, variance: Array, *unused: Any) -> Any:
        rows = x.size // len(scale) if len(scale) else 0
        fold, back = sums.for_shape(rows, len(scale)), through.for_shape(rows, len(scale))
        if not x.size or grad.shape != x.shape or not (fold.ready and back.ready):
            return plain(grad, x, scale, mean, variance, *unused)
        matrices = [grad.reshape(rows, -1), x.reshape(rows, -1)]
        total, projected = fold([*matrices, *_single(mean)])
        inverse = 1 / np.sqrt(variance + epsilon)
        count = rows if training else np.inf  # given statistics pass nothing back
        vectors = (mean, total / count, inverse * inverse * projected / count, scale * inverse)
        (dx,) = back([*matrices, *_single(*vectors)])
        empty = [np.zeros(0, np.float32) for _ in range(2)]
        return (dx.reshape(x.shape), *_single(projected * inverse, total), *empty)

    return run

