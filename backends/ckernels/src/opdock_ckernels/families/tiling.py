"""Repetition, reversal and rotation: copies with zero, negative and wrapped steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opdock.plugin import KernelTable, NodeSig, axes, checks
from opdock_ckernels.along import along
from opdock_ckernels.dialect import TYPES, WORDS
from opdock_ckernels.families.array import HELD
from opdock_ckernels.protocols import Array
from opdock_ckernels.scattering import copied
from opdock_ckernels.strided import strides_of, take

__all__ = ["table"]

table = KernelTable()


@table.binder("Tile", T=HELD, out=True, host_inputs=("multiples",))
def tile(sig: NodeSig) -> Callable[..., Array]:
    """The input repeated as a whole: a broadcast over a new dimension before each old one."""
    device = sig.device

    def run(x: Array, multiples: Any, out: Array | None) -> Array:
        counts = checks.multiples_of(multiples, x.ndim)
        shape = [n for pair in zip(counts, x.shape, strict=True) for n in pair]
        steps = [n for s in strides_of(x.shape) for n in (0, s)]
        wide = take(device, x, shape, steps, 0, out)
        return wide.reshape(*(c * n for c, n in zip(counts, x.shape, strict=True)))

    return run


@table.binder("ReverseV2", T=HELD, out=True, host_inputs=("axis",))
def reverse_v2(sig: NodeSig) -> Callable[..., Array]:
    """The input backwards along some dimensions."""
    device = sig.device

    def run(x: Array, axis: Any, out: Array | None) -> Array:
        return _backwards(device, x, axes.reversed_(axis, x.ndim), out)

    return run


def _backwards(device: Any, x: Array, axes: Sequence[int], out: Array | None) -> Array:
    steps, offset = strides_of(x.shape), 0
    for a in axes:
        offset += (x.shape[a] - 1) * steps[a]
        steps[a] = -steps[a]
    return take(device, x, x.shape, steps, offset, out)


@table.binder("Reverse", T=HELD, out=True, host_inputs=("dims",))
def reverse(sig: NodeSig) -> Callable[..., Array]:
    """The input backwards along the dimensions that are marked."""
    device = sig.device

    def run(x: Array, marks: Any, out: Array | None) -> Array:
        chosen = [i for i, mark in enumerate(checks.ints(marks)) if mark]
        return _backwards(device, x, chosen, out)

    return run


_SEQUENCE = """
KERNEL void turn(GLOBAL const W* x, GLOBAL const L* lengths, GLOBAL W* y, i64 total,
                 i64 n, i64 inner, i64 rows, i64 step) {
  i64 i = GLOBAL_ID(0);
  if (i >= total) return;
  i64 c = i % inner, rest = i / inner, j = rest % n, m = lengths[(i / step) % rows];
  i64 from = j < m ? m - 1 - j : j;
  y[i] = x[((rest / n) * n + from) * inner + c];
}
"""


@table.binder("ReverseSequence", T=HELD)
def reverse_sequence(sig: NodeSig) -> Callable[[Array, Array], Array]:
    """The first elements of each sequence backwards."""
    device, along_, batch = sig.device, sig.attrs["seq_dim"], sig.attrs["batch_dim"]
    types = {"W": WORDS[sig.in_dtypes[0].np.itemsize], "L": TYPES[sig.in_dtypes[1].name]}
    kernel = device.kernel(_SEQUENCE, "turn", **types)

    def run(x: Array, seq_lengths: Array) -> Array:
        rows, limit = x.shape[batch], x.shape[along_]
        checks.check_sequences(x.shape, checks.ints(device.download(seq_lengths)), along_, batch)
        out: Array = device.allocate(x.shape, x.dtype)
        steps = strides_of(x.shape)
        sizes = (np.int64(v) for v in (x.size, limit, steps[along_], rows, steps[batch]))
        device.launch(kernel, x.size, x, seq_lengths, out, *sizes)
        return out

    return run


@table.binder("Roll", T=HELD, host_inputs=("shift", "axis"))
def roll(sig: NodeSig) -> Callable[[Array, Any, Any], Array]:
    """The input shifted around."""
    device = sig.device

    def run(x: Array, shift: Any, axis: Any) -> Array:
        out = x
        for a, s in axes.rolled(shift, axis, x.ndim).items():
            n = x.shape[a]
            if n and s % n:
                out = along(device, out, a, n, "(j + p) % n", -s % n)
        return copied(device, x) if out is x else out

    return run
