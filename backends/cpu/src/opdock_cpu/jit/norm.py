"""Batch normalization in generated code: one pass for the sums, one for the results.

What is summed up are differences from the mean of a few rows, and their squares: a mean far from
zero takes no digits from the variance (Chan, Golub and LeVeque, "Algorithms for computing the
sample variance", 1983, shifted data). Where those rows tell too little, the sums are taken again.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from opdock.plugin import KernelTable, NodeSig, checks, codegen, dtypes
from opdock_cpu.jit import llvm
from opdock_cpu.jit.generated import Generated
from opdock_cpu.kernels import norm as numpy_kernels
from opdock_cpu.onednn.library import reason

__all__ = ["table"]

table = KernelTable()
_F32: Final = frozenset({dtypes.float32})
_PRIORITY: Final = 20
_SMALL: Final = 1 << 12
_ONEDNN_BELOW: Final = 30_000
"""Elements below which oneDNN's one call, on one thread, ends before the passes here."""
_KEPT: Final = 32
_SAMPLE: Final = 64
"""Rows of which the mean is the first guess."""
_ROUNDING: Final = 1e-13
"""The square of how far rounding may leave the guess from a mean that it equals, in parts of it."""
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
    count = math.prod(n or 0 for n in shape)
    # oneDNN has fast code for whole vectors of channels.
    fast = shape[-1] and shape[-1] % 8 == 0 and not reason()
    if count < (_ONEDNN_BELOW if fast else _SMALL):
        return "few elements"
    return True


class _Pass:
    """Expressions over a matrix `x` (and `dy`) and vectors of its columns, compiled per shape.

    Args:
        texts: what is computed, an expression each.
        matrices: the names of the inputs that are matrices; all others are vectors.
        vectors: the names of those.
        summed: whether results are sums over the rows.
    """

    def __init__(
        self, texts: list[str], matrices: tuple[str, ...], vectors: tuple[str, ...], summed: bool
    ) -> None:
        self._names = (*matrices, *vectors)
        self._wide = len(matrices)
        self._summed = summed
        types = dict.fromkeys(self._names, dtypes.float32)
        self._line = codegen.lower(
            [codegen.parse(t) for t in texts], types, results=[dtypes.float32] * len(texts)
        )
        self._made: dict[tuple[int, ...], Generated] = {}

    def for_shape(self, rows: int, columns: int) -> Generated:
        """The code for a matrix."""
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
            reduces = [codegen.Reduce("sum", (0,), False)] * count if self._summed else []
            found = self._made[rows, columns] = Generated(
                self._line, self._names, inputs, shape, [(dtypes.float32, out)] * count, reduces
            )
        return found


def _single(*values: Array) -> list[Array]:
    return [np.asarray(v, np.float32) for v in values]


def _matrix(out: Any, rows: int) -> list[Array] | None:
    """The buffer of the first result as a matrix, if there is one."""
    return None if out is None or out[0] is None else [out[0].reshape(rows, -1)]


def _given(results: tuple[Any, ...], out: Any) -> tuple[Any, ...]:
    """The results, in the buffers that there are for them."""
    if out is None:
        return results
    for i, buffer in enumerate(out):
        if buffer is not None and not np.may_share_memory(results[i], buffer):
            buffer[...] = results[i]
    return tuple(r if b is None else b for r, b in zip(results, out, strict=True))


def _moments(sums: Generated, matrix: Array) -> tuple[Array, Array]:
    """Mean and biased variance of the columns, in double precision."""
    guess = _guess(matrix)
    mean, variance, off = _around(sums, matrix, guess)
    # What is lost to the difference is a rounding of the larger of the two. NaN is not larger.
    if np.any(off * off > variance + _ROUNDING * guess * guess):
        mean, variance, _ = _around(sums, matrix, mean)
    return mean, np.maximum(variance, 0)


