"""Scattering at coordinates of a new tensor."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from opdock.plugin import KernelTable, NodeSig, checks, codegen, dtypes
from opdock_ckernels.families.array import HELD
from opdock_ckernels.protocols import Array
from opdock_ckernels.scattering import copied, positions, scatter
from opdock_ckernels.strided import zeros

__all__ = ["table"]

table = KernelTable()
_NUMBERS = codegen.RENDERED - {dtypes.bool}
_INDEX = frozenset({dtypes.int32, dtypes.int64})


def _into(device: Any, how: str, out: Array, indices: Array, updates: Array) -> Array:
    """`out` itself, changed at the coordinates."""
    depth, shape = indices.shape[-1], out.shape
    checks.check_updates(indices, updates, shape)
    at = positions(device, indices, shape[:depth], lambda host: checks.outside(host, shape))
    rows = updates.reshape(at.size, math.prod(shape[depth:]))
    scatter(device, how, out, at, rows, rows.shape[1])
    return out


@table.binder("ScatterNd", T=codegen.RENDERED, Tindices=_INDEX, host_inputs=("shape",))
def scatter_nd(sig: NodeSig) -> Callable[[Array, Array, Any], Array]:
    """Updates added up in a tensor of zeros."""
    device, dtype = sig.device, sig.out_dtypes[0].np

    def run(indices: Array, updates: Array, shape: Any) -> Array:
        wanted = checks.scattered_shape(shape)
        return _into(device, "Add", zeros(device, wanted, dtype), indices, updates)

    return run


@table.binder("ScatterNdNonAliasingAdd", T=codegen.RENDERED, Tindices=_INDEX)
@table.binder("TensorScatterUpdate", T=HELD, Tindices=_INDEX)
@table.binder(
    "TensorScatterAdd", "TensorScatterSub", "TensorScatterMin", "TensorScatterMax", T=_NUMBERS,
    Tindices=_INDEX,
)  # fmt: skip
def tensor_scatter(sig: NodeSig) -> Callable[[Array, Array, Array], Array]:
    """A tensor with some values replaced, or combined with the updates one by one."""
    device, how = sig.device, sig.op.removeprefix("TensorScatter")
    how = "Add" if how == "ScatterNdNonAliasingAdd" else how
    return lambda x, indices, updates: _into(device, how, copied(device, x), indices, updates)
