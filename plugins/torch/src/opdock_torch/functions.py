"""Ops that are one function of PyTorch's, where core's portable way takes several passes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

from opdock.plugin import FLOATS, REALS, KernelTable, NodeSig, axes, checks
from opdock_torch.device import HELD

table = KernelTable()
_OF_ONE = {
    "Elu": F.elu, "Rsqrt": torch.rsqrt, "Selu": F.selu, "Sigmoid": torch.sigmoid,
    # From there on what is added to x is less than half of its last bit.
    "Softplus": functools.partial(F.softplus, threshold=40),
}  # fmt: skip


@table.binder(*_OF_ONE, T=FLOATS)
def of_one(sig: NodeSig) -> Callable[[torch.Tensor], torch.Tensor]:
    """A function of each element."""
    return _OF_ONE[sig.op]


@table.binder("Softmax", "LogSoftmax", T=FLOATS)
def softmax(sig: NodeSig) -> Callable[[torch.Tensor], torch.Tensor]:
    """Along the last dimension."""
    fold = torch.softmax if sig.op == "Softmax" else torch.log_softmax
    return lambda logits: fold(logits, -1)


@table.binder("Pad", host_inputs="paddings")
def pad(sig: NodeSig) -> Callable[[torch.Tensor, Any], torch.Tensor]:
    """Zeros around the input."""

    def run(x: torch.Tensor, paddings: Any) -> torch.Tensor:
        margins = checks.margins(paddings, x.ndim)
        return F.pad(x, [n for pair in reversed(margins) for n in pair])

    return run


@table.binder("ReverseV2", host_inputs="axis")
def reverse(sig: NodeSig) -> Callable[[torch.Tensor, Any], torch.Tensor]:
    """Backwards along some dimensions."""
    return lambda x, axis: torch.flip(x, axes.reversed_(axis, x.ndim))


@table.binder("ArgMax", "ArgMin", host_inputs="dimension", T=REALS & HELD)
def arg_extreme(sig: NodeSig) -> Callable[[torch.Tensor, Any], torch.Tensor]:
    """Where the first extreme is: PyTorch takes NaN for one, TensorFlow never."""
    best = torch.argmax if sig.op == "ArgMax" else torch.argmin
    worst = -torch.inf if sig.op == "ArgMax" else torch.inf
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
        if not len(x):
            return torch.empty_like(x)
        least, most = (int(v) for v in x.aminmax())
        inverse = torch.full_like(x, -1)
        if least >= 0 and most < len(x):
            places = torch.arange(len(x), dtype=x.dtype, device=x.device)
            inverse.scatter_(0, x.long(), places)
        if int(inverse.amin()) < 0:
            raise checks.no_permutation(x.tolist())
        return inverse

    return run
