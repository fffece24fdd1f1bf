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
_OF_ONE: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "Elu": F.elu, "Inv": torch.reciprocal, "Reciprocal": torch.reciprocal, "Relu": torch.relu,
    "Relu6": F.relu6, "Rsqrt": torch.rsqrt, "Selu": F.selu, "Sigmoid": torch.sigmoid,
    "Sign": lambda x: torch.clamp(x, sign := x.sign(), sign, out=sign),  # PyTorch's of NaN is 0
    "Softmax": functools.partial(torch.softmax, dim=-1),
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
