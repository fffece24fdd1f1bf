"""Slices by index along an axis."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from opdock.plugin import DType, KernelTable, NodeSig, checks, dtypes
from opdock_ckernels.dialect import TYPES, WORDS
from opdock_ckernels.families.array import HELD
from opdock_ckernels.picking import pick
from opdock_ckernels.protocols import Array
from opdock_ckernels.scattering import positions

__all__ = ["gatherer", "table"]

table = KernelTable()
_INDEX = frozenset({dtypes.int32, dtypes.int64})

_GATHER = """
KERNEL void gather(GLOBAL const W* x, GLOBAL const I* at, GLOBAL W* y,
                     GLOBAL int* flag, i64 n, i64 outer, i64 limit, i64 picks, i64 inner) {
  i64 i = GLOBAL_ID(0);
  if (i >= n) return;
  i64 c = i % inner, rest = i / inner;
  i64 j = rest % picks;
  rest /= picks;
  i64 o = rest % outer, b = rest / outer, k = at[b * picks + j];
  if (k < 0 || k >= limit) { *flag = (int)(b * picks + j) + 1; return; }
  y[i] = x[((b * outer + o) * limit + k) * inner + c];
}
"""


def gatherer(
    device: Any, dtype: DType, index_type: DType, batch_dims: int = 0
) -> Callable[..., Array]:
    """A function that picks slices of `params` by `indices` along an axis, 0 by default.

    Args:
        device: the open device.
        dtype: the type of the elements.
        index_type: of the indices.
        batch_dims: how many leading dimensions the two have in common.
    """
    word, index = WORDS[dtype.np.itemsize], TYPES[index_type.name]
    kernel = device.kernel(_GATHER, "gather", W=word, I=index)

    def run(params: Array, indices: Array, axis: Any = 0, into: Array | None = None) -> Array:
        at, batch = checks.axes_of(params, indices, axis, batch_dims)
        shape = (*params.shape[:at], *indices.shape[batch:], *params.shape[at + 1 :])
        out: Array = device.allocate(shape, params.dtype) if into is None else into
        if not out.size:
            return out
        sizes = (
            out.size, math.prod(params.shape[batch:at]), params.shape[at],
            math.prod(indices.shape[batch:]), math.prod(params.shape[at + 1 :]),
        )  # fmt: skip
        flag = device.flag()
        device.launch(kernel, out.size, params, indices, out, flag, *map(np.int64, sizes))
        if device.read_int(flag):
            raise checks.not_in(device.download(indices), params.shape[at])
        return out

    return run


@table.binder("GatherV2", Tparams=HELD, Tindices=_INDEX, out=True, host_inputs=("axis",))
def gather_v2(sig: NodeSig) -> Callable[..., Array]:
    """Slices by index along an axis, for each entry of a batch."""
    dtype, index, _ = sig.in_dtypes
    return gatherer(sig.device, dtype, index, sig.attrs["batch_dims"])


@table.binder("Gather", Tparams=HELD, Tindices=_INDEX, out=True)
def gather(sig: NodeSig) -> Callable[..., Array]:
    """Rows by index."""
    dtype, index = sig.in_dtypes
    run = gatherer(sig.device, dtype, index)
    return lambda params, indices, out: run(params, indices, 0, out)


@table.binder("GatherNd", Tparams=HELD, Tindices=_INDEX)
def gather_nd(sig: NodeSig) -> Callable[[Array, Array], Array]:
    """Slices by coordinates."""
    device = sig.device

    def run(params: Array, indices: Array) -> Array:
        depth = indices.shape[-1]
        checks.check_depth(indices, params.shape)
        limits, rest = params.shape[:depth], params.shape[depth:]
        checks.check_params(params, indices)
        at = positions(
            device, indices, limits, lambda host: checks.outside(host, params.shape, "param shape")
        )
        return pick(device, params, at, (*indices.shape[:-1], *rest), math.prod(rest))

    return run
