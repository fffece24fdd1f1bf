"""Constant and mirrored margins."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from opdock.plugin import REALS, KernelTable, NodeSig, checks, codegen
from opdock_ckernels.along import along
from opdock_ckernels.dialect import TYPES
from opdock_ckernels.families.array import HELD
from opdock_ckernels.margins import within_margins
from opdock_ckernels.protocols import Array
from opdock_ckernels.scattering import copied

__all__ = ["table"]

table = KernelTable()


@table.binder("Pad", "PadV2", T=HELD, out=True, host_inputs=("paddings",))
def pad(sig: NodeSig) -> Callable[..., Array]:
    """The input within a margin of one value."""
    device = sig.device

    def run(x: Array, paddings: Any, *rest: Any) -> Array:
        value, into = rest if len(rest) == 2 else (None, rest[0])
        return within_margins(device, x, checks.margins(paddings, x.ndim), value, into)

    return run


# A place of the padded dimension, measured from the old start and folded back at both ends.
_MIRROR = "j < p ? p - 1 + q - j : j < p + n ? j - p : n - 1 - q - (j - p - n)"


@table.binder("MirrorPad", T=HELD, host_inputs=("paddings",))
def mirror_pad(sig: NodeSig) -> Callable[[Array, Any], Array]:
    """The input within a margin that mirrors it."""
    device, mode = sig.device, sig.attrs["mode"]
    skip = int(mode == "REFLECT")

    def run(x: Array, paddings: Any) -> Array:
        out = x
        for axis, (before, after) in enumerate(checks.margins(paddings, x.ndim)):
            size = x.shape[axis]
            checks.check_mirror(mode, size, before, after)
            if before or after:
                out = along(device, out, axis, size + before + after, _MIRROR, before, skip)
        return copied(device, x) if out is x else out

    return run


_FOLD = """
KERNEL void mirror_fold(GLOBAL const T* x, GLOBAL T* y, i64 total, i64 size, i64 inner,
                        i64 before, i64 after, i64 skip) {
  i64 i = GLOBAL_ID(0);
  if (i >= total) return;
  i64 c = i % inner, rest = i / inner, j = rest % size;
  i64 base = (rest / size) * (size + before + after), far = size - 1 - j;
  A v = LOAD((base + before + j) * inner + c);
  if (j >= skip && j < before + skip) v += LOAD((base + before + skip - 1 - j) * inner + c);
  if (far >= skip && far < after + skip) {
    v += LOAD((base + before + size + far - skip) * inner + c);
  }
  STORE
}
"""


@table.binder("MirrorPadGrad", T=REALS, host_inputs=("paddings",))
def mirror_pad_grad(sig: NodeSig) -> Callable[[Array, Any], Array]:
    """The inner part, with the mirrored margins folded back onto it."""
    device, dtype, mode = sig.device, sig.in_dtypes[0], sig.attrs["mode"]
    dialect: codegen.Dialect = device.dialect
    skip = int(mode == "REFLECT")
    load = f"#define LOAD(k) {dialect.load(dtype, 'x', '(k)')}\n"
    text = load + _FOLD.replace("STORE", dialect.store(dtype, "y", "i", "v"))
    head = codegen.helpers(dialect, text) + "\n"
    types = {"T": TYPES[dtype.name], "A": dialect.computed(dtype)}
    kernel = device.kernel(head + text, "mirror_fold", **types)

    def run(grad: Array, paddings: Any) -> Array:
        out = grad
        for axis, (before, after) in enumerate(checks.margins(paddings, grad.ndim)):
            size = grad.shape[axis] - before - after
            checks.check_mirror(mode, size, before, after)
            if not before and not after:
                continue
            shape = (*out.shape[:axis], size, *out.shape[axis + 1 :])
            core: Array = device.allocate(shape, out.dtype)
            inner = math.prod(shape[axis + 1 :])
            sizes = (core.size, size, inner, before, after, skip)
            device.launch(kernel, core.size, out, core, *map(np.int64, sizes))
            out = core
        return copied(device, grad) if out is grad else out

    return run
