"""Ops that are one function of PyTorch's, where core's portable way takes several passes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

from opdock.plugin import FLOATS, REALS, KernelTable, NodeSig, axes, checks
from opdock_torch.device import HELD
from opdock_torch.namespace import Namespace

table = KernelTable()


_WIDE = {torch.float16: torch.float32, torch.bfloat16: torch.float32}


def _between(x: torch.Tensor, sign: torch.Tensor) -> torch.Tensor:
    """The sign, but NaN of NaN, of which PyTorch's sign is 0."""
    return torch.clamp(x, sign, sign, out=sign)


_OF_ONE: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "Elu": F.elu, "Inv": torch.reciprocal, "Reciprocal": torch.reciprocal, "Relu": torch.relu,
    "Relu6": F.relu6, "Rsqrt": torch.rsqrt, "Selu": F.selu, "Sigmoid": torch.sigmoid,
    "Sign": lambda x: _between(x, x.sign()),
    "Softmax": functools.partial(torch.softmax, dim=-1),
    "LogSoftmax": functools.partial(torch.log_softmax, dim=-1),
    # From there on what is added to x is less than half of its last bit.
    "Softplus": functools.partial(F.softplus, threshold=40),
}  # fmt: skip


@table.binder(*_OF_ONE, T=FLOATS)
def of_one(sig: NodeSig) -> Callable[[torch.Tensor], torch.Tensor]:
    """A function of each element, or of each row."""
    return _OF_ONE[sig.op]


@table.binder("Pad", host_inputs="paddings")
def pad(sig: NodeSig) -> Callable[[torch.Tensor, Any], torch.Tensor]:
    """Zeros around the input."""
    return lambda x, paddings: F.pad(
        x, [n for pair in reversed(checks.margins(paddings, x.ndim)) for n in pair]
    )


@table.binder("ReverseV2", host_inputs="axis")
def reverse(sig: NodeSig) -> Callable[[torch.Tensor, Any], torch.Tensor]:
    """Backwards along some dimensions."""
    return lambda x, axis: torch.flip(x, axes.reversed_(axis, x.ndim))


@table.binder("ArgMax", "ArgMin", host_inputs="dimension", T=REALS & HELD)
def arg_extreme(sig: NodeSig) -> Callable[[torch.Tensor, Any], torch.Tensor]:
    """Where the first extreme is: PyTorch takes NaN for one, TensorFlow never."""
    best, worst = (torch.argmax, -torch.inf) if sig.op == "ArgMax" else (torch.argmin, torch.inf)
    dtype = getattr(torch, sig.out_dtypes[0].name)

    def run(x: torch.Tensor, dimension: Any) -> torch.Tensor:
        axis = axes.searched(dimension, x.shape)
        found = best(x, axis, keepdim=True)
        if x.is_floating_point() and x.gather(axis, found).isnan().any():
            found = best(x.nan_to_num(worst, torch.inf, -torch.inf), axis, keepdim=True)
        return found.squeeze(axis).to(dtype)

    return run


@table.binder("InvertPermutation")
def invert_permutation(sig: NodeSig) -> Callable[[torch.Tensor], torch.Tensor]:
    """Where each number stands."""

    def run(x: torch.Tensor) -> torch.Tensor:
        checks.check_vector("invert_permutation", x)
        values, places = torch.sort(x)
        if not torch.equal(values, torch.arange(len(x), dtype=x.dtype, device=x.device)):
            raise checks.no_permutation(x.tolist())
        return places.to(x.dtype)

    return run


@table.binder("SparseSoftmaxCrossEntropyWithLogits", T=FLOATS)
def sparse_xent(sig: NodeSig) -> Callable[..., tuple[torch.Tensor, torch.Tensor]]:
    """Loss and gradient against class ids; an id out of range gives a row of NaN."""

    def run(features: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        checks.check_classes(features, labels)
        places = labels.long()[:, None]
        logs = torch.log_softmax(features, -1, dtype=_WIDE.get(features.dtype))
        inside = (places >= 0) & (places < features.shape[1])
        if not (Namespace.take_checks(labels) and inside.all()):
            places = places.where(inside, 0)
            logs = logs.where(inside, torch.nan)
        loss = logs.gather(1, places).neg_().squeeze(1)
        back = logs.exp_().scatter_add_(1, places, -torch.ones_like(places, dtype=logs.dtype))
        return loss.to(features.dtype), back.to(features.dtype)

    return run
