"""Broadcasting into planned buffers; the rest of the family is portable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.plugin import KernelTable, NodeSig, errors

__all__ = ["table"]

Array = npt.NDArray[Any]

table = KernelTable()


def _invalid(message: str) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(None, None, message)


def _dims(shape: Any) -> str:
    return "[" + ",".join(str(d) for d in shape) + "]"


@table.binder("BroadcastTo", out=True, host_inputs=("shape",))
def broadcast_to(sig: NodeSig) -> Callable[..., Array]:
    """The input repeated along new and size-1 dimensions."""
    dtype = sig.out_dtypes[0].np

    def run(tensor: Any, shape: Any, out: Array | None) -> Array:
        wanted = tuple(shape.tolist())
        try:
            view = np.broadcast_to(tensor, wanted)
        except ValueError:
            raise _invalid(
                f"Incompatible shapes: {_dims(np.shape(tensor))} vs. {_dims(wanted)}"
            ) from None
        if out is None:
            out = np.empty(wanted, dtype)
        out[...] = view
        return out

    return run