def _guess(matrix: Array) -> Array:
    rows = matrix[:: max(1, len(matrix) // _SAMPLE)]
    guess: Array = rows.mean(axis=0, dtype=np.float64)
    return guess


def _around(sums: Generated, matrix: Array, about: Array) -> tuple[Array, Array, Array]:
    """Mean and variance by sums of differences from `about`, and how far the mean is from that."""
    shift = np.where(np.isfinite(about), about, 0).astype(np.float32)
    first, second = (np.asarray(s, np.float64) for s in sums([matrix, shift]))
    off = first / len(matrix)
    return shift + off, second / len(matrix) - off * off, off


@table.binder(*_FORWARD, T=_F32, when=_when, priority=_PRIORITY, out=True)
def fused_batch_norm(sig: NodeSig) -> Callable[..., tuple[Any, ...]]:
    """Normalizes by the batch's statistics or by given ones."""
    plain, attrs = numpy_kernels.fused_batch_norm(sig), sig.attrs
    training, epsilon = bool(attrs["is_training"]), float(attrs["epsilon"])
    factor = np.float32(attrs.get("exponential_avg_factor", 1.0))
    third = sig.op == "FusedBatchNormV3"
    sums = _Pass(["x - k", "(x - k) * (x - k)"], ("x",), ("k",), summed=True)
    scaled = _Pass(["(x - m) * g + o"], ("x",), ("m", "g", "o"), summed=False)

    def run(x: Array, scale: Array, offset: Array, mean: Array, variance: Array, out: Any) -> Any:
        if not x.size:
            return _given(plain(x, scale, offset, mean, variance), out)
        checks.check_channels(x, False, scale, offset)
        rows = x.size // len(scale)
        fold, spread = sums.for_shape(rows, len(scale)), scaled.for_shape(rows, len(scale))
        matrix = x.reshape(rows, -1)
        used_mean, used_variance = _moments(fold, matrix) if training else (mean, variance)
        gain = scale / np.sqrt(used_variance + epsilon)
        (y,) = spread([matrix, *_single(used_mean, gain, offset)], _matrix(out, rows))
        used = _single(used_mean, used_variance)
        batch = [v.copy() for v in used]
        if training:
            batch[1] *= np.float32(rows / max(rows - 1, 1))
            if factor != 1:
                old = (mean, variance)
                batch = [a * (1 - factor) + b * factor for a, b in zip(old, batch, strict=True)]
        reserves = [v.copy() for v in used]
        extra = (np.zeros((), np.float32),) if third else ()
        return _given((y.reshape(x.shape), *batch, *reserves, *extra), out)

    return run


@table.binder(*_BACKWARD, T=_F32, when=_when, priority=_PRIORITY, out=True)
def fused_batch_norm_grad(sig: NodeSig) -> Callable[..., tuple[Array, ...]]:
    """Gradients with respect to x, scale and offset."""
    plain, training = numpy_kernels.fused_batch_norm_grad(sig), bool(sig.attrs["is_training"])
    epsilon = float(sig.attrs["epsilon"])
    sums = _Pass(["dy", "dy * (x - m)"], ("dy", "x"), ("m",), summed=True)
    through = _Pass(["(dy - a - (x - m) * b) * c"], ("dy", "x"), ("m", "a", "b", "c"), summed=False)

    def run(grad: Array, x: Array, scale: Array, mean: Array, variance: Array, *rest: Any) -> Any:
        *unused, out = rest
        if not x.size or grad.shape != x.shape:
            return _given(plain(grad, x, scale, mean, variance, *unused), out)
        rows = x.size // len(scale)
        fold, back = sums.for_shape(rows, len(scale)), through.for_shape(rows, len(scale))
        matrices = [grad.reshape(rows, -1), x.reshape(rows, -1)]
        total, projected = fold([*matrices, *_single(mean)])
        inverse = 1 / np.sqrt(variance + epsilon)
        count = rows if training else np.inf  # given statistics pass nothing back
        vectors = (mean, total / count, inverse * inverse * projected / count, scale * inverse)
        (dx,) = back([*matrices, *_single(*vectors)], _matrix(out, rows))
        empty = [np.zeros(0, np.float32) for _ in range(2)]
        return _given((dx.reshape(x.shape), *_single(projected * inverse, total), *empty), out)

    return run
