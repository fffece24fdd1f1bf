"""What a user of PyTorch writes for an op, run eagerly."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import torch
import torch.nn.functional as F

from twins import op_names, torch_twin

Call = Callable[..., Any]


def reduction(name: str, attrs: Mapping[str, Any]) -> Call:
    """A function of an array and its axes."""
    keep, fold = bool(attrs.get("keep_dims")), getattr(torch, name)

    def run(x: Any, axis: Any) -> Any:
        found = op_names.axes(axis, x.ndim)
        return fold(x, dim=found, keepdim=keep) if found else x.clone()

    return run


def matmul(attrs: Mapping[str, Any]) -> Call:
    """A product, of matrices that may stand the other way."""
    first = attrs.get("transpose_a") or attrs.get("adj_x")
    second = attrs.get("transpose_b") or attrs.get("adj_y")
    return lambda a, b: torch.matmul(a.mT if first else a, b.mT if second else b)


def conv(attrs: Mapping[str, Any]) -> Call | None:
    """A convolution of images, which lie channels-last."""
    if not op_names.plain(attrs):
        return None
    _, down, right, _ = attrs["strides"]
    if attrs["padding"] == "SAME" and down != right:
        return None

    def run(x: Any, w: Any) -> Any:
        images, filters = x.permute(0, 3, 1, 2), w.permute(3, 2, 0, 1)
        if attrs["padding"] == "SAME":
            images = padded(images, filters.shape[2:], (down, right), 0.0)
        return F.conv2d(images, filters, stride=(down, right)).permute(0, 2, 3, 1)

    return run


def padded(x: Any, window: Sequence[int], steps: Sequence[int], fill: float) -> Any:
    """Images padded as SAME pads them."""
    pads: list[int] = []
    for n, size, stride in zip(x.shape[:1:-1], window[::-1], steps[::-1], strict=True):
        total = max((-(-n // stride) - 1) * stride + size - n, 0)
        pads += [total // 2, total - total // 2]
    return F.pad(x, pads, value=fill) if any(pads) else x


def max_pool(attrs: Mapping[str, Any]) -> Call | None:
    """The maximum of windows of images."""
    window, steps = attrs["ksize"], attrs["strides"]
    if not op_names.plain(attrs) or {window[0], window[3], steps[0], steps[3]} != {1}:
        return None

    def run(x: Any) -> Any:
        images = x.permute(0, 3, 1, 2)
        if attrs["padding"] == "SAME":
            images = padded(images, window[1:3], steps[1:3], -torch.inf)
        return F.max_pool2d(images, window[1:3], steps[1:3]).permute(0, 2, 3, 1)

    return run


def cross_entropy(logits: Any, labels: Any) -> tuple[Any, Any]:
    """Of labels that are numbers: the losses and their gradient."""
    labels = torch.as_tensor(labels).long()
    logs = torch.log_softmax(logits, 1)
    slope = torch.exp(logs)
    slope[torch.arange(len(labels)), labels] -= 1
    return F.nll_loss(logs, labels, reduction="none"), slope


def segment_sum(x: Any, ids: Any, count: Any) -> Any:
    """The sum of the rows of each id."""
    if ids.ndim != 1:
        x = x.reshape(-1, *x.shape[ids.ndim :])
    return x.new_zeros((int(count), *x.shape[1:])).index_add_(
        0, torch.as_tensor(ids).reshape(-1), x
    )


def top(attrs: Mapping[str, Any]) -> Call:
    """The largest of each row."""

    def run(x: Any, *k: Any) -> Any:
        values, places = torch.topk(x, int(k[0]) if k else attrs["k"])
        return values, places.int()

    return run


WRITTEN: Final[dict[str, Callable[[Mapping[str, Any]], Call | None]]] = {
    "AddN": lambda a: lambda xs: sum(xs[1:], xs[0]),
    "ArgMax": lambda a: lambda x, axis: torch.argmax(x, int(axis)),
    "ArgMin": lambda a: lambda x, axis: torch.argmin(x, int(axis)),
    "BatchMatMul": matmul,
    "BatchMatMulV2": matmul,
    "BiasAdd": lambda a: (torch.add if a.get("data_format", "NHWC") == "NHWC" else None),
    "BroadcastTo": lambda a: lambda x, s: x.broadcast_to(tuple(map(int, s))).contiguous(),
    "Cholesky": lambda a: torch.linalg.cholesky,
    "ConcatV2": lambda a: lambda xs, axis: torch.cat(xs, int(axis)),
    "Conv2D": conv,
    "Cumprod": lambda a: None if a.get("exclusive") or a.get("reverse") else (
        lambda x, axis: torch.cumprod(x, int(axis))),
    "Cumsum": lambda a: None if a.get("exclusive") or a.get("reverse") else (
        lambda x, axis: torch.cumsum(x, int(axis))),
    "Digamma": lambda a: torch.digamma,
    "Elu": lambda a: F.elu,
    "Equal": lambda a: torch.eq,
    "Erf": lambda a: torch.erf,
    "Erfc": lambda a: torch.erfc,
    "Erfinv": lambda a: torch.erfinv,
    "ExpandDims": lambda a: lambda x, axis: x.unsqueeze(int(axis)),
    "FFT": lambda a: torch.fft.fft,
    "FFT2D": lambda a: torch.fft.fft2,
    "GatherNd": lambda a: lambda x, i: x[tuple(torch.as_tensor(i).movedim(-1, 0))],
    "GatherV2": lambda a: None if a.get("batch_dims") else (
        lambda x, i, axis: x.index_select(int(axis), torch.as_tensor(i).reshape(-1)).reshape(
            x.shape[: int(axis) % x.ndim] + i.shape + x.shape[int(axis) % x.ndim + 1 :])),
    "IFFT": lambda a: torch.fft.ifft,
    "Igamma": lambda a: torch.special.gammainc,
    "Igammac": lambda a: torch.special.gammaincc,
    "Inv": lambda a: torch.reciprocal,
    "InvertPermutation": lambda a: torch.argsort,
    "L2Loss": lambda a: lambda x: torch.sum(x * x) / 2,
    "Lgamma": lambda a: torch.lgamma,
    "LogSoftmax": lambda a: lambda x: torch.log_softmax(x, -1),
    "MatMul": matmul,
    "MatrixDeterminant": lambda a: torch.linalg.det,
    "MatrixInverse": lambda a: None if a.get("adjoint") else torch.linalg.inv,
    "MatrixSolve": lambda a: None if a.get("adjoint") else torch.linalg.solve,
    "MaxPool": max_pool,
    "Pack": lambda a: lambda xs: torch.stack(xs, a.get("axis", 0)),
    "Pad": lambda a: lambda x, pads: F.pad(x, [int(n) for n in pads[::-1].reshape(-1)]),
    "Relu": lambda a: torch.relu,
    "Relu6": lambda a: F.relu6,
    "Reshape": lambda a: lambda x, s: x.reshape(tuple(map(int, s))),
    "ReverseV2": lambda a: lambda x, axis: torch.flip(x, op_names.axes(axis, x.ndim)),
    "Rsqrt": lambda a: torch.rsqrt,
    "Selu": lambda a: F.selu,
    "Sigmoid": lambda a: torch.sigmoid,
    "Softmax": lambda a: lambda x: torch.softmax(x, -1),
    "Softplus": lambda a: F.softplus,
    "Softsign": lambda a: F.softsign,
    "SparseSoftmaxCrossEntropyWithLogits": lambda a: cross_entropy,
    "SquaredDifference": lambda a: lambda x, y: (x - y) ** 2,
    "Tile": lambda a: lambda x, many: x.tile(tuple(map(int, many))),
    "TopKV2": top,
    "Transpose": lambda a: lambda x, order: x.permute(tuple(map(int, order))).contiguous(),
    "UnsortedSegmentSum": lambda a: segment_sum,
    "Zeta": lambda a: torch.special.zeta,
}  # fmt: skip


def function(op: str, attrs: Mapping[str, Any]) -> Call | None:
    """The function of the op's inputs, or None where nobody wrote one."""
    if op in op_names.SHARED and op not in WRITTEN:
        found: Call = getattr(torch, op_names.SHARED[op])
        return found
    if op in op_names.REDUCTIONS:
        return reduction(op_names.REDUCTIONS[op], attrs)
    return WRITTEN[op](attrs) if op in WRITTEN else None


def step(call: Call, inputs: Sequence[Any], known: Sequence[bool]) -> Callable[[], list[Any]]:
    """From arrays of NumPy to arrays of NumPy; what is known stays an array of NumPy's."""

    def given(x: Any) -> Any:
        if isinstance(x, list):
            return [given(one) for one in x]
        return torch.from_numpy(x).to(torch_twin.DEVICE)

    @torch.no_grad()
    def once() -> list[Any]:
        out = call(*(x if k else given(x) for x, k in zip(inputs, known, strict=True)))
        found = out if isinstance(out, list | tuple) else [out]
        return [np.asarray(v.cpu().numpy(), order="C") for v in found]

    return once
