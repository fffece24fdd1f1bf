"""What a user of NumPy and SciPy writes for an op."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import scipy.special

from twins import op_names

Call = Callable[..., Any]


def reduction(name: str, attrs: Mapping[str, Any]) -> Call:
    """A function of an array and its axes."""
    keep, fold = bool(attrs.get("keep_dims")), getattr(np, name)
    return lambda x, axis: fold(x, axis=op_names.axes(axis, x.ndim), keepdims=keep)


def matmul(attrs: Mapping[str, Any]) -> Call:
    """A product, of matrices that may stand the other way."""
    first = attrs.get("transpose_a") or attrs.get("adj_x")
    second = attrs.get("transpose_b") or attrs.get("adj_y")
    return lambda a, b: np.matmul(a.mT if first else a, b.mT if second else b)


def views(x: Any, window: Sequence[int], attrs: Mapping[str, Any], fill: float) -> Any:
    """The windows of images, padded as the op says: [batch, down, right, channels, *window]."""
    _, down, right, _ = attrs["strides"]
    if attrs["padding"] == "SAME":
        pads = [(0, 0)]
        for n, size, step in zip(x.shape[1:3], window, (down, right), strict=True):
            total = max((-(-n // step) - 1) * step + size - n, 0)
            pads.append((total // 2, total - total // 2))
        x = np.pad(x, [*pads, (0, 0)], constant_values=fill)
    every = np.lib.stride_tricks.sliding_window_view(x, window, (1, 2))
    return every[:, ::down, ::right]


def conv(attrs: Mapping[str, Any]) -> Call | None:
    """A convolution of images: windows by the filter's."""
    if not op_names.plain(attrs):
        return None
    return lambda x, w: np.tensordot(views(x, w.shape[:2], attrs, 0), w, ((4, 5, 3), (0, 1, 2)))


def max_pool(attrs: Mapping[str, Any]) -> Call | None:
    """The maximum of windows of images."""
    window, steps = attrs["ksize"], attrs["strides"]
    if not op_names.plain(attrs) or {window[0], window[3], steps[0], steps[3]} != {1}:
        return None
    return lambda x: views(x, window[1:3], attrs, -np.inf).max((4, 5))


def softmax(x: Any) -> Any:
    """Along the last dimension."""
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def log_softmax(x: Any) -> Any:
    """Its logarithm."""
    shifted = x - x.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


def cross_entropy(logits: Any, labels: Any) -> tuple[Any, Any]:
    """Of labels that are numbers: the losses and their gradient."""
    logs, rows = log_softmax(logits), np.arange(len(labels))
    slope = np.exp(logs)
    slope[rows, labels] -= 1
    return -logs[rows, labels], slope


def segment_sum(x: Any, ids: Any, count: Any) -> Any:
    """The sum of the rows of each id."""
    rows = x.reshape(-1, *x.shape[ids.ndim :])
    total = np.zeros((int(count), *rows.shape[1:]), x.dtype)
    np.add.at(total, ids.reshape(-1), rows)
    return total


def top(attrs: Mapping[str, Any]) -> Call:
    """The largest of each row; the first of equal ones first."""

    def run(x: Any, *k: Any) -> Any:
        places = np.argsort(-x, axis=-1, kind="stable")[..., : int(k[0]) if k else attrs["k"]]
        return np.take_along_axis(x, places, -1), places.astype(np.int32)

    return run


WRITTEN: Final[dict[str, Callable[[Mapping[str, Any]], Call | None]]] = {
    "AddN": lambda a: lambda xs: sum(xs[1:], xs[0]),
    "ArgMax": lambda a: lambda x, axis: np.argmax(x, int(axis)),
    "ArgMin": lambda a: lambda x, axis: np.argmin(x, int(axis)),
    "BatchMatMul": matmul,
    "BatchMatMulV2": matmul,
    "BiasAdd": lambda a: (np.add if a.get("data_format", "NHWC") == "NHWC" else None),
    "BroadcastTo": lambda a: lambda x, s: np.broadcast_to(x, tuple(map(int, s))).copy(),
    "Cholesky": lambda a: np.linalg.cholesky,
    "ConcatV2": lambda a: lambda xs, axis: np.concatenate(xs, int(axis)),
    "Conv2D": conv,
    "Cumprod": lambda a: None if a.get("exclusive") or a.get("reverse") else (
        lambda x, axis: np.cumprod(x, int(axis))),
    "Cumsum": lambda a: None if a.get("exclusive") or a.get("reverse") else (
        lambda x, axis: np.cumsum(x, int(axis))),
    "Digamma": lambda a: scipy.special.digamma,
    "Erf": lambda a: scipy.special.erf,
    "Erfc": lambda a: scipy.special.erfc,
    "Erfinv": lambda a: scipy.special.erfinv,
    "GatherNd": lambda a: lambda x, i: x[tuple(np.moveaxis(i, -1, 0))],
    "GatherV2": lambda a: None if a.get("batch_dims") else (
        lambda x, i, axis: np.take(x, i, int(axis))),
    "Inv": lambda a: np.reciprocal,
    "InvertPermutation": lambda a: np.argsort,
    "L2Loss": lambda a: lambda x: np.sum(x * x) / 2,
    "Lgamma": lambda a: scipy.special.gammaln,
    "LogSoftmax": lambda a: log_softmax,
    "MatMul": matmul,
    "MatrixDeterminant": lambda a: np.linalg.det,
    "MatrixInverse": lambda a: None if a.get("adjoint") else np.linalg.inv,
    "MatrixSolve": lambda a: None if a.get("adjoint") else np.linalg.solve,
    "MaxPool": max_pool,
    "Pack": lambda a: lambda xs: np.stack(xs, a.get("axis", 0)),
    "Pad": lambda a: np.pad,
    "Relu": lambda a: lambda x: np.maximum(x, 0),
    "Relu6": lambda a: lambda x: np.clip(x, 0, 6),
    "ReverseV2": lambda a: lambda x, axis: np.flip(x, op_names.axes(axis, x.ndim)).copy(),
    "Rsqrt": lambda a: lambda x: 1 / np.sqrt(x),
    "Sigmoid": lambda a: scipy.special.expit,
    "Softmax": lambda a: softmax,
    "Softplus": lambda a: lambda x: np.logaddexp(x, 0),
    "SparseSoftmaxCrossEntropyWithLogits": lambda a: cross_entropy,
    "SquaredDifference": lambda a: lambda x, y: (x - y) ** 2,
    "Tile": lambda a: lambda x, many: np.tile(x, tuple(map(int, many))),
    "TopKV2": top,
    "Transpose": lambda a: lambda x, order: x.transpose(tuple(map(int, order))).copy(),
    "UnsortedSegmentSum": lambda a: segment_sum,
}  # fmt: skip


def function(op: str, attrs: Mapping[str, Any]) -> Call | None:
    """The function of the op's inputs, or None where nobody wrote one."""
    if op in op_names.SHARED and op not in WRITTEN:
        found: Call = getattr(np, op_names.SHARED[op])
        return found
    if op in op_names.REDUCTIONS:
        return reduction(op_names.REDUCTIONS[op], attrs)
    return WRITTEN[op](attrs) if op in WRITTEN else None


def step(call: Call, inputs: Sequence[Any], known: Sequence[bool]) -> Callable[[], list[Any]]:
    """From arrays to arrays."""

    def once() -> list[Any]:
        out = call(*inputs)
        return [np.asarray(v) for v in (out if isinstance(out, list | tuple) else [out])]

    return once
