"""String kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opdock.plugin import KernelTable, NodeSig, errors

__all__ = ["table"]

Array = np.ndarray[Any, Any]

table = KernelTable()


@table.binder("StringJoin")
def string_join(sig: NodeSig) -> Callable[..., Array]:
    """Joins element by element; scalars are repeated."""
    separator = sig.attrs["separator"]
    mark = separator.encode() if isinstance(separator, str) else bytes(separator)

    def run(*inputs: Any) -> Array:
        arrays = [np.asarray(x, object) for x in inputs]
        shapes = {a.shape for a in arrays if a.ndim}
        if len(shapes) > 1:
            raise errors.InvalidArgumentError(
                None, None, f"Input shapes do not match: {sorted(shapes)}"
            )
        shape = shapes.pop() if shapes else ()
        columns = [np.broadcast_to(a, shape).reshape(-1) for a in arrays]
        out = np.empty(shape, object)
        flat = out.reshape(-1)
        for i, parts in enumerate(zip(*columns, strict=True)):
            flat[i] = mark.join(parts)
        return out

    return run
