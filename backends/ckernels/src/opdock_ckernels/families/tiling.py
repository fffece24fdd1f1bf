"""Repetition and reversal: strided copies with zero and negative steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opdock.plugin import KernelTable, NodeSig, codegen
from opdock_ckernels.families.array import HELD
from opdock_ckernels.protocols import Array
from opdock_ckernels.strided import strides_of, take

__all__ = ["table"]

table = KernelTable()


@table.binder("Tile", T=HELD, host_inputs=("multiples",))
def tile(sig: NodeSig) -> Callable[[Array, Any], Array]:
    """The input repeated as a whole: a broadcast over a new dimension before each old one."""
    device = sig.device

    def run(x: Array, multiples: Any) -> Array:
        counts = codegen.ints(multiples)
        if len(counts) != x.ndim:
            raise codegen.invalid(
                f"Expected multiples argument to be a vector of length {x.ndim} but got length "
                f"{len(counts)}"
            )
        for i, count in enumerate(counts):
            if count < 0:
                raise codegen.invalid(f"Expected multiples[{i}] >= 0, but got {count}")
        shape = [n for pair in zip(counts, x.shape, strict=True) for n in pair]
        steps = [n for s in strides_of(x.shape) for n in (0, s)]
        wide = take(device, x, shape, steps)
        return wide.reshape(*(c * n for c, n in zip(counts, x.shape, strict=True)))

    return run


@table.binder("ReverseV2", T=HELD, host_inputs=("axis",))
def reverse_v2(sig: NodeSig) -> Callable[[Array, Any], Array]:
    """The input backwards along some dimensions."""
    device = sig.device

    def run(x: Array, axis: Any) -> Array:
        rank, axes = x.ndim, codegen.ints(axis)
        for i, a in enumerate(axes):
            if not -rank <= a < rank:
                raise codegen.invalid(f"'axis'[{i}] = {a} is out of valid range [0, {rank - 1}]")
        chosen = [a % rank for a in axes]
        if len(set(chosen)) != len(chosen):
            raise codegen.invalid(f"axis {max(chosen, key=chosen.count)} specified more than once.")
        steps, offset = strides_of(x.shape), 0
        for a in chosen:
            offset += (x.shape[a] - 1) * steps[a]
            steps[a] = -steps[a]
        return take(device, x, x.shape, steps, offset)

    return run
