"""Half the sum of squares, and whether targets are among the best predictions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from opdock.plugin import KernelTable, NodeSig, dtypes
from opdock_cpu.jit.looped import Array, Looped
from opdock_cpu.portable import portable_kernel

__all__ = ["table"]

table = KernelTable()

_FLOATS = frozenset({dtypes.float32, dtypes.float64})


@table.binder("L2Loss", T=_FLOATS)
def l2_loss(sig: NodeSig) -> Callable[..., Any]:
    """Half the sum of squares, and whether targets are among the best predictions."""

    def run(t: Any) -> Any:
        flat = t.reshape(-1)
        return np.dot(flat, flat) * t.dtype.type(0.5)

    return run


def _in_top(
    begin: int, end: int, out: Array, predictions: Array, targets: Array, classes: int, k: int
) -> None:
    """A turn is a row; one with an entry that is not finite says no."""
    for r in range(begin, end):
        target = targets[r]
        found = False
        if target >= 0 and target < classes:
            wanted = predictions[r * classes + target]
            beaten, wrong = 0, 0
            for c in range(classes):
                value = predictions[r * classes + c]
                beaten += int(value > wanted)
                wrong += int(value - value != 0)
            found = beaten < k and wrong == 0
        out[r] = found


_IN_TOP: Final = Looped(_in_top)


@table.binder("InTopK")
@table.binder("InTopKV2", host_inputs=("k",))
def in_top_k(sig: NodeSig) -> Callable[..., Array]:
    """Whether fewer than k classes beat the target."""
    plain: Callable[..., Array] = portable_kernel(sig)
    fixed: Any = sig.attrs.get("k")

    def run(predictions: Array, targets: Array, *k: Any) -> Array:
        rows, classes = predictions.shape
        if targets.shape == (rows,) and predictions.size:
            out, most = np.empty(rows, np.bool_), int(k[0] if k else fixed)
            if _IN_TOP(rows, predictions.size, out, predictions, targets, classes, most):
                return out
        return plain(predictions, targets, *k)

    return run
