"""The workloads in PyTorch, eager. Images are NCHW to PyTorch and channels-last in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset, IterableDataset
from workloads import resnet
from workloads.dispatch import START
from workloads.norm import EPSILON

Step = Callable[[], Any]
DEVICE = "cpu"


def setup(threads: int) -> None:
    """Threads within an op; a GPU if PyTorch sees one."""
    global DEVICE
    torch.set_num_threads(threads)
    DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def tensor(array: np.ndarray, grad: bool = False) -> torch.Tensor:
    """A copy of an array on the device."""
    return torch.tensor(array, device=DEVICE, requires_grad=grad)


def kernel(array: np.ndarray, grad: bool = False) -> torch.Tensor:
    """HWIO to OIHW, channels-last."""
    w = tensor(array).permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)
    return w.requires_grad_(grad)


def arrays(values: Sequence[torch.Tensor]) -> list[np.ndarray]:
    """On the host."""
    return [v.detach().cpu().numpy() for v in values]


def same(x: torch.Tensor, size: int, stride: int, fill: float = 0.0) -> torch.Tensor:
    """Images padded as SAME pads them, the odd one below and to the right."""
    pads: list[int] = []
    for n in (x.shape[3], x.shape[2]):
        total = max((-(-n // stride) - 1) * stride + size - n, 0)
        pads += [total // 2, total - total // 2]
    return F.pad(x, pads, value=fill) if any(pads) else x


def conv(x: torch.Tensor, w: torch.Tensor, stride: int) -> torch.Tensor:
    """SAME convolution; PyTorch's own padding where it is even."""
    size = w.shape[2]
    if stride == 1:
        return F.conv2d(x, w, padding=size // 2)
    return F.conv2d(same(x, size, stride), w, stride=stride)


def trainer(
    parameters: list[torch.Tensor],
    optimizer: torch.optim.Optimizer,
    loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    batches: Sequence[tuple[np.ndarray, np.ndarray]],
) -> Step:
    """A step of the optimizer on the next batch; gives the loss."""
    count = 0

    def step() -> float:
        nonlocal count
        x, y = batches[count % len(batches)]
        count += 1
        optimizer.zero_grad(set_to_none=True)
        value = loss(torch.from_numpy(x).to(DEVICE), torch.from_numpy(y).to(DEVICE))
        value.backward()
        optimizer.step()
        return value.item()

    return step


def integers(batches: Sequence[tuple[np.ndarray, np.ndarray]]) -> list[Any]:
    """Labels as PyTorch takes them."""
    return [(x, y.astype(np.int64)) for x, y in batches]


def logreg(data: SimpleNamespace) -> Step:
    w, b = (tensor(p, grad=True) for p in data.parameters)
    return trainer(
        [w, b],
        torch.optim.SGD([w, b], data.rate),
        lambda x, y: F.binary_cross_entropy_with_logits(x @ w + b, y),
        data.batches,
    )


def mlp(data: SimpleNamespace) -> Step:
    p = [tensor(a, grad=True) for a in data.parameters]
    name, rate = data.optimizer
    optimizer = {"GradientDescent": torch.optim.SGD, "Adam": torch.optim.Adam}[name](p, rate)

    def loss(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        for i in range(0, len(p), 2):
            x = torch.addmm(p[i + 1], F.relu(x) if i else x, p[i])
        return F.cross_entropy(x, y)

    return trainer(p, optimizer, loss, integers(data.batches))


def convnet(data: SimpleNamespace) -> Step:
    p = [kernel(a, grad=True) if a.ndim == 4 else tensor(a, grad=True) for a in data.parameters]

    def loss(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        h = x.permute(0, 3, 1, 2)
        for w, b in zip(p[:-2:2], p[1:-2:2]):
            h = F.relu(F.conv2d(h, w, b, padding=1))
        h = F.max_pool2d(h, 2).permute(0, 2, 3, 1).flatten(1)
        return F.cross_entropy(torch.addmm(p[-1], h, p[-2]), y)

    optimizer = torch.optim.SGD(p, data.rate, momentum=data.keep)
    return trainer(p, optimizer, loss, integers(data.batches))


def norm(data: SimpleNamespace) -> Step:
    x, weight = (tensor(a).permute(0, 3, 1, 2) for a in (data.x, data.weight))
    x.requires_grad_(True)
    scale, offset = tensor(data.scale, grad=True), tensor(data.offset, grad=True)

    def step() -> list[Any]:
        y = F.batch_norm(x, None, None, scale, offset, training=True, eps=EPSILON)
        total = (y * weight).sum()
        dx, *rest = torch.autograd.grad(total, [x, scale, offset])
        return arrays([total, dx.permute(0, 2, 3, 1), *rest])

    return step


def residual(data: SimpleNamespace) -> Step:
    p = resnet.nested(lambda a: kernel(a) if a.ndim == 4 else tensor(a), data.parameters)
    lib = SimpleNamespace(
        conv=conv,
        norm=lambda x, p: F.batch_norm(
            x, p["mean"], p["variance"], p["scale"], p["offset"], eps=EPSILON
        ),
        relu=F.relu,
        max_pool=lambda x, n, s: F.max_pool2d(same(x, n, s, float("-inf")), n, s),
        mean=lambda x: x.mean((2, 3)),
        dense=lambda x, w, b: torch.addmm(b, x, w),
    )

    def step() -> list[Any]:
        with torch.inference_mode():
            x = torch.from_numpy(data.images).to(DEVICE).permute(0, 3, 1, 2)
            return arrays([resnet.network(lib, p, x)])

    return step


def elementwise(data: SimpleNamespace) -> Step:
    x, gain, bias, factor, shift = (tensor(v) for v in data.vectors)
    return lambda: arrays([torch.relu(x * gain + bias) * factor - shift])


def softmax(data: SimpleNamespace) -> Step:
    logits, labels = tensor(data.logits, grad=True), tensor(data.labels.astype(np.int64))

    def step() -> list[Any]:
        loss = F.cross_entropy(logits, labels)
        return arrays([loss, *torch.autograd.grad(loss, logits)])

    return step


def reduce(data: SimpleNamespace) -> Step:
    x = tensor(data.matrix)
    axes = (0, 1, (0, 1))
    return lambda: arrays([f(x, a) for f in (torch.sum, torch.mean, torch.amax) for a in axes])


def chain(data: SimpleNamespace) -> Step:
    x = tensor(START)

    def step() -> list[Any]:
        with torch.inference_mode():
            rest = 1.0 - x
            t = x
            for i in range(data.ops):
                t = t + rest if i % 2 else t * x
            return arrays([t])

    return step


def overhead(data: SimpleNamespace) -> Step:
    return lambda: arrays([-tensor(START)])


def wide(data: SimpleNamespace) -> Step:
    others = [tensor(w) for w in data.others]

    def step() -> list[Any]:
        with torch.inference_mode():
            x = torch.from_numpy(data.matrix).to(DEVICE)
            return arrays([torch.stack([x @ w for w in others]).sum(0)])

    return step


def lstm(data: SimpleNamespace, train: bool) -> Step:
    w, b = tensor(data.kernel, grad=train), tensor(data.bias, grad=train)

    def step() -> list[Any]:
        sequence = torch.from_numpy(data.sequence).to(DEVICE)
        memory = output = torch.zeros(sequence.shape[1:], device=DEVICE)
        with torch.set_grad_enabled(train):
            for x in sequence:
                z = torch.addmm(b, torch.cat([x, output], 1), w)
                keep, take, new, show = z.chunk(4, 1)
                memory = torch.sigmoid(keep + 1) * memory + torch.sigmoid(take) * torch.tanh(new)
                output = torch.sigmoid(show) * torch.tanh(memory)
            loss = output.square().mean()
            return arrays([loss, *(torch.autograd.grad(loss, [w, b]) if train else [output])])

    return step


def matmul(data: SimpleNamespace) -> Step:
    w = tensor(data.w)
    return lambda: arrays([tensor(data.x) @ w])


def convolution(data: SimpleNamespace) -> Step:
    w = kernel(data.w)

    def step() -> list[Any]:
        x = tensor(data.x).permute(0, 3, 1, 2)
        return arrays([conv(x, w, 1).permute(0, 2, 3, 1)])

    return step


class Scaled(Dataset):
    """Rows as the program's map makes them."""

    def __init__(self, values: torch.Tensor, labels: torch.Tensor) -> None:
        self.values, self.labels = values, labels

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, index: int) -> Any:
        return self.values[index] * 2 - 1, F.one_hot(self.labels[index], 10)


def slices(data: SimpleNamespace) -> Step:
    rows = Scaled(torch.from_numpy(data.values), torch.from_numpy(data.labels))
    loader = DataLoader(rows, data.batch, shuffle=True)

    def step() -> list[Any]:
        sums = [[part.sum(dim=0) for part in batch] for batch in loader]
        return arrays([torch.stack(parts).sum(dim=0) for parts in zip(*sums)])

    return step


class Lines(IterableDataset):
    """The lines of a file, over and over."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __iter__(self) -> Iterator[Any]:
        while True:
            with open(self.path, encoding="utf-8") as file:
                for line in file:
                    label, *values = line.split(",")
                    yield torch.tensor([float(v) for v in values]), int(label)


def lines(data: SimpleNamespace) -> Step:
    batches = iter(DataLoader(Lines(data.path), data.batch))
    return lambda: arrays(next(batches))


TWINS: dict[str, Callable[[SimpleNamespace], Step]] = {
    "run_overhead": overhead,
    "dispatch_chain": chain,
    "wide_graph": wide,
    "elementwise_fusion": elementwise,
    "softmax_xent": softmax,
    "reduce": reduce,
    "logreg_train": logreg,
    "mlp_train_small": mlp,
    "mlp_train_large": mlp,
    "convnet_train": convnet,
    "bn_fused": norm,
    "bn_unfused": norm,
    "lstm_loop": lambda data: lstm(data, train=False),
    "lstm_loop_grad": lambda data: lstm(data, train=True),
    "resnet_infer_b1": residual,
    "resnet_infer_b8": residual,
    "matmul_float": matmul,
    "conv_float": convolution,
    "input_slices": slices,
    "input_lines": lines,
}
