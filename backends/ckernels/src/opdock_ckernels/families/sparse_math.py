"""A sparse tensor combined with a dense one at the sparse one's cells."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opdock.plugin import Kernel, KernelTable, NodeSig, checks, codegen, dtypes
from opdock_ckernels.picking import pick
from opdock_ckernels.pointwise import formula
from opdock_ckernels.protocols import Array
from opdock_ckernels.scattering import positions
from opdock_ckernels.strided import spread

__all__ = ["table"]

table = KernelTable()
_WAYS = {"Mul": "x * y", "Div": "x / y", "Add": "x + y"}


def _bind(sig: NodeSig) -> Callable[..., Array]:
    device, dtype = sig.device, sig.in_dtypes[1]
    text = _WAYS[sig.op.removeprefix("SparseDenseCwise")]
    program = formula(device, text, {"x": dtype, "y": dtype}, dtype)

    def run(indices: Array, values: Array, shape: Any, dense: Array) -> Array:
        wanted = tuple(checks.ints(shape))
        checks.leading_of_sparse(wanted, dense.shape)

        def outside(host: np.ndarray[Any, Any]) -> Exception:
            row = int(((host < 0) | (host >= np.array(wanted))).any(axis=1).argmax())
            return checks.outside_dense(row, host[row].tolist(), wanted)

        at = positions(device, indices, wanted, outside)
        cells = pick(device, spread(device, dense, wanted), at, (at.size,), 1)
        out: Array = program(values, cells)
        return out

    return run


for _op in _WAYS:
    _name, _types = f"SparseDenseCwise{_op}", {"T": codegen.RENDERED - {dtypes.bool}}
    _host = frozenset({"sp_shape"})
    table.add(Kernel(op=_name, bind=_bind, dtypes=_types, host_inputs=_host))
