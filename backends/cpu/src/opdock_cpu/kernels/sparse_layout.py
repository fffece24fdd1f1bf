"""Sparse tensors made dense, in one pass where the portable kernel takes two."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.plugin import KernelTable, NodeSig, checks

__all__ = ["table"]

table = KernelTable()


@table.binder("SparseToDense", host_inputs=("output_shape",))
def sparse_to_dense(sig: NodeSig) -> Callable[..., npt.NDArray[Any]]:
    """One value everywhere but at given places."""
    validate = bool(sig.attrs["validate_indices"])

    def run(indices: Any, output_shape: Any, values: Any, default: Any) -> npt.NDArray[Any]:
        values, default = np.asarray(values), np.asarray(default)
        wanted, place = checks.dense_places(indices, output_shape, values, default, validate)
        out = np.full(wanted, default[()], values.dtype)
        out.reshape(-1)[place] = values
        return out

    return run
